import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import t, { type Test } from "tap";
import { numberText } from "../../src/explore/value-text.js";
import { parseDataType } from "../../src/model/data-type.js";
import { askPython } from "../support/clients/ask-python.js";
import { clientMissing } from "../support/clients/require-client.js";
import { type KnownSeries, writeExploredData } from "../support/explore/explored-data.js";
import { openExplorer, shows } from "../support/explore/explorer-browser.js";

t.setTimeout(600_000);

t.test("plots in a browser", { skip: clientMissing("xarray", "chromium") }, async (t) => {
  const explorer = await openExplorer(t, writeExploredData, {
    grid: { location: "grid.zarr" },
    years: { location: "years.zarr" },
  });
  const known = explorer.written;
  const { page, problems } = await explorer.open(t);
  const show = async (dataset: string, hash: string): Promise<void> => {
    // Only another document reads another address from its begin.
    await page.goto("about:blank");
    await page.goto(explorer.addressOf(dataset, hash));
  };

  const cases: readonly (readonly [name: string, dataset: string, hash: string])[] = [
    ["air", "grid", "v=air&p=245,40"],
    ["lat", "grid", "v=air&p=245,40&along=lat"],
    ["q", "grid", "v=q&p=245,40"],
    ["co2", "grid", "v=co2"],
    ["noleap", "years", "v=noleap/pr&p=245,40"],
    ["360_day", "years", "v=360_day/pr&p=245,40"],
  ];
  for (const [name, dataset, hash] of cases) {
    await t.test(`the series that is saved is xarray's: ${name}`, async (t) => {
      await show(dataset, hash);
      compareSeries(t, await saveCsv(page), known[name] as KnownSeries);
    });
  }

  await t.test("reading a series of many chunks can be stopped and continued", async (t) => {
    const aborted: string[] = [];
    page.on("requestfailed", (request) => aborted.push(request.url()));
    // These are answered by nothing until the reading is stopped.
    await page.route(/\/packed\/9\d\./, () => {});
    await show("grid", "v=packed&p=245,40&r=240,320");
    await page.getByRole("button", { name: "Stop" }).click();
    t.match(await page.locator(".plot .note").textContent(), /^Stopped after \d+ of 120 chunks\./);
    t.ok(
      await page.getByRole("button", { name: "as CSV" }).isDisabled(),
      "what is not read is not saved as missing",
    );
    t.ok(aborted.length > 0, "requests are aborted");
    await page.unroute(/\/packed\/9\d\./);
    await page.getByRole("button", { name: "Read the rest" }).click();
    compareSeries(t, await saveCsv(page), known.packed as KnownSeries);
  });

  await t.test(
    "a chunk that fails is told with its request, and does not look like missing data",
    async (t) => {
      const other = await explorer.open(t);
      const headers = { "x-request-id": "7f3a" };
      await other.page.route(/\/air\/1\./, (route) => route.fulfill({ status: 500, headers, body: "{}" }));
      await other.page.goto(explorer.addressOf("grid", "v=air&p=245,40&r=240,320"));
      t.match(await other.page.locator(".plot .error").textContent(), /7f3a/);
      t.ok(await other.page.getByRole("button", { name: "as CSV" }).isDisabled());
      await other.page.unroute(/\/air\/1\./);
      await other.page.locator(".plot .error").getByRole("button", { name: "Retry" }).click();
      await other.page.getByRole("button", { name: "as CSV", disabled: false }).waitFor();
    },
  );

  await t.test("a plot is read by keys and pointer, enlarged, and moves the picture", async (t) => {
    await show("grid", "v=air&p=245,40");
    const slider = page.getByRole("slider", { name: "Read values" });
    await slider.focus();
    await page.keyboard.press("ArrowRight");
    const { positions, values } = known.air as KnownSeries;
    const expected = `2013-01-01 06:00: ${numberText(values[1] as number, parseDataType("<f4"))} K`;
    t.equal(await slider.getAttribute("aria-valuetext"), expected);
    t.equal(await page.locator(".plot output").textContent(), expected);

    const over = page.locator(".chart .u-over");
    const box = (await over.boundingBox()) as { x: number; y: number; width: number; height: number };
    const middle = box.y + box.height / 2;
    const step60 = box.x + (box.width * 60) / 119;
    await page.mouse.move(step60, middle);
    t.match(await page.locator(".plot output").textContent(), /^2013-01-16 00:00: /);
    await page.mouse.click(step60, middle);
    await page.locator('.map .data[data-at^="60,"]').waitFor();
    t.match(page.url(), `d.time=${String(positions[60]).slice(0, 13)}`);

    const whole = page.getByRole("button", { name: "Reset zoom" });
    t.ok(await whole.isDisabled());
    await page.mouse.move(box.x + box.width * 0.2, middle);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, middle, { steps: 4 });
    await page.mouse.up();
    t.ok(await whole.isEnabled(), "dragging selects a part of the axis");
    await whole.click();
    await page.getByRole("button", { name: "Zoom in on the plot" }).click();
    t.ok(await whole.isEnabled());
  });

  await t.test("plot and picture are saved as PNG", async (t) => {
    await show("grid", "v=air&p=245,40&plot=histogram");
    for (const name of ["Save the plot as PNG", "Save picture as PNG"]) {
      const bytes = await savedBy(page, name);
      t.equal(bytes.toString("latin1", 1, 4), "PNG");
      t.ok(bytes.readUInt32BE(16) > 400, "as wide as on the screen");
    }
    const csv = (await savedBy(page, "Save the plot as CSV")).toString();
    const counts = csv
      .split("\r\n")
      .slice(1, -1)
      .map((line) => Number(line.split(",")[2]));
    t.equal(
      counts.reduce((sum, count) => sum + count, 0),
      25 * 53,
      "every cell that is visible is counted",
    );
  });

  await t.test("texts are shown as text", async (t) => {
    await show("grid", "v=title");
    t.match(await page.locator(".text .value").textContent(), "A text that is one value");
    await show("grid", "v=station");
    t.equal(await page.locator(".text .note").textContent(), "The first 500 of 1,500 values");
    t.equal(await page.locator(".text tbody tr").nth(1).textContent(), "1Bern <b>");
  });

  await t.test(
    "the code that is shown reads what is on the screen",
    { skip: clientMissing("zarr") },
    async (t) => {
      await show("grid", "v=air&d.time=2013-01-02&box=230,30,260,50&p=245,40");
      // The code has a place of its own, which leaves less for the map.
      await page.locator("#code-button").click();
      await page.locator(".code pre").waitFor();
      await shows(page, "air");
      const at = await page.locator(".map .data[data-box]").getAttribute("data-box");
      const picture = (await page.locator(".code pre").textContent()) ?? "";
      const [left = 0, bottom = 0, right = 0, top = 0] = (at ?? "").split(",").map(Number);
      await page.locator(".code select").selectOption("series");
      const series = (await page.locator(".code pre").textContent()) ?? "";
      const answer = JSON.parse(askPython(RUN, { picture, series }));
      const cells = (low: number, high: number, first: number) =>
        Array.from({ length: 53 }, (_, index) => first + 2.5 * index).filter(
          (centre) => centre + 1.25 > low && centre - 1.25 < high,
        );
      t.same(
        answer.lon,
        cells(left, right, 200).filter((each) => each <= 330),
      );
      t.same(
        answer.lat,
        cells(bottom, top, 15)
          .filter((each) => each <= 75)
          .reverse(),
      );
      t.equal(answer.time, "2013-01-02T00:00:00");
      t.same(answer.values, (known.air as KnownSeries).values);
    },
  );

  t.same(problems, []);
});

/** Runs the code of a picture and of a series, and prints which cells it read. */
const RUN = `
import json, sys
import numpy as np
codes = json.load(sys.stdin)
def run(code):
    names = {}
    exec(code, names)
    return names["data"]
picture, series = run(codes["picture"]), run(codes["series"])
print(json.dumps({"lon": picture.lon.values.tolist(), "lat": picture.lat.values.tolist(), "time": str(picture.time.values)[:19],
                  "values": [None if np.isnan(value) else float(value) for value in series.values]}))
`;

async function savedBy(page: Page, name: string): Promise<Buffer> {
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name }).click(),
  ]);
  return readFile(await download.path());
}

async function saveCsv(page: Page): Promise<string> {
  return (await savedBy(page, "Save the plot as CSV")).toString();
}

/** Compares the first two columns of a CSV file with a series: dates exactly, numbers to the digits of 32 bits. */
function compareSeries(t: Test, csv: string, { positions, values }: KnownSeries): void {
  const rows = csv
    .split("\r\n")
    .slice(1, -1)
    .map((line) => line.split(","));
  t.equal(rows.length, positions.length);
  const near = (text: string | undefined, number: number) =>
    text !== "" && Math.abs(Number(text) - number) <= Math.abs(number) * 1e-6;
  const wrong = rows.filter(([position, value], index) => {
    const [known, number] = [positions[index] as string | number, values[index] as number | null];
    const isThere = typeof known === "string" ? position === known : near(position, known);
    return !isThere || (number === null ? value !== "" : !near(value, number));
  });
  t.same(wrong.slice(0, 3), []);
}
