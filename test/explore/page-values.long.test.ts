import t from "tap";
import { colourTable } from "../../src/colour/colour-scales.js";
import { tableIndexOf } from "../../src/explore/page/map/frame-painter.js";
import { askPython } from "../support/clients/ask-python.js";
import { clientMissing } from "../support/clients/require-client.js";
import { writeFields } from "../support/explore/explored-data.js";
import { openExplorer, shows } from "../support/explore/explorer-browser.js";

t.setTimeout(600_000);

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
    px, py = np.array(job["places"]).T
    if wraps:
        half = (columns[1] - columns[0]) / 2
        px = (px - columns[0] + half) % 360 + columns[0] - half
    first, last = rows[0] - (rows[1] - rows[0]) / 2, rows[-1] + (rows[-1] - rows[-2]) / 2
    left, right = columns[0] - (columns[1] - columns[0]) / 2, columns[-1] + (columns[-1] - columns[-2]) / 2
    inside = (first <= py) & (py <= last) & (left <= px) & (px <= right)
    nearest = field.sel({y: xr.DataArray(py, dims="place"), x: xr.DataArray(px, dims="place")}, method="nearest").values
    answers.append(["outside" if not here else None if np.isnan(value) else float(value) for here, value in zip(inside, nearest)])
print(json.dumps(answers))
`;

/** What is on the canvas: its description, and the colours of some pixels. */
interface Shown {
  readonly box: readonly [number, number, number, number];
  readonly range: readonly [number, number];
  readonly width: number;
  readonly height: number;
  /** Column, row, red, green, blue, opacity. */
  readonly pixels: readonly (readonly [number, number, number, number, number, number])[];
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
      values.push(low + ((byte - 2) / 251) * (high - low));
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

t.test(
  "the canvas shows the values that xarray reads, at their places",
  { skip: clientMissing("chromium", "xarray", "zarr") },
  async (t) => {
    const explorer = await openExplorer(t, writeFields, { fields: { location: "fields.zarr" } });
    const { page, problems } = await explorer.open(t, { viewport: { width: 1100, height: 763 } });
    const views = [
      ["air", "v=air&r=240,310&c=viridis", "lat", "lon", { time: 0 }],
      ["air", "v=air&d.time=2013-01-02T06&r=260,300&c=viridis&box=-40,-10,50,60", "lat", "lon", { time: 5 }],
      ["air", "v=air&d.time=last&r=240,310&c=viridis&box=150,-40,210,20", "lat", "lon", { time: 11 }],
      ["packed", "v=packed&d.time=i3&r=-180,100&c=viridis", "lat", "lon", { time: 3 }],
      ["packed", "v=packed&d.time=i3&d.lat=i4&x=time&y=lon&r=-180,100&c=viridis", "lon", "time", { lat: 4 }],
      ["uneven", "v=uneven&r=-390,280&c=viridis&box=160,-80,200,40", "south", "east", {}],
      ["image", "v=image&r=0,600&c=viridis", "row", "column", {}],
    ] as const;
    const jobs = [];
    const seen: Shown[] = [];
    for (const [index, [variable, hash, y, x, at]] of views.entries()) {
      if (index === 0) await page.goto(explorer.addressOf("fields", hash));
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
        // Times are stored in hours since the first one, six to a step.
        places: x === "time" ? places.map(([px, py]) => [(px as number) / 6, py]) : places,
      });
    }
    const expected = JSON.parse(askPython(READ, jobs, [explorer.written])) as (number | null | "outside")[][];
    for (const [index, shown] of seen.entries()) {
      const wrong = differences(shown, expected[index] ?? []);
      t.same(
        wrong.slice(0, 5),
        [],
        `${views[index]?.[1]}: ${wrong.length} of ${shown.pixels.length} pixels differ`,
      );
    }
    t.same(problems, []);
  },
);
