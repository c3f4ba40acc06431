import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import t, { type Test } from "tap";
import { colourTable } from "../../src/colour/colour-scales.js";
import { tableIndexOf } from "../../src/explore/page/map/frame-painter.js";
import { clientMissing } from "../support/clients/require-client.js";
import { effort } from "../support/effort.js";
import { openExplorer, shows } from "../support/explore/explorer-browser.js";
import {
  type Allowed,
  type ExpectedPicture,
  type ExpectedPixel,
  type KnownPlace,
  startDrawing,
  writeWildFiles,
} from "../support/explore/wild-files.js";

t.setTimeout(600_000);

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Rules that are violated. Runs in the page. */
const VIOLATIONS = `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
  violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html.slice(0, 160)).join(" | ")))`;

/** How a file is looked at. */
interface Seen {
  readonly file: string;
  /** What is shown first: any of these. */
  readonly first: readonly string[];
  /** What is shown next. */
  readonly next?: readonly string[];
  /** Pixels by which the edges of cells may be off. */
  readonly blur?: number;
  /** Pixels around that a mean of cells may be made of. */
  readonly spread?: number;
  /** Whether dots or polygons lie on a map. */
  readonly isScattered?: boolean;
  /** Whether it has colours of its own, in place of a scale. */
  readonly hasColours?: boolean;
  /** Whether axe looks at it. */
  readonly isChecked?: boolean;
}

const FIELDS = ["T2", "U", "V", "RAINNC"];
const OCEAN = ["temp", "u", "v"];

const FILES: readonly Seen[] = [
  { file: "wrf.nc", first: FIELDS, next: ["T2", "U", "V", "RAINNC"], blur: 0.6 },
  { file: "roms.nc", first: OCEAN, next: ["temp", "u", "zeta"], blur: 0.6 },
  { file: "swath.nc", first: ["geophysical_data/chlor_a"], blur: 0.6 },
  { file: "lambert.nc", first: ["Temperature_height_above_ground"], isChecked: true },
  { file: "goes.nc", first: ["CMI"] },
  { file: "seaice.nc", first: ["F17_ICECON"] },
  { file: "southern-ice.nc", first: ["ice_conc"] },
  { file: "utm.tif", first: ["band_data"], hasColours: true, isChecked: true },
  { file: "geographic.tif", first: ["band_data"] },
  { file: "palette.tif", first: ["band_data"], hasColours: true },
  { file: "mercator.tif", first: ["band_data"] },
  { file: "micrograph.tif", first: ["band_data"] },
  { file: "photo.tif", first: ["band_data"], hasColours: true },
  {
    file: "ugrid.nc",
    first: ["Mesh2_waterlevel", "Mesh2_temperature"],
    next: ["Mesh2_temperature", "Mesh2_waterlevel"],
    blur: 0.6,
    isScattered: true,
  },
  { file: "stations.nc", first: ["air_temperature"], isScattered: true, isChecked: true },
  { file: "trajectory.nc", first: ["sst"], isScattered: true },
  { file: "profiles.nc", first: ["temperature"], spread: 3 },
  { file: "tiles.nc", first: ["LST"], spread: 13 },
  { file: "crumbs.nc", first: ["LST"], spread: 18 },
];

type Draw = ReturnType<typeof startDrawing>;
type Pixel = readonly [red: number, green: number, blue: number, alpha: number];

/** What the canvas shows, by its own description. */
interface Shown {
  readonly variable: string;
  readonly at: readonly number[];
  readonly box: readonly number[];
  readonly range: readonly [number, number];
  readonly width: number;
  readonly height: number;
  /** Where the canvas lies in the window, and on the canvas above it. */
  readonly left: number;
  readonly top: number;
  readonly inset: readonly [number, number];
}

const DESCRIBE = `(() => {
  const canvas = document.querySelector("canvas.data");
  const numbers = (text) => text.split(",").map(Number);
  const [rect, over] = [canvas, document.querySelector("canvas.over")].map((each) => each.getBoundingClientRect());
  const { variable, at, box, range } = canvas.dataset;
  return {
    variable, at: numbers(at), box: numbers(box), range: numbers(range), width: canvas.width, height: canvas.height,
    left: rect.left, top: rect.top, inset: [rect.left - over.left, rect.top - over.top],
  };
})()`;

/** Returns the colours of pixels of a canvas. */
function readPixels(
  page: Page,
  selector: string,
  places: readonly (readonly [number, number])[],
): Promise<Pixel[]> {
  return page.evaluate(`(() => {
    const canvas = document.querySelector(${JSON.stringify(selector)});
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return ${JSON.stringify(places)}.map(([x, y]) => [...data.subarray((y * canvas.width + x) * 4, (y * canvas.width + x) * 4 + 4)]);
  })()`);
}

const TABLE = colourTable("viridis");

/** Returns the values that a colour of viridis stands for; none if it is no such colour. */
function valuesOf([red, green, blue, alpha]: Pixel, [low, high]: readonly [number, number]): number[] {
  const values: number[] = [];
  for (let byte = 2; byte <= 253 && alpha === 255; byte++) {
    const at = tableIndexOf(byte) * 3;
    if (TABLE[at] === red && TABLE[at + 1] === green && TABLE[at + 2] === blue)
      values.push(low + ((byte - 2) / 251) * (high - low));
  }
  return values;
}

/** Tells whether a pixel has the colour of a value, within one step of the colour table. */
function isRight(pixel: Pixel, allowed: Allowed, range: readonly [number, number]): boolean {
  if (allowed === "outside") return pixel[3] === 0;
  if (allowed === "rim") return pixel[3] === 128;
  if (Array.isArray(allowed))
    return pixel[3] === 255 && allowed.every((value, band) => Math.abs(value - pixel[band]!) <= 1);
  const found = valuesOf(pixel, range);
  if (allowed === null) return pixel[3] === 255 && found.length === 0;
  const step = (range[1] - range[0]) / 251;
  const { low, high } =
    typeof allowed === "number"
      ? { low: allowed, high: allowed }
      : (allowed as { low: number; high: number });
  const [least, greatest] = [low, high].map((value) => Math.max(range[0], Math.min(range[1], value)));
  return found.some((value) => value >= least! - step * 1.01 && value <= greatest! + step * 1.01);
}

function wrongPixels(
  pixels: readonly Pixel[],
  expected: readonly ExpectedPixel[],
  range: Shown["range"],
): string[] {
  return expected.flatMap(([x, y, allowed], index) => {
    const pixel = pixels[index]!;
    if (allowed.some((each) => isRight(pixel, each, range))) return [];
    return [`${x},${y}: expected ${JSON.stringify(allowed)}, received ${valuesOf(pixel, range)[0] ?? pixel}`];
  });
}

/** Waits until the pointer's text names a place, within the reach of a cell; returns the text. */
async function readDegrees(
  page: Page,
  { left, top }: Shown,
  { x, y, lon, lat, reach }: KnownPlace,
): Promise<boolean> {
  await page.mouse.move(left + x, top + y);
  // Texts are rounded to the decimals that tell cells apart.
  try {
    await page.waitForFunction(
      ([lon, lat, overLon, overLat]) => {
        // biome-ignore lint/suspicious/noExplicitAny: this runs in the page
        const text: string = (globalThis as any).document.querySelector(".readout")?.innerText ?? "";
        const found = /([\d.]+)°([NS]?) +([\d.]+)°([EW]?)/.exec(text);
        if (found === null) return false;
        const [, north, ns, east, ew] = found;
        const off = Number(east) * (ew === "W" ? -1 : 1) - lon;
        const isNear = Math.abs(off - 360 * Math.round(off / 360)) <= overLon;
        return isNear && Math.abs(Number(north) * (ns === "S" ? -1 : 1) - lat) <= overLat;
      },
      [lon, lat, 1.1 * reach[0] + 0.02, 1.1 * reach[1] + 0.02] as const,
      { timeout: 30_000 },
    );
    return true;
  } catch {
    return false;
  }
}

/** Returns the share of points of the coast at which a dark line is drawn: of the scale that fits better. */
async function coastShare(
  page: Page,
  { inset }: Shown,
  coasts: NonNullable<ExpectedPicture["coasts"]>,
): Promise<number> {
  const shares = await Promise.all(
    Object.values(coasts).map(async (points) => {
      const around = points.flatMap(([x, y]) =>
        [-1, 0, 1].flatMap((dy) =>
          [-1, 0, 1].map((dx) => [Math.floor(x + inset[0]) + dx, Math.floor(y + inset[1]) + dy] as const),
        ),
      );
      const pixels = await readPixels(page, "canvas.over", around);
      const isDark = ([red, green, blue, alpha]: Pixel) => alpha > 150 && red + green + blue < 300;
      const hits = points.filter((_, index) => pixels.slice(index * 9, index * 9 + 9).some(isDark));
      return points.length === 0 ? 0 : hits.length / points.length;
    }),
  );
  return Math.max(...shares);
}

/** Returns how alike two pictures are: 1 if their values rise and fall together, 0 if they have nothing to do with each other. */
function likeness(one: readonly (number | null)[], other: readonly (number | null)[]): number {
  const pairs = one
    .map((each, index) => [each, other[index]])
    .filter((pair): pair is [number, number] => !pair.includes(null));
  const means = [0, 1].map((side) => pairs.reduce((sum, pair) => sum + pair[side]!, 0) / pairs.length);
  let [both, ofOne, ofOther] = [0, 0, 0];
  for (const [first, second] of pairs) {
    const [a, b] = [first - means[0]!, second - means[1]!];
    both += a * b;
    ofOne += a * a;
    ofOther += b * b;
  }
  return both / Math.sqrt(ofOne * ofOther);
}

/** Reads how bright the pixels of a thumbnail are, and null where it is clear; first its width and height. Runs in the page. */
const BRIGHTNESS = `async (url) => {
  const response = await fetch(url);
  const bitmap = await createImageBitmap(await response.blob());
  const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
  context.drawImage(bitmap, 0, 0);
  const { data } = context.getImageData(0, 0, bitmap.width, bitmap.height);
  const brightness = Array.from({ length: data.length / 4 }, (_, index) => {
    const [red, green, blue, alpha] = data.subarray(index * 4, index * 4 + 4);
    return alpha < 255 ? null : red * 0.2126 + green * 0.7152 + blue * 0.0722;
  });
  return [bitmap.width, bitmap.height, ...brightness];
}`;

/** Checks that a thumbnail is brightest where values are greatest, and less alike if it is turned over. */
async function checkThumbnail(
  t: Test,
  page: Page,
  { file, hasColours = false }: Seen,
  { variable, at }: Shown,
  draw: Draw,
): Promise<void> {
  const [width, height, ...brightness] = (await page.evaluate(
    `(${BRIGHTNESS})(location.href.replace(/explore.*/, "thumbnail/${variable}.png${hasColours ? "" : "?scale=viridis"}"))`,
  )) as number[];
  const { pixels } = await draw<{ pixels: [number, number, number | null][] }>({
    file,
    variable,
    at: at.map(() => 0),
    thumbnail: [width!, height!],
  });
  const seen = pixels.map(([x, y]) => brightness[y * width! + x]!);
  const alike = (turn: (x: number, y: number) => [number, number]) =>
    likeness(
      seen,
      pixels.map(
        (_, index) => pixels[(([x, y]) => y * 18 + x)(turn(index % 18, Math.floor(index / 18)))]![2],
      ),
    );
  const right = alike((x, y) => [x, y]);
  const turned = Math.max(
    alike((x, y) => [17 - x, y]),
    alike((x, y) => [x, 13 - y]),
    alike((x, y) => [17 - x, 13 - y]),
  );
  t.ok(
    right > 0.8 && right > turned + 0.05,
    `${file}: the thumbnail stands right (${right}; turned over ${turned})`,
  );
}

t.test(
  "files as models, satellites and maps come in are seen right",
  { skip: clientMissing("chromium", "gdal", "netcdf4") },
  async (t) => {
    const settings = Object.fromEntries(FILES.map(({ file }) => [idOf(file), { location: file }]));
    const explorer = await openExplorer(t, writeWildFiles, settings);
    const draw = startDrawing(t, explorer.written);
    // Some of each kind; all with an effort of 1.
    for (const seen of FILES.filter((_, index) => (index + 2) % 5 < effort(5))) {
      await t.test(seen.file, async (t) => {
        const { page, problems } = await explorer.open(t, { viewport: { width: 1200, height: 850 } });
        for (const variable of ["", ...(seen.next ?? [])]) {
          const hash = `c=viridis${variable && `&v=${variable}`}`;
          if (variable === "") await page.goto(explorer.addressOf(idOf(seen.file), hash));
          else if (
            variable === (await page.evaluate("document.querySelector('canvas.data').dataset.variable"))
          )
            continue;
          else await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
          await shows(page, variable);
          await checkPicture(t, page, seen, draw, variable);
        }
        if (seen.isChecked === true) {
          await page.evaluate(AXE);
          t.same(await page.evaluate(VIOLATIONS), [], "axe finds nothing");
        }
        t.same(problems, [], "nothing on the console, and no request to elsewhere");
        await page.close();
      });
    }
  },
);

function idOf(file: string): string {
  return file.replace(/\..*/, "");
}

async function checkPicture(t: Test, page: Page, seen: Seen, draw: Draw, variable: string): Promise<void> {
  const shown = (await page.evaluate(DESCRIBE)) as Shown;
  const { width, height, box, range } = shown;
  const name = `${seen.file} ${shown.variable}`;
  if (variable === "") t.ok(seen.first.includes(shown.variable), `${name} is shown first`);
  const { file, blur, spread } = seen;
  const expected = await draw({
    file,
    variable: shown.variable,
    at: shown.at,
    box,
    width,
    height,
    blur,
    spread,
  });
  const places = [...expected.pixels, expected.mark].map(([x, y]) => [Math.floor(x), Math.floor(y)] as const);
  const pixels = await readPixels(page, "canvas.data", places);
  const wrong = wrongPixels(pixels, expected.pixels, range);
  t.same(wrong.slice(0, 6), [], `${name}: ${wrong.length} of ${expected.pixels.length} pixels are wrong`);
  t.ok(expected.pixels.length > 40, `${name}: ${expected.pixels.length} pixels are compared`);
  const [x, y, inMark] = expected.mark;
  t.ok(
    x > 0 && x < width / 2 && y > 0 && y < height / 2,
    `${name}: the mark is in the upper left, at ${x},${y}`,
  );
  if (inMark.length > 0)
    t.same(wrongPixels(pixels.slice(-1), [expected.mark], range), [], `${name}: the mark is seen`);
  t.ok(
    Math.abs(Math.log(expected.proportion)) < 0.03,
    `${name}: squares are square (${expected.proportion})`,
  );
  const hasThumbnail = spread === undefined && seen.isScattered !== true;
  if (variable === "" && hasThumbnail) await checkThumbnail(t, page, seen, shown, draw);
  if (expected.coasts === undefined) return;
  const share = await coastShare(page, shown, expected.coasts);
  t.ok(share > 0.9, `${name}: ${share} of the points of the coast have a line`);
  for (const place of expected.places?.slice(0, 3) ?? []) {
    const isRight = await readDegrees(page, shown, place);
    const text = isRight ? "" : await page.locator(".readout").innerText();
    t.ok(isRight, `${name}: ${place.name} is at ${place.lat} N, ${place.lon} E; read “${text}”`);
  }
}
