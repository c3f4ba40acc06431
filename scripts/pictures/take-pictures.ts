import { execFileSync } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, extname, join } from "node:path";
import type { MultiLineString } from "geojson";
import { chromium, type Page } from "playwright-core";
import { mesh } from "topojson-client";
import type { Topology } from "topojson-specification";
import { createServer } from "../../src/library/create-server.js";
import { makeDemoData } from "../demo/demo-data.js";

/*
 * Takes the README's pictures of the demonstration, and pictures of files as models, satellites and maps come in, in Debian's Chromium.
 * `npm run build && node dist/scripts/pictures/take-pictures.js [DIRECTORY [NAME…]]`
 */
const [directory = "scripts/pictures", ...names] = process.argv.slice(2);

/** A picture: the page, the size of the window, and what is done before. */
interface Picture {
  readonly name: string;
  readonly path: string;
  readonly width: number;
  readonly height: number;
  readonly prepare: (page: Page) => Promise<void>;
}

const WINTER = "d.time=2013-12-20T18:00";
const TILES = "time=2013-12-20T18:00&range=240,305&scale=turbo&interpolate=linear";

const PICTURES: Picture[] = [
  {
    name: "explorer-map",
    path: `/datasets/air/explore#v=air&${WINTER}`,
    width: 1200,
    height: 800,
    prepare: untilRead,
  },
  {
    name: "explorer-series",
    path: `/datasets/air/explore#v=air&${WINTER}&p=262.5,40&along=time`,
    width: 1200,
    height: 960,
    prepare: untilRead,
  },
  {
    name: "explorer-phone",
    path: "/datasets/climate/groups/surface/daily/explore#v=sst&d.time=2020-08-15",
    width: 390,
    height: 760,
    prepare: untilRead,
  },
  {
    name: "dataset-page",
    path: "/datasets/air/",
    width: 1000,
    height: 1080,
    async prepare(page) {
      for (const text of ["Coordinates", "(time, lat, lon)"])
        await page.locator("summary", { hasText: text }).click();
      await page.evaluate("scrollTo(0, 0)");
    },
  },
  {
    name: "map-tiles",
    path: `/datasets/air/tiles/air/tilejson.json?${TILES}`,
    width: 1000,
    height: 560,
    prepare: showTiles,
  },
];

/** Files of `test/fixtures/write_wild_files.py` in the explorer: dataset, and what its address says. */
const SEEN: Readonly<Record<string, string>> = {
  wrf: "v=T2",
  roms: "v=temp&d.s_rho=last",
  swath: "",
  goes: "",
  seaice: "",
  ugrid: "v=Mesh2_temperature",
  stations: "p=12.5,41.9",
  utm: "",
  palette: "",
  tiles: "",
};

for (const [id, hash] of Object.entries(SEEN)) {
  const path = `/datasets/${id}/explore${hash && `#${hash}`}`;
  PICTURES.push({ name: `seen-${id}`, path, width: 1000, height: 680, prepare: untilRead });
}

/** Coasts as lines that do not jump from one side of the map to the other. */
async function readCoasts(file: string): Promise<MultiLineString> {
  const land = JSON.parse(await readFile(file, "utf8")) as Topology;
  const lines: number[][][] = [];
  for (const line of mesh(land).coordinates)
    line.forEach((place, at) => {
      const isJump = at > 0 && Math.abs(place[0]! - line[at - 1]![0]!) > 180;
      if (at === 0 || isJump) lines.push([]);
      lines.at(-1)!.push(place);
    });
  return { type: "MultiLineString", coordinates: lines };
}

/** Shows the tiles of the page's TileJSON in OpenLayers, with coasts, a grid of degrees and the legend above them. */
async function showTiles(page: Page): Promise<void> {
  const { resolve } = createRequire(import.meta.url);
  const { tiles } = JSON.parse(await page.innerText("body")) as { readonly tiles: readonly string[] };
  const coasts = JSON.stringify(await readCoasts(resolve("world-atlas/land-110m.json")));
  // Of the server's origin: Chromium lets no other page read from this machine.
  const address = new URL("/map", page.url()).href;
  const legend = page.url().replace("tilejson.json", "legend.png").replaceAll("&", "&amp;");
  const body = `<style>
    body { margin: 0; background: #dfe6ec }
    #map { height: 100vh }
    p { position: absolute; top: 0; right: 16px; padding: 6px 10px; background: #fff; font: 16px sans-serif }
  </style><div id='map'></div><p>240 <img src="${legend}"> 305 K</p>`;
  await page.route(address, (route) => route.fulfill({ contentType: "text/html", body }));
  await page.goto(address);
  await page.addStyleTag({ path: resolve("ol/ol.css") });
  await page.addScriptTag({ path: resolve("ol/dist/ol.js") });
  await page.evaluate(`new Promise((done) => {
    const source = new ol.source.XYZ({ url: ${JSON.stringify(tiles[0])} });
    const features = new ol.format.GeoJSON().readFeatures(${coasts}, { featureProjection: "EPSG:3857" });
    const style = new ol.style.Style({ stroke: new ol.style.Stroke({ color: "#1d2b36", width: 1.2 }) });
    const layers = [
      new ol.layer.Tile({ source, opacity: 0.85 }),
      new ol.layer.Vector({ source: new ol.source.Vector({ features }), style }),
      new ol.layer.Graticule({ strokeStyle: new ol.style.Stroke({ color: "#1d2b3640" }), showLabels: true }),
    ];
    const view = new ol.View({ center: ol.proj.fromLonLat([-97, 48]), zoom: 3.3 });
    const map = new ol.Map({ target: "map", layers, view });
    map.once("rendercomplete", () => done());
  })`);
}

/** Waits until the explorer says that nothing is left to read. */
async function untilRead(page: Page): Promise<void> {
  await page.getByText(/^Read [\d,]+ chunks? in /).waitFor();
}

/** Writes a picture with 64 levels per colour, which nobody sees: two thirds of the bytes, below 150 kB. */
function reduce(from: string, to: string): void {
  const options = ["-q", "--config", "GDAL_PAM_ENABLED", "NO"];
  const coarse = `${from}.tif`;
  execFileSync("gdal_translate", [...options, "-scale", "0", "255", "0", "63", "-of", "GTiff", from, coarse]);
  const png = ["-of", "PNG", "-co", "ZLEVEL=9"];
  execFileSync("gdal_translate", [...options, "-scale", "0", "63", "0", "255", ...png, coarse, to]);
}

const { air, climate } = await makeDemoData();
const wild = await mkdtemp(join(tmpdir(), "zpublish-pictures-"));
execFileSync("/usr/bin/python3", ["test/fixtures/write_wild_files.py", wild]);
const files = (await readdir(wild)).map((file) => [basename(file, extname(file)), join(wild, file)]);
const server = await createServer({ datasets: { air, climate, ...Object.fromEntries(files) } });
const { url } = await server.listen();
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});
for (const { name, path, width, height, prepare } of PICTURES) {
  if (names.length > 0 && !names.includes(name)) continue;
  const deviceScaleFactor = width < 600 ? 1 : 0.8;
  const page = await browser.newPage({
    viewport: { width, height },
    deviceScaleFactor,
    colorScheme: "light",
  });
  await page.goto(url + path);
  await prepare(page);
  await page.waitForLoadState("networkidle");
  await page.screenshot({ path: join(wild, `${name}.png`) });
  reduce(join(wild, `${name}.png`), join(directory, `${name}.png`));
  await page.close();
}
await browser.close();
await server.close();
await rm(wild, { recursive: true });
