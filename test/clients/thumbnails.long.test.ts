import { rm } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { openBrowser } from "../support/clients/browser-page.js";
import { errorsOf, makeTemporaryDirectory, runPython, serveDatasets } from "../support/clients/fixtures.js";
import { clientMissing } from "../support/clients/require-client.js";
import { type DecodedPng, decodePng } from "../support/codec/decode-png.js";

/** A picture, and its pixels as `write_pictured.py` makes them of what xarray reads. */
interface ExpectedPicture {
  readonly location: string;
  readonly variable: string;
  readonly query: string;
  readonly width: number;
  readonly height: number;
  /** Base64: 0 for missing values, else a colour from 1 to 255. */
  readonly pixels: string;
}

/** What evaluates in the page knows of a document. */
interface BrowserDocument {
  readonly images: readonly { readonly naturalWidth: number; readonly naturalHeight: number }[];
  createElement(name: "canvas"): {
    width: number;
    height: number;
    getContext(kind: "2d"): {
      drawImage(image: unknown, x: number, y: number): void;
      getImageData(x: number, y: number, width: number, height: number): { data: Uint8ClampedArray };
    };
  };
}

t.setTimeout(240_000);

t.test(
  "pictures show what xarray reads, in Chromium too",
  { skip: clientMissing("xarray", "zarr", "netcdf4", "scipy", "rasterio", "chromium") },
  async (t) => {
    const directory = await makeTemporaryDirectory();
    const expected: ExpectedPicture[] = JSON.parse(await runPython("write_pictured.py", [directory]));
    const locations = [...new Set(expected.map(({ location }) => location))];
    const server = await serveDatasets(t, {
      datasets: Object.fromEntries(locations.map((name) => [name, { location: join(directory, name) }])),
      directory: join(directory, "server"),
    });
    t.teardown(async () => {
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    });
    const browser = await openBrowser(t);
    const page = await browser.newPage();

    for (const picture of expected) {
      const { location, variable, query, width, height } = picture;
      const url = `${server.url}/datasets/${location}/thumbnail/${variable}.png?${query}`;
      const png = decodePng(new Uint8Array(await (await fetch(url)).arrayBuffer()));
      t.strictSame([png.width, png.height], [width, height], url);
      const wanted = Buffer.from(picture.pixels, "base64");
      // xarray unpacks in single precision, so that a value may fall on the other side of a colour's bound.
      const off = png.indices.filter((index, pixel) => index !== wanted[pixel]);
      const far = png.indices.filter((index, pixel) => isFar(index, wanted[pixel] as number));
      t.equal(far.length, 0, `${url}: every pixel is within one colour, and missing if xarray says so`);
      t.ok(off.length < wanted.length / 200, `${url}: ${off.length} of ${wanted.length} are off by one`);
      t.ok(new Set(png.indices).size > 50 && wanted.includes(0), "with many colours, and missing values");

      await page.goto(url);
      const shown = await page.evaluate(() => {
        const { document } = globalThis as unknown as { document: BrowserDocument };
        const image = document.images[0] as BrowserDocument["images"][0];
        const canvas = document.createElement("canvas");
        canvas.width = image.naturalWidth;
        canvas.height = image.naturalHeight;
        const context = canvas.getContext("2d");
        context.drawImage(image, 0, 0);
        return [...context.getImageData(0, 0, canvas.width, canvas.height).data];
      });
      t.ok(Buffer.from(shown).equals(canvasOf(png)), `${url}: Chromium draws the same pixels`);
    }
    t.same(errorsOf(server), []);
  },
);

function isFar(index: number, wanted: number): boolean {
  return Math.abs(index - wanted) > 1 || (index === 0) !== (wanted === 0);
}

/** Returns the pixels as a canvas has them: a transparent one has no colour. */
function canvasOf(png: DecodedPng): Buffer {
  const pixels = [...png.indices].flatMap((index) => (index === 0 ? [0, 0, 0, 0] : png.colourOf(index)));
  return Buffer.from(pixels);
}
