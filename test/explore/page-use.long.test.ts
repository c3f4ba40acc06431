import { setTimeout as delay } from "node:timers/promises";
import type { Page } from "playwright-core";
import t from "tap";
import { askPython } from "../support/clients/ask-python.js";
import { clientMissing } from "../support/clients/require-client.js";
import { writeFields } from "../support/explore/explored-data.js";
import { openExplorer, shows } from "../support/explore/explorer-browser.js";

t.setTimeout(600_000);

const DESK = { viewport: { width: 1100, height: 760 } };

/** Waits until picture and address have the same box, which is not the one before, and returns it. */
async function boxAtRest(page: Page, before: readonly number[]): Promise<number[]> {
  const box = await page.waitForFunction((before) => {
    // biome-ignore lint/suspicious/noExplicitAny: this runs in the page
    const { document, location } = globalThis as any;
    const numbers = (text: string | undefined) => (text ?? "").split(",").map(Number);
    // A picture's box has whole pixels.
    const isSame = (one: readonly number[], other: readonly number[]) =>
      one.length === other.length && one.every((edge, index) => Math.abs(edge - (other[index] ?? 0)) < 0.01);
    const { box, rests } = document.querySelector("canvas.data").dataset;
    const [shown, written] = [numbers(box), numbers(/box=([^&]+)/.exec(location.hash)?.[1])];
    return rests === "true" && isSame(shown, written) && !isSame(shown, before) && shown;
  }, before);
  return (await box.jsonValue()) as number[];
}

t.test(
  "the explorer's page in Chromium",
  { skip: clientMissing("chromium", "xarray", "zarr") },
  async (t) => {
    const { addressOf, open, written } = await openExplorer(t, writeFields, {
      fields: { location: "fields.zarr" },
    });
    const url = addressOf("fields");

    await t.test("is used by keys alone, and its address holds the view", async (t) => {
      const { page, problems } = await open(t, DESK);
      await page.goto(`${url}#v=air&r=240,310`);
      await shows(page, "air");
      const map = page.getByRole("application");
      await map.focus();
      for (const key of ["End", ",", "c", "i", "s", "+"]) await page.keyboard.press(key);
      const enlarged = await boxAtRest(page, []);
      await page.keyboard.press("ArrowRight");
      await boxAtRest(page, enlarged);
      await shows(page, "air", "10,0,0");
      const { hash } = new URL(page.url());
      t.match(hash, /^#v=air&d\.time=2013-01-03T12&box=[-\d.,]+&c=cividis&r=240,310&rev&sym$/);
      await page.keyboard.press("p");
      const readout = page.locator(".readout");
      await readout.waitFor({ state: "visible" });
      const first = await readout.innerText();
      await page.keyboard.press("ArrowUp");
      await readout.filter({ hasNotText: first }).waitFor();
      t.match(await readout.innerText(), /^[\d.]+°[NS] [\d.]+°[EW] [\d.]+ K/);
      await page.locator("[aria-live]").filter({ hasText: "value " }).waitFor({ state: "attached" });
      const spoken = await page.locator("[aria-live]").innerText();
      t.match(spoken, /^Air temperature, 2013-01-03 12:00, value [\d.]+ K$/);
      await page.keyboard.press("?");
      t.ok(await page.getByRole("dialog").isVisible());
      await page.keyboard.press("Escape");
      await page.keyboard.press("]");
      await shows(page, "empty");
      t.match(page.url(), /v=empty/);
      await page.goBack();
      await shows(page, "air", "10,0,0");

      const other = await open(t, DESK);
      await other.page.goto(url + hash);
      await shows(other.page, "air", "10,0,0");
      const picture = `(() => {
        const { width, height } = document.querySelector("canvas.data");
        const { data } = document.querySelector("canvas.data").getContext("2d").getImageData(0, 0, width, height);
        return Array.from(new Uint32Array(data.buffer)).filter((_, index) => index % 17 === 0);
      })()`;
      let isSame = false;
      // Either may be drawn once more. The address rounds the box, so that a pixel on the edge of a cell may get its neighbour.
      for (let look = 0; look < 100 && !isSame; look++) {
        if (look > 0) await delay(50);
        const [linked, seen] = (await Promise.all([
          other.page.evaluate(picture),
          page.evaluate(picture),
        ])) as [number[], number[]];
        const different = linked.filter((pixel, index) => pixel !== seen[index]).length;
        isSame = linked.length === seen.length && different < linked.length / 50;
      }
      t.ok(isSame, "a link shows the same");
      t.equal(await other.page.locator("canvas.data").getAttribute("data-range"), "-310,310");
      t.same([...problems, ...other.problems], []);
    });

    await t.test("offers what is shown as a file, and the series as a table", async (t) => {
      const { page, problems } = await open(t, DESK);
      await page.goto(`${url}#v=air&d.time=2013-01-03T12&box=-20,30,25,60&p=7.5,42.5`);
      await shows(page, "air", "10,0,0");
      await page.locator("#code-button").click();
      const link = page.locator(".code a[download]");
      await link.filter({ hasText: "Download NetCDF" }).waitFor();
      await shows(page, "air", "10,0,0");
      const box = ((await page.locator(".map .data[data-box]").getAttribute("data-box")) ?? "").split(",");
      const picture = (await link.getAttribute("href")) ?? "";
      t.match(
        await page.locator(".code p").innerText(),
        /^Download NetCDF about [\d.]+ k?B(?:ytes)? Copy URL$/i,
      );
      await page.getByRole("radio", { name: "NetCDF" }).check();
      t.ok((await page.locator(".code pre").innerText()).includes(picture), "the code has the URL");
      await page.locator(".code select").selectOption("series");
      await link.filter({ hasText: "Download CSV" }).waitFor();
      const series = (await link.getAttribute("href")) ?? "";
      const input = { store: written, picture, series, box: box.map(Number) };
      t.same(JSON.parse(askPython(COMPARE_FILES, input)), { wrong: [], rows: 12 });
      t.same(problems, []);
    });

    await t.test("can be used by fingers, and says what is missing", async (t) => {
      const { page, problems } = await open(t, {
        viewport: { width: 390, height: 844 },
        hasTouch: true,
        isMobile: true,
      });
      await page.goto(`${url}#v=empty`);
      await shows(page, "empty");
      await page.getByText(/^No values here: all [\d,]+ cells are missing/).waitFor();
      await page.getByRole("button", { name: "Variables" }).tap();
      await page.getByRole("button", { name: "packed" }).tap();
      await shows(page, "packed");
      await page.getByRole("application").tap({ position: { x: 150, y: 150 } });
      await page.locator(".readout").waitFor({ state: "visible" });
      await page.getByRole("button", { name: "Colours" }).tap();
      t.equal(await page.evaluate("document.documentElement.scrollWidth"), 390);
      const small = `[...document.querySelectorAll("button, select, input, summary")].filter((each) => {
      const { width, height } = each.getBoundingClientRect();
      return width > 0 && Math.max(height, each.closest("label")?.getBoundingClientRect().height ?? 0) < 44;
    }).map((each) => each.outerHTML.slice(0, 100))`;
      t.same(await page.evaluate(small), [], "fingers find everything");
      t.same(problems, []);
    });

    await t.test("plays, and tells failures from missing data", async (t) => {
      const { page, problems } = await open(t, DESK);
      let isRetried = false;
      await page.exposeFunction("noteRetry", () => {
        isRetried = true;
      });
      await page.route("**/air/7.*", (route) =>
        isRetried
          ? route.continue()
          : route.fulfill({ status: 500, headers: { "x-request-id": "7f3a" }, body: "no" }),
      );
      await page.goto(`${url}#v=air`);
      await shows(page, "air", "0,0,0");
      await page.getByRole("button", { name: "time: play" }).click();
      const alert = page.getByRole("alert");
      await alert.waitFor();
      t.match(await alert.innerText(), /7\.\d\.\d of air[\s\S]*7f3a[\s\S]*Retry/);
      const shown = await page.locator("canvas.data").getAttribute("data-at");
      t.equal(shown, "6,0,0", "the last whole picture stays");
      await page.getByRole("button", { name: "time: play" }).waitFor();
      // Playing stops, and the picture is asked for once more at its best, which fails as well.
      const note = `document.addEventListener("click", noteRetry, { capture: true, once: true })`;
      await page.evaluate(note);
      await page.getByRole("button", { name: "Retry" }).click();
      await shows(page, "air", "7,0,0");
      t.equal(await alert.count(), 0);
      t.same(
        problems.filter((problem) => !problem.includes("status of 500")),
        [],
      );
    });
  },
);

/** Fetches the files of a picture and a series, and tells how their values differ from those that xarray reads from the store. */
const COMPARE_FILES = `
import json, sys, tempfile
from urllib.request import urlretrieve
import numpy as np, pandas as pd, xarray as xr
case = json.load(sys.stdin)
ds = xr.open_zarr(case["store"]).load()
path, _ = urlretrieve(case["picture"])
file = xr.open_dataset(path)
left, bottom, right, top = case["box"]
wrong = []
air = ds.air.sel(time="2013-01-03T12")
# The map lies across the seam of longitudes.
lon = ds.lon[(ds.lon - left + 3.75) % 360 < right - left + 7.5].values
lat = ds.lat[(ds.lat + 2.5 > bottom) & (ds.lat - 2.5 < top)].values
if not 0 < len(lon) * len(lat) < air.size or set(file.lon.values % 360) != set(lon) or not np.array_equal(file.lat.values, lat): wrong.append([left, bottom, right, top, str(file.coords)])
if not np.array_equal(file.air.values, air.sel(lat=file.lat.values, lon=file.lon.values % 360).values, equal_nan=True): wrong.append("picture")
table = pd.read_csv(case["series"], parse_dates=["time"])
known = ds.air.sel(lat=42.5, lon=7.5)
if not np.array_equal(table.time.values, known.time.values): wrong.append("time")
if not np.allclose(table.air.values, known.values, rtol=1e-6, equal_nan=True): wrong.append("air")
print(json.dumps({"wrong": wrong, "rows": len(table)}))
`;
