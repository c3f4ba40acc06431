import { mkdir, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import t, { type Test } from "tap";
import { colourTable } from "../../src/colour/colour-scales.js";
import { tableIndexOf, valueOfByte } from "../../src/explore/frame-painter.js";
import { askPython } from "../ask-python.js";
import { CHROMIUM, CHROMIUM_ARGS } from "../clients/browser-page.js";
import { makeTemporaryDirectory, startServer } from "../clients/harness.js";
import { clientMissing } from "../require-client.js";

t.setTimeout(120_000);

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

/** Reads values at places, as xarray finds the nearest cell: null if it is missing, "outside" beyond half a cell of the edges. */
const READ = `
import json, sys, numpy as np, xarray as xr
ds = xr.open_dataset(sys.argv[1], engine="zarr")
answers = []
for job in json.load(sys.stdin):
    field = ds[job["variable"]].isel(job["at"])
    y, x = job["y"], job["x"]
    for name in (y, x):
        if name not in field.coords or field[name].dtype.kind == "M": field = field.assign_coords({name: np.arange(field.sizes[name])})
    field = field.transpose(y, x).sortby([y, x])
    rows, columns = field[y].values, field[x].values
    wraps = columns[-1] - columns[0] > 350
    values = []
    for px, py in job["places"]:
        if wraps:
            half = (columns[1] - columns[0]) / 2
            px = (px - columns[0] + half) % 360 + columns[0] - half
        first, last = rows[0] - (rows[1] - rows[0]) / 2, rows[-1] + (rows[-1] - rows[-2]) / 2
        left, right = columns[0] - (columns[1] - columns[0]) / 2, columns[-1] + (columns[-1] - columns[-2]) / 2
        if not (first <= py <= last and left <= px <= right): values.append("outside"); continue
        value = float(field.sel({y: py, x: px}, method="nearest"))
        values.append(None if np.isnan(value) else value)
    answers.append(values)
print(json.dumps(answers))
`;

/** What is on the canvas: its description, and the colours of some pixels. */
interface Shown {
  readonly box: readonly [number, number, number, number];
  readonly range: readonly [number, number];
  readonly width: number;
  readonly height: number;
  readonly pixels: readonly (readonly [
    x: number,
    y: number,
    red: number,
    green: number,
    blue: number,
    alpha: number,
  ])[];
}

/** Reads every n-th pixel of the canvas, each with its neighbours, so that cells are seen at both sides of edges. */
const PIXELS = `(() => {
  const canvas = document.querySelector("canvas.data");
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  const pixels = [];
  for (let y = 2; y < height; y += 29) for (let x = 2; x < width; x += 13) for (const shift of [0, 1]) {
    const at = (y * width + x + shift) * 4;
    if (x + shift < width) pixels.push([x + shift, y, ...data.subarray(at, at + 4)]);
  }
  const numbers = (text) => text.split(",").map(Number);
  return { box: numbers(canvas.dataset.box), range: numbers(canvas.dataset.range), width, height, pixels };
})()`;

/** Waits until a view is drawn completely and at its best. */
async function shows(page: Page, variable: string, at = ""): Promise<void> {
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

const TABLE = colourTable("viridis");

/** Returns the values that a colour of viridis stands for; undefined if it is none. */
function valuesOf(
  red: number,
  green: number,
  blue: number,
  [low, high]: readonly [number, number],
): number[] {
  const values: number[] = [];
  for (let byte = 2; byte <= 253; byte++) {
    const at = tableIndexOf(byte) * 3;
    if (TABLE[at] === red && TABLE[at + 1] === green && TABLE[at + 2] === blue)
      values.push(valueOfByte(byte, low, high));
  }
  return values;
}

/** Returns what differs between a canvas and the values of xarray. */
function differences({ pixels, range }: Shown, expected: readonly (number | null | "outside")[]): string[] {
  const step = (range[1] - range[0]) / 251;
  return pixels.flatMap(([x, y, red, green, blue, alpha], index) => {
    const value = expected[index];
    const found = alpha === 0 ? [] : valuesOf(red, green, blue, range);
    const isRight =
      typeof value === "number"
        ? found.some((each) => Math.abs(Math.max(range[0], Math.min(range[1], value)) - each) <= step * 0.51)
        : found.length === 0 && (alpha === 0) === (value === "outside");
    return isRight ? [] : [`${x},${y}: expected ${value}, received ${found[0] ?? [red, green, blue, alpha]}`];
  });
}

/** Collects what a page should not do: messages of the console, errors, requests elsewhere. */
function watch(page: Page, origin: string): string[] {
  const problems: string[] = [];
  page.on("console", (message) => problems.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith("blob:"))
      problems.push(`request: ${request.url()}`);
  });
  return problems;
}

async function accessibilityProblems(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(
    `axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html.slice(0, 120)).join(" | ")))`,
  );
}

const AXE = await import("node:fs/promises").then(({ readFile }) =>
  readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"),
);

t.test(
  "the explorer's page in Chromium",
  { skip: clientMissing("chromium", "xarray", "zarr") },
  async (t) => {
    const directory = await makeTemporaryDirectory();
    const store = join(directory, "fields.zarr");
    await mkdir(directory, { recursive: true });
    askPython(WRITE, null, [store]);
    const server = await startServer({ datasets: { fields: { location: store } }, directory });
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: [...CHROMIUM_ARGS] });
    t.teardown(async () => {
      await browser.close();
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    });
    const url = server.storeUrl("fields").replace(/zarr\/?$/, "explore");
    const origin = new URL(url).origin;

    await t.test("shows the values that xarray reads, at their places", async (t) => {
      const { page, problems } = await open(t, browser, origin, { viewport: { width: 1100, height: 760 } });
      const views = [
        ["air", "v=air&r=240,310&c=viridis", "lat", "lon", { time: 0 }],
        [
          "air",
          "v=air&d.time=2013-01-02T06&r=260,300&c=viridis&box=-40,-10,50,60",
          "lat",
          "lon",
          { time: 5 },
        ],
        ["air", "v=air&d.time=last&r=240,310&c=viridis&box=150,-40,210,20", "lat", "lon", { time: 11 }],
        ["packed", "v=packed&d.time=i3&r=-180,100&c=viridis", "lat", "lon", { time: 3 }],
        [
          "packed",
          "v=packed&d.time=i3&d.lat=i4&x=time&y=lon&r=-180,100&c=viridis",
          "lon",
          "time",
          { lat: 4 },
        ],
        ["uneven", "v=uneven&r=-390,280&c=viridis&box=160,-80,200,40", "south", "east", {}],
        ["image", "v=image&r=0,600&c=viridis", "row", "column", {}],
      ] as const;
      const jobs = [];
      const seen: Shown[] = [];
      for (const [index, [variable, hash, y, x, at]] of views.entries()) {
        if (index === 0) await page.goto(`${url}#${hash}`);
        else {
          await page.evaluate(
            `document.querySelector("canvas.data").dataset.done = ""; location.hash = ${JSON.stringify(hash)}`,
          );
        }
        await shows(page, variable);
        const shown = (await page.evaluate(PIXELS)) as Shown;
        const { box, width, height } = shown;
        const places = shown.pixels.map(([px, py]) => [
          box[0] + ((box[2] - box[0]) * (px + 0.5)) / width,
          box[3] + ((box[1] - box[3]) * (py + 0.5)) / height,
        ]);
        seen.push(shown);
        jobs.push({
          variable,
          at,
          y,
          x,
          places: x === "time" ? places.map(([px, py]) => [stepOfHours(px as number), py]) : places,
        });
      }
      const expected = JSON.parse(askPython(READ, jobs, [store])) as (number | null | "outside")[][];
      for (const [index, shown] of seen.entries()) {
        const wrong = differences(shown, expected[index] ?? []);
        t.same(
          wrong.slice(0, 5),
          [],
          `${views[index]?.[1]}: ${wrong.length} of ${shown.pixels.length} pixels differ`,
        );
      }
      t.same(problems, []);
    });
  },
);

/** Returns the step of a time, which is stored in hours since the first one. */
function stepOfHours(hours: number): number {
  return hours / 6;
}

async function open(t: Test, browser: Browser, origin: string, options: BrowserContextOptions) {
  const context = await browser.newContext(options);
  t.teardown(() => context.close());
  const page = await context.newPage();
  return { page, problems: watch(page, origin) };
}
void accessibilityProblems;
