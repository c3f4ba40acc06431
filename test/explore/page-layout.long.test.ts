import type { Page } from "playwright-core";
import t from "tap";
import { askPython } from "../support/clients/ask-python.js";
import { clientMissing } from "../support/clients/require-client.js";
import { openExplorer, shows } from "../support/explore/explorer-browser.js";

t.setTimeout(600_000);

/** Writes variables whose numbers and units are long. */
const WRITE = `
import sys, numpy as np, xarray as xr
rng = np.random.default_rng(5)
time = np.datetime64("2013-01-01", "ns") + np.arange(60) * np.timedelta64(6, "h")
lat, lon = np.arange(53, 44.9, -0.25), np.arange(5, 12.1, 0.25)
shape = (60, lat.size, lon.size)
field = ("time", "lat", "lon")
ds = xr.Dataset({
    "tas": (field, rng.normal(280, 5, shape).astype("f4"), {"units": "K", "long_name": "Air temperature"}),
    "pr": (field, (1.3e-5 * rng.random(shape)).astype("f4"), {"units": "kg m-2 s-1", "long_name": "Precipitation flux"}),
    "hus": (("plev", "lat", "lon"), 0.012 * rng.random((4, *shape[1:])), {"units": "kg kg-1"}),
    "flux": (field, rng.normal(3e7, 1e7, shape), {"units": "J/m**2"}),
    "dem": (("y", "x"), rng.normal(1500, 500, (60, 80)), {"units": "m"}),
    "image": (("row", "column"), rng.random((20, 30))),
}, {
    "time": time,
    "lat": ("lat", lat, {"units": "degrees_north"}),
    "lon": ("lon", lon, {"units": "degrees_east"}),
    "plev": ("plev", [100000.0, 85000, 50000, 20000], {"units": "Pa"}),
    "y": ("y", 5420000 - 1000.0 * np.arange(60), {"units": "m", "standard_name": "projection_y_coordinate"}),
    "x": ("x", 500000 + 1000.0 * np.arange(80), {"units": "m", "standard_name": "projection_x_coordinate"}),
})
ds.to_zarr(sys.argv[1] + "/long.zarr", consolidated=True)
`;

/** A rectangle of the page, in CSS pixels. */
type Rectangle = Readonly<Record<"left" | "top" | "right" | "bottom", number>>;

/** Notes which texts each canvas has, and where. A drawing begins when the canvas is cleared. Runs in the page. */
const NOTE_LABELS = `
const labels = new Map();
const { fillText, clearRect } = CanvasRenderingContext2D.prototype;
const { set, get } = Object.getOwnPropertyDescriptor(HTMLCanvasElement.prototype, "width");
Object.defineProperty(HTMLCanvasElement.prototype, "width", { get, set(width) { labels.delete(this); set.call(this, width); } });
CanvasRenderingContext2D.prototype.clearRect = function (x, y, ...size) {
  if (x === 0 && y === 0) labels.delete(this.canvas);
  return clearRect.call(this, x, y, ...size);
};
CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
  const { actualBoundingBoxLeft, actualBoundingBoxRight, actualBoundingBoxAscent, actualBoundingBoxDescent } = this.measureText(text);
  const corners = [[x - actualBoundingBoxLeft, y - actualBoundingBoxAscent], [x + actualBoundingBoxRight, y + actualBoundingBoxDescent]]
    .map(([x, y]) => this.getTransform().transformPoint({ x, y }));
  if (text !== "") labels.set(this.canvas, [...(labels.get(this.canvas) ?? []), { text, corners }]);
  return fillText.call(this, text, x, y, ...rest);
};
window.labelsOf = (selector) => [...document.querySelectorAll(selector)].flatMap((canvas) => {
  const { x, y, width } = canvas.getBoundingClientRect();
  return (labels.get(canvas) ?? []).map(({ text, corners }) => {
    const [xs, ys] = ["x", "y"].map((side) => corners.map((corner) => corner[side] * width / canvas.width).sort((a, b) => a - b));
    return { text, left: x + xs[0], right: x + xs[1], top: y + ys[0], bottom: y + ys[1] };
  });
});`;

const SIZES: Readonly<Record<string, readonly [width: number, height: number]>> = {
  laptop: [1280, 800],
  desk: [1920, 1080],
  tablet: [820, 1180],
  phone: [390, 844],
};

/** Variables, what is chosen, and labels that are expected. */
const VIEWS: readonly (readonly [hash: string, labels: readonly string[]])[] = [
  ["v=pr&p=8,50", ["1.0×10⁻⁵", "pr [kg m⁻² s⁻¹]", "50°N"]],
  ["v=hus&p=8,50&along=plev", ["plev [hPa]", "hus [kg kg⁻¹]"]],
  ["v=flux&p=8,50&plot=histogram&log", ["flux [J/m²]", "2×10⁷"]],
  ["v=dem", ["x [km]", "y [km]", "5,400"]],
  ["v=tas&x=lon&y=time", ["time", "lon", "10°E"]],
];

t.test("the page's layout in Chromium", { skip: clientMissing("chromium", "xarray", "zarr") }, async (t) => {
  const write = (directory: string) => askPython(WRITE, null, [directory]);
  const explorer = await openExplorer(t, write, { long: { location: "long.zarr" } });
  for (const [device, [width, height]] of Object.entries(SIZES)) {
    const isPhone = device === "phone";
    const viewport = { viewport: { width, height }, isMobile: isPhone, hasTouch: isPhone };
    const { page, problems } = await explorer.open(t, viewport);
    await page.addInitScript(NOTE_LABELS);
    const open = async (hash: string): Promise<void> => {
      await page.goto("about:blank");
      await page.goto(explorer.addressOf("long", hash));
      await shows(page);
      if (hash.includes("p=")) await page.locator(".plot .u-over").waitFor();
    };

    for (const [hash, expected] of VIEWS) {
      await t.test(`labels of ${hash} do not overlap on a ${device}`, async (t) => {
        await open(hash);
        const all: (Rectangle & { text: string })[] = await page.evaluate("labelsOf('canvas')");
        const texts = all.map(({ text }) => text);
        for (const label of expected) t.ok(texts.includes(label), `${label} among ${texts.join(", ")}`);
        const overlaps = all.flatMap((one, index) =>
          all
            .slice(index + 1)
            .flatMap((other) => (overlap(one, other) ? [`${one.text} and ${other.text}`] : [])),
        );
        t.same(overlaps, []);
        const { left, right } = await rectangleOf(page, ".map");
        const cut = (await page.evaluate<typeof all>("labelsOf('.map canvas')")).filter(
          (label) => label.left < left - 1 || label.right > right + 1,
        );
        t.same(cut, []);
      });
    }

    await t.test(`a plot and the code leave the map its place on a ${device}`, async (t) => {
      await open("v=tas&p=8,50");
      const stage = await rectangleOf(page, ".stage");
      const [map, chart] = [await rectangleOf(page, ".map"), await rectangleOf(page, ".chart")];
      const isBeside = chart.left >= map.right;
      const half = 0.5 * (isBeside ? stage.right - stage.left - 32 : stage.bottom - stage.top);
      t.ok((isBeside ? map.right - map.left : map.bottom - map.top) >= half, "half of the room for the map");
      t.ok(map.bottom - map.top >= 0.5 * (stage.bottom - stage.top), "no strip");
      t.ok(chart.bottom - chart.top >= 200);
      t.equal(isBeside, device === "laptop" || device === "desk");
      await page.locator(isPhone ? ".sheets button >> nth=2" : "#code-button").click();
      const code = await rectangleOf(page, ".code");
      for (const other of [".stage", ".map .touch", ".plot"]) {
        const covered = clipped(await rectangleOf(page, other), await rectangleOf(page, ".stage"));
        t.notOk(overlap(code, covered), `the code does not cover ${other}`);
      }
      t.ok(code.bottom <= height && code.bottom - code.top > 100, "the code is seen");
      await page.getByRole("button", { name: "Close the code" }).click();
      t.equal(await page.locator(".code").count(), 0);
    });

    if (isPhone) {
      await t.test("the dataset's id is legible on a phone", async (t) => {
        await open("v=tas");
        const link = page.locator(".crumb a");
        t.equal(await link.innerText(), "long");
        t.notOk(
          await link.evaluate(`(each) => each.parentElement.scrollWidth > each.parentElement.clientWidth`),
        );
      });
    }
    t.same(problems, []);
  }

  await t.test("the picture is described in words, again whenever it rests", async (t) => {
    const { page } = await explorer.open(t);
    await page.goto(explorer.addressOf("long", "v=tas&d.time=2013-01-01T06"));
    await shows(page);
    const picture = page.getByRole("img", { name: /^Air temperature/ });
    const textOf = () => picture.getAttribute("aria-label");
    const place = /^Air temperature, 2013-01-01 06:00, from 4\.9°E to 12\.1°E, 44\.9°N to 53\.1°N$/;
    t.match(await textOf(), place);
    await page.getByRole("application").focus();
    for (const key of ["+", "."]) await page.keyboard.press(key);
    await page
      .getByRole("img", {
        name: /^Air temperature, 2013-01-01 12:00, from 4\.9°E to 12\.1°E, 46\.\d°N to 51\.\d°N$/,
      })
      .waitFor();
    t.notMatch(await textOf(), place);
    await page.goto(explorer.addressOf("long", "v=dem"));
    await page.getByRole("img", { name: "dem, x from 500 to 580 km, y from 5361 to 5421 km" }).waitFor();
    await page.goto(explorer.addressOf("long", "v=image"));
    await page.getByRole("img", { name: "image, columns 0 to 29, rows 0 to 19" }).waitFor();
  });
});

async function rectangleOf(page: Page, selector: string): Promise<Rectangle> {
  const box = await page.locator(selector).boundingBox();
  const { x = 0, y = 0, width = 0, height = 0 } = box ?? {};
  return { left: x, top: y, right: x + width, bottom: y + height };
}

/** Returns the part of a rectangle that lies in another one. */
function clipped(one: Rectangle, within: Rectangle): Rectangle {
  return {
    left: Math.max(one.left, within.left),
    top: Math.max(one.top, within.top),
    right: Math.min(one.right, within.right),
    bottom: Math.min(one.bottom, within.bottom),
  };
}

function overlap(one: Rectangle, other: Rectangle): boolean {
  const { left, top, right, bottom } = clipped(one, other);
  return right - left > 0.5 && bottom - top > 0.5;
}
