import { readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { type BrowserContextOptions, chromium, type Page } from "playwright-core";
import type { Test } from "tap";
import { askPython } from "../ask-python.js";
import { CHROMIUM, CHROMIUM_ARGS } from "../clients/browser-page.js";
import { makeTemporaryDirectory, startServer } from "../clients/harness.js";

/** Writes a store whose variables lie in memory in all ways. */
const WRITE = `
import sys, numpy as np, xarray as xr
times = np.datetime64("2013-01-01") + np.arange(12) * np.timedelta64(6, "h")
lat, lon = np.arange(87.5, -90, -5.0), np.arange(0, 360, 7.5)
t, y, x = np.meshgrid(np.arange(12), lat, lon, indexing="ij")
air = (270 + 25 * np.cos(np.radians(y)) + 5 * np.sin(np.radians(x * 2)) + t).astype("f4")
air[:, (lat > 20) & (lat < 40), :5] = np.nan
geo = {"lat": ("lat", lat, {"units": "degrees_north"}), "lon": ("lon", lon, {"units": "degrees_east"}), "time": times}
packed = np.round((y - x / 4 + t) / 0.05).astype("f8") * 0.05
packed[:, 3, 7] = np.nan
rows = np.array([-70.0, -50, -38, -30, -25, -22, -20, -10, 5, 30])
columns = np.arange(-179.0, 180, 2)
ds = xr.Dataset(
    {
        "air": (("time", "lat", "lon"), air, {"units": "K", "long_name": "Air temperature"}),
        "packed": (("lon", "time", "lat"), packed.transpose(2, 0, 1)),
        "uneven": (("south", "east"), rows[:, None] * 3 + columns[None, :]),
        "image": (("row", "column"), np.arange(600.0).reshape(20, 30)),
        "empty": (("lat", "lon"), np.full((36, 48), np.nan)),
    },
    coords={**geo, "south": ("south", rows, {"units": "degrees_north"}), "east": ("east", columns, {"units": "degrees_east"})},
)
encoding = {
    "air": {"chunks": (1, 20, 30)},
    "packed": {"chunks": (17, 3, 36), "dtype": "i2", "scale_factor": 0.05, "add_offset": 10.0, "_FillValue": -32768},
}
ds.to_zarr(sys.argv[1], encoding=encoding, consolidated=True)
`;

/** The explorer of a served store, in Chromium. */
export interface ExplorePages {
  /** Path of the store. */
  readonly store: string;
  /** Address of the explorer's page. */
  readonly url: string;
  /** Opens an empty page until the test ends, and collects what the explorer should not do there. */
  open(
    t: Test,
    options: BrowserContextOptions,
  ): Promise<{ readonly page: Page; readonly problems: string[] }>;
}

/** Serves a store whose variables lie in memory in all ways, and starts Chromium, until the test ends. */
export async function openExplorePages(t: Test): Promise<ExplorePages> {
  const directory = await makeTemporaryDirectory();
  const store = join(directory, "fields.zarr");
  askPython(WRITE, null, [store]);
  const server = await startServer({ datasets: { fields: { location: store } }, directory });
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: [...CHROMIUM_ARGS] });
  t.teardown(async () => {
    await browser.close();
    await server.stop();
    await rm(directory, { recursive: true, force: true });
  });
  return {
    store,
    url: `${server.url}/datasets/fields/explore`,
    async open(t, options) {
      const context = await browser.newContext(options);
      t.teardown(() => context.close());
      const page = await context.newPage();
      return { page, problems: watch(page, server.url) };
    },
  };
}

/** Waits until a view is drawn completely and at its best. */
export async function shows(page: Page, variable: string, at = ""): Promise<void> {
  await page.waitForFunction(
    ([name, step]) => {
      // biome-ignore lint/suspicious/noExplicitAny: this runs in the page
      const { dataset } = (globalThis as any).document.querySelector("canvas.data") ?? { dataset: {} };
      const [done, total] = (dataset.done ?? "0/1").split("/");
      return (
        dataset.variable === name &&
        done === total &&
        (step === "" || dataset.at === step) &&
        dataset.rests === "true"
      );
    },
    [variable, at] as const,
  );
}

/** Collects what a page should not do: messages of the console, errors, requests elsewhere. */
function watch(page: Page, origin: string): string[] {
  const problems: string[] = [];
  page.on("console", (message) => {
    // The test reads the canvas, the page does not.
    if (!message.text().includes("readback")) problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith("blob:"))
      problems.push(`request: ${request.url()}`);
  });
  return problems;
}

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** Returns what axe finds wrong on a page. */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  await page.evaluate(await readFile(AXE, "utf8"));
  return page.evaluate(
    `axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html.slice(0, 120)).join(" | ")))`,
  );
}
