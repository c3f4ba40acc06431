import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import t, { type Test } from "tap";
import { createMemorySource } from "../../src/open/memory-source.js";
import { openBrowser } from "../support/clients/browser-page.js";
import { commandOf, GENERATIONS } from "../support/clients/client-generation.js";
import { runCommand } from "../support/clients/fixtures.js";
import { MAP_LIBRARIES, startMapPages } from "../support/clients/map-page.js";
import { clientMissing, clientMissingIn } from "../support/clients/require-client.js";
import { datasetOf } from "../support/datasets/sample-tree.js";
import { startServer } from "../support/servers/start-server.js";

const QUERY = "range=0,255&isel.step=1";
const VALUES = { west: 40, east: 200, missing: Number.NaN } as const;

/** Serves the whole Earth at two steps: one value in the west, another in the east, none in the south. */
function serveEarth(t: Test) {
  const cells = Float32Array.from({ length: 36 * 72 }, (_, at) => {
    const [row, column] = [Math.floor(at / 72), at % 72];
    return row >= 18 ? VALUES.missing : column < 36 ? VALUES.west : VALUES.east;
  });
  const arrays = [
    {
      name: "v",
      dims: ["step", "lat", "lon"],
      shape: [2, 36, 72],
      data: Float32Array.of(...new Float32Array(36 * 72), ...cells),
    },
    {
      name: "lat",
      dims: ["lat"],
      shape: [36],
      data: Float64Array.from({ length: 36 }, (_, at) => 87.5 - 5 * at),
      attrs: { units: "degrees_north" },
    },
    {
      name: "lon",
      dims: ["lon"],
      shape: [72],
      data: Float64Array.from({ length: 72 }, (_, at) => -177.5 + 5 * at),
      attrs: { units: "degrees_east" },
    },
  ];
  const source = createMemorySource({ location: "memory", groups: [{ path: "/", arrays }] });
  return startServer(t, { datasets: [datasetOf("earth", source)] });
}

/** Returns what the page shows at three places: red, green, blue. */
async function coloursOf(page: Page): Promise<Record<keyof typeof VALUES, number[]>> {
  const shot = (await page.screenshot()).toString("base64");
  const colours = await page.evaluate(
    `(async () => {
      const blob = await (await fetch("data:image/png;base64,${shot}")).blob();
      const picture = await createImageBitmap(blob);
      const context = new OffscreenCanvas(512, 512).getContext("2d");
      context.drawImage(picture, 0, 0);
      return [[128, 128], [384, 128], [256, 384]].map(([x, y]) => [...context.getImageData(x, y, 1, 1).data.slice(0, 3)]);
    })()`,
  );
  const [west = [], east = [], missing = []] = colours as number[][];
  return { west, east, missing };
}

t.test("map libraries show tiles by their TileJSON", { skip: clientMissing("chromium") }, async (t) => {
  const { url, json } = await serveEarth(t);
  const tiles = `${url}/datasets/earth/tiles/v`;
  const { colours } = (await json(`/datasets/earth/tiles/v/legend.json?${QUERY}`)) as { colours: string[] };
  const expected = (value: number) =>
    [1, 3, 5].map((at) => Number.parseInt(colours[value]!.slice(at, at + 2), 16));
  const pages = await startMapPages(t);
  const browser = await openBrowser(t, "--use-angle=swiftshader", "--enable-unsafe-swiftshader");
  for (const library of MAP_LIBRARIES) {
    const page = await browser.newPage({ viewport: { width: 512, height: 512 } });
    const failures: string[] = [];
    page.on("pageerror", (error) => failures.push(String(error)));
    await page.goto(`${pages}/${library}?tiles=${encodeURIComponent(`${tiles}/tilejson.json?${QUERY}`)}`);
    await page.waitForFunction(`document.title === "ready"`);
    t.same(
      await coloursOf(page),
      { west: expected(VALUES.west), east: expected(VALUES.east), missing: [255, 255, 255] },
      library,
    );
    t.same(failures, [], `${library} has no errors`);
    await page.close();
  }
});

for (const generation of GENERATIONS) {
  t.test(`GDAL reads tiles (${generation})`, { skip: clientMissingIn(generation, "gdal") }, async (t) => {
    const { url, get } = await serveEarth(t);
    const directory = t.testdir({});
    const edge = 20_037_508.342789244;
    const description = `<GDAL_WMS><Service name="TMS"><ServerUrl>${url}/datasets/earth/tiles/v/\${z}/\${x}/\${y}.png?${QUERY.replace("&", "&amp;")}</ServerUrl></Service>
<DataWindow><UpperLeftX>-${edge}</UpperLeftX><UpperLeftY>${edge}</UpperLeftY><LowerRightX>${edge}</LowerRightX><LowerRightY>-${edge}</LowerRightY>
<TileLevel>4</TileLevel><TileCountX>1</TileCountX><TileCountY>1</TileCountY><YOrigin>top</YOrigin></DataWindow>
<Projection>EPSG:3857</Projection><BlockSizeX>256</BlockSizeX><BlockSizeY>256</BlockSizeY><BandsCount>4</BandsCount></GDAL_WMS>`;
    await writeFile(join(directory, "tiles.xml"), description);
    const script = `
from osgeo import gdal
import sys
gdal.UseExceptions()
tiles, tile = gdal.Open(sys.argv[1]), gdal.Open(sys.argv[2])
# The dataset has the pixels of zoom 4, and its overview those of zoom 0.
bands = [tiles.GetRasterBand(band).GetOverview(3).ReadAsArray() for band in (1, 2, 3, 4)]
table = tile.GetRasterBand(1).GetRasterColorTable()
indices = tile.ReadAsArray()
colours = [table.GetColorEntry(index) for index in range(table.GetCount())]
print(all((band == [[colours[i][at] for i in row] for row in indices]).all() for at, band in enumerate(bands)), len(set(indices.ravel().tolist())))
`;
    const tile = await get(`/datasets/earth/tiles/v/0/0/0.png?${QUERY}`);
    await writeFile(join(directory, "tile.png"), Buffer.from(await tile.arrayBuffer()));
    await writeFile(join(directory, "read.py"), script);
    const files = ["read.py", "tiles.xml", "tile.png"].map((name) => join(directory, name));
    const [program, args] = commandOf(generation, "/usr/bin/python3", ["-W", "ignore", ...files]);
    const { stdout, stderr } = await runCommand(program, args);
    t.equal(stdout, "True 3\n", stderr);
  });
}
