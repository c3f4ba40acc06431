import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import { createMemorySource, type MemoryArray } from "../../src/open/memory-source.js";
import { openBrowser } from "../support/clients/browser-page.js";
import { commandOf, GENERATIONS, type Generation } from "../support/clients/client-generation.js";
import { runCommand } from "../support/clients/fixtures.js";
import { type MapPage, startMapPages } from "../support/clients/map-page.js";
import { clientMissing, clientMissingIn } from "../support/clients/require-client.js";
import { decodePng } from "../support/codec/decode-png.js";
import { datasetOf } from "../support/datasets/sample-tree.js";
import { startServer } from "../support/servers/start-server.js";

const [ROWS, COLUMNS] = [36, 72];
const RANGE = "COLORSCALERANGE=0,255";

/** Values of cells of 5 degrees from the north pole and the date line on: no two rows, and no two columns, are alike. */
const stored = (row: number, column: number, step: number) => ((row * 7 + column * 3) % 200) + 20 * step;

/** Serves the whole Earth at two times: latitudes ascend, longitudes begin at Greenwich. @param more Further variables. */
function serveEarth(t: Test, more: readonly MemoryArray[] = []) {
  const data = Float32Array.from({ length: 2 * ROWS * COLUMNS }, (_, at) => {
    const [step, cell] = [Math.floor(at / (ROWS * COLUMNS)), at % (ROWS * COLUMNS)];
    const [south, east] = [Math.floor(cell / COLUMNS), cell % COLUMNS];
    return stored(ROWS - 1 - south, (east + COLUMNS / 2) % COLUMNS, step);
  });
  const axis = (name: string, units: string, length: number, first: number, step: number) => ({
    ...{ name, dims: [name], shape: [length], attrs: { units } },
    data: Float64Array.from({ length }, (_, at) => first + step * at),
  });
  const arrays = [
    {
      ...{ name: "v", dims: ["time", "lat", "lon"], shape: [2, ROWS, COLUMNS], data },
      attrs: { long_name: "Some values", units: "K" },
    },
    axis("lat", "degrees_north", ROWS, -87.5, 5),
    axis("lon", "degrees_east", COLUMNS, 2.5, 5),
    axis("time", "hours since 2020-01-01", 2, 0, 6),
    ...more,
  ];
  const source = createMemorySource({ location: "memory", groups: [{ path: "/", arrays }] });
  return startServer(t, { datasets: [datasetOf("earth", source)] });
}

/** Runs a Python script, and returns what it prints as JSON. */
async function ask(t: Test, generation: Generation, script: string, args: readonly string[], env = {}) {
  const directory = t.testdir({});
  const file = join(directory, "script.py");
  await writeFile(file, script);
  const settings = Object.entries(env).map((pair) => pair.join("="));
  const command = [...settings, "/usr/bin/python3", "-W", "ignore", file, ...args, directory];
  const { stdout, stderr } = await runCommand(...commandOf(generation, "env", command));
  const lines = stdout.trim().split("\n");
  try {
    return { answer: JSON.parse(lines.at(-1) ?? ""), directory };
  } catch {
    throw new Error(`expected JSON in the last line, received:\n${stdout}\n${stderr}`);
  }
}

const OWSLIB = `
import json, sys
from urllib.request import urlopen
from owslib.wms import WebMapService
from owslib.util import ServiceException
url, directory = sys.argv[1:]
answers = {}
for version in ("1.1.1", "1.3.0"):
    wms = WebMapService(url, version=version)
    layer = wms["v"]
    common = dict(layers=["v"], styles=["viridis"], srs="EPSG:4326", bbox=(-180, -90, 180, 90), size=(72, 36),
                  format="image/png", transparent=True, time="2020-01-01T00:00:00Z", COLORSCALERANGE="0,255")
    with open(f"{directory}/{version}.png", "wb") as f: f.write(wms.getmap(**common).read())
    info = wms.getfeatureinfo(**common, query_layers=["v"], info_format="application/json", xy=(3, 5))
    with open(f"{directory}/{version}-legend.png", "wb") as f: f.write(urlopen(layer.styles["viridis"]["legend"]).read())
    try:
        wms.getmap(**{**common, "layers": ["w"]})
        said = None
    except ServiceException as error:
        said = str(error)
    answers[version] = dict(title=layer.title, box=layer.boundingBoxWGS84, styles=sorted(layer.styles),
        operations=sorted(operation.name for operation in wms.operations), times=layer.timepositions,
        info=json.loads(info.read()), said=said, queryable=layer.queryable)
print(json.dumps(answers))
`;

for (const generation of GENERATIONS) {
  const skip = clientMissingIn(generation, "owslib");
  t.test(`OWSLib reads capabilities, maps, values and exceptions (${generation})`, { skip }, async (t) => {
    const { url } = await serveEarth(t);
    const { answer, directory } = await ask(t, generation, OWSLIB, [`${url}/datasets/earth/wms`]);
    for (const version of ["1.1.1", "1.3.0"]) {
      const { title, box, styles, operations, times, info, said, queryable } = answer[version];
      t.same([title, queryable], ["Some values", 1]);
      t.same(box, [-180, -90, 180, 90]);
      t.ok(styles.includes("viridis") && styles.includes("default"));
      t.same(operations, ["GetCapabilities", "GetFeatureInfo", "GetMap"]);
      t.same(times, ["2020-01-01T00:00:00Z/2020-01-01T06:00:00Z/PT6H"]);
      t.equal(info.features[0].properties.value, stored(5, 3, 0), `${version}: value of a pixel`);
      t.match(said, "Variable 'w' not found");
      const { indices } = decodePng(await readFile(join(directory, `${version}.png`)));
      const expected = Array.from(indices, (_, at) => stored(Math.floor(at / COLUMNS), at % COLUMNS, 0) + 1);
      t.equal(differing([...indices], expected), 0, `${version}: pixels`);
      t.equal(decodePng(await readFile(join(directory, `${version}-legend.png`))).width, 256);
    }
  });
}

/** Web Mercator: the radius of its sphere and half the side of its square in metres. */
const RADIUS = 6_378_137;
const SIDE = Math.PI * RADIUS;

/** Parts of the Earth that are drawn in 72 × 36 pixels: west, north, east, south. */
const WINDOWS = [
  [-180, 90, 180, -90],
  [-90, 10, -54, -8],
  [144, 60, 180, 42],
] as const;

/** Counts the pixels that differ: comparing long arrays by tap takes seconds. */
function differing(found: readonly unknown[], expected: readonly unknown[]): number {
  if (found.length !== expected.length) return Number.NaN;
  return found.filter((each, at) => String(each) !== String(expected[at])).length;
}

/** Parts in metres of Web Mercator. If sides are not quite as 2 : 1, QGIS asks for a pixel more, and shrinks the picture. */
const MERCATOR_WINDOWS = [
  [-SIDE, SIDE / 2, SIDE, -SIDE / 2],
  [-10_000_000, 2_000_000, -7_840_000, 920_000],
  [15_000_000, 9_000_000, 17_160_000, 7_920_000],
] as const;

/** Returns the colours that maps of windows have, row by row: red, green, blue. */
function coloursOf(png: ReturnType<typeof decodePng>, isMercator = false): number[][][] {
  return (isMercator ? MERCATOR_WINDOWS : WINDOWS).map(([west, north, east, south]) =>
    Array.from({ length: ROWS * COLUMNS }, (_, at) => {
      const [row, column] = [Math.floor(at / COLUMNS) + 0.5, (at % COLUMNS) + 0.5];
      const [y, x] = [north + (row / ROWS) * (south - north), west + (column / COLUMNS) * (east - west)];
      const latitude = isMercator ? (Math.atan(Math.sinh(y / RADIUS)) * 180) / Math.PI : y;
      const longitude = isMercator ? (x / SIDE) * 180 : x;
      const value = stored(Math.floor((90 - latitude) / 5), Math.floor((180 + longitude) / 5), 1);
      return png.colourOf(value + 1).slice(0, 3);
    }),
  );
}

/** A map by which the colours of values are known. */
async function colourMap({ get }: Awaited<ReturnType<typeof serveEarth>>) {
  const answer = await get(
    `/datasets/earth/wms?REQUEST=GetMap&LAYERS=v&CRS=CRS:84&BBOX=-180,-90,180,90&WIDTH=72&HEIGHT=36&${RANGE}`,
  );
  return decodePng(new Uint8Array(await answer.arrayBuffer()));
}

const GDAL = `
import json, sys
from osgeo import gdal
gdal.UseExceptions()
url, parameters, windows, directory = sys.argv[1:]
found = {}
for version in ("1.1.1", "1.3.0"):
    listed = gdal.Open(f"WMS:{url}?SERVICE=WMS&VERSION={version}&REQUEST=GetCapabilities").GetMetadata("SUBDATASETS")
    names = [value for key, value in listed.items() if key.endswith("_NAME")]
    layer = gdal.Open(f"{names[0]}&{parameters}")
    maps = []
    for window in json.loads(windows):
        pixels = gdal.Translate("", layer, format="MEM", projWin=window, width=72, height=36, resampleAlg="near").ReadAsArray()
        maps.append(pixels[:3].reshape(3, -1).T.tolist())
    found[version] = dict(layers=len(names), maps=maps)
print(json.dumps(found))
`;

for (const generation of GENERATIONS) {
  const skip = clientMissingIn(generation, "gdal");
  t.test(`GDAL lists layers and reads maps of any part (${generation})`, { skip }, async (t) => {
    const server = await serveEarth(t);
    const expected = coloursOf(await colourMap(server));
    // It asks for JPEG unless told otherwise, whatever capabilities say.
    const args = [`${server.url}/datasets/earth/wms`, `${RANGE}&FORMAT=image/png`, JSON.stringify(WINDOWS)];
    const { answer } = await ask(t, generation, GDAL, args);
    for (const version of ["1.1.1", "1.3.0"]) {
      t.equal(answer[version].layers, 1);
      for (const [at, window] of WINDOWS.entries())
        t.equal(differing(answer[version].maps[at], expected[at]!), 0, `${version}: ${window}`);
    }
  });
}

const QGIS = `
import json, sys
from urllib.parse import urlencode
from qgis.core import QgsApplication, QgsMapRendererParallelJob, QgsMapSettings, QgsRasterLayer, QgsRectangle, QgsRaster, QgsPointXY
from qgis.PyQt.QtCore import QSize
from qgis.PyQt.QtGui import QColor
url, parameters, windows, directory = sys.argv[1:]
app = QgsApplication([], False)
app.initQgis()
found = {}
for crs, windows in json.loads(windows).items():
    # Or the parameters of the URL would be left out: capabilities have another one.
    source = urlencode(dict(IgnoreGetMapUrl=1, crs=crs, format="image/png", layers="v", styles="viridis", url=f"{url}?{parameters}"))
    layer = QgsRasterLayer(source, "v", "wms")
    assert layer.isValid(), layer.error().message()
    settings = QgsMapSettings()
    settings.setLayers([layer])
    settings.setDestinationCrs(layer.crs())
    settings.setOutputSize(QSize(72, 36))
    settings.setBackgroundColor(QColor("white"))
    maps = []
    for west, north, east, south in windows:
        settings.setExtent(QgsRectangle(west, south, east, north))
        job = QgsMapRendererParallelJob(settings)
        job.start()
        job.waitForFinished()
        image = job.renderedImage()
        colours = [QColor(image.pixel(column, row)) for row in range(36) for column in range(72)]
        maps.append([[colour.red(), colour.green(), colour.blue()] for colour in colours])
    extent = layer.extent()
    found[crs] = dict(maps=maps, extent=[extent.xMinimum(), extent.yMinimum(), extent.xMaximum(), extent.yMaximum()],
        metadata=layer.htmlMetadata())
print(json.dumps(found))
app.exitQgis()
`;

t.test("QGIS adds the layer in each system, and renders it", { skip: clientMissing("qgis") }, async (t) => {
  const server = await serveEarth(t);
  const png = await colourMap(server);
  const windows = { "EPSG:4326": WINDOWS, "CRS:84": WINDOWS, "EPSG:3857": MERCATOR_WINDOWS };
  const args = [`${server.url}/datasets/earth/wms`, RANGE, JSON.stringify(windows)];
  const settings = { QT_QPA_PLATFORM: "offscreen", XDG_RUNTIME_DIR: "/tmp", HOME: t.testdir({}) };
  const { answer } = await ask(t, "system", QGIS, args, settings);
  for (const [crs, drawn] of Object.entries(windows)) {
    const isMercator = crs === "EPSG:3857";
    const extent = answer[crs].extent.map(Math.round);
    t.same(extent, isMercator ? [-SIDE, -SIDE, SIDE, SIDE].map(Math.round) : [-180, -90, 180, 90]);
    const expected = coloursOf(png, isMercator);
    for (const [at, window] of drawn.entries())
      t.equal(differing(answer[crs].maps[at], expected[at]!), 0, `${crs}: ${window}`);
  }
  t.match(answer["EPSG:3857"].metadata, "Some values");
});

/** Pages with a map of 512 × 512 pixels, and the greatest coordinates that it shows. */
const PAGES: readonly (readonly [MapPage, version: string, crs: string, box: number])[] = [
  ["OpenLayers-ImageWMS", "1.3.0", "EPSG:4326", 90],
  ["OpenLayers-ImageWMS", "1.1.1", "EPSG:3857", SIDE],
  ["OpenLayers-TileWMS", "1.3.0", "EPSG:4326", 90],
  ["OpenLayers-TileWMS", "1.1.1", "EPSG:3857", SIDE],
  ["MapLibre-WMS", "1.3.0", "EPSG:3857", SIDE],
  ["Leaflet-WMS", "1.1.1", "EPSG:3857", SIDE],
];

t.test("web maps show the pixels of GetMap", { skip: clientMissing("chromium") }, async (t) => {
  const { url } = await serveEarth(t);
  const service = `${url}/datasets/earth/wms`;
  const pages = await startMapPages(t);
  const browser = await openBrowser(t, "--use-angle=swiftshader", "--enable-unsafe-swiftshader");
  for (const [library, version, crs, edge] of PAGES) {
    const page = await browser.newPage({ viewport: { width: 512, height: 512 } });
    const failures: string[] = [];
    page.on("pageerror", (error) => failures.push(String(error)));
    const parameters = { LAYERS: "v", STYLES: "turbo", VERSION: version, COLORSCALERANGE: "0,255" };
    const shows = { tiles: service, crs, resolution: String(edge / 256), ...parameters };
    await page.goto(`${pages}/${library}?${new URLSearchParams(shows)}`);
    await page.waitForFunction(`document.title === "ready"`);
    const shown = `data:image/png;base64,${(await page.screenshot()).toString("base64")}`;
    const frame = {
      BBOX: [-edge, -edge, edge, edge].join(),
      CRS: crs,
      SRS: crs,
      WIDTH: "512",
      HEIGHT: "512",
    };
    const map = `${service}?${new URLSearchParams({ REQUEST: "GetMap", ...parameters, ...frame })}`;
    const { count, colours } = (await page.evaluate(`(async () => {
      const [shown, map] = await Promise.all(${JSON.stringify([shown, map])}.map(async (url) => {
        const context = new OffscreenCanvas(512, 512).getContext("2d");
        context.drawImage(await createImageBitmap(await (await fetch(url)).blob()), 0, 0);
        return new Uint32Array(context.getImageData(0, 0, 512, 512).data.buffer);
      }));
      return { count: shown.filter((pixel, at) => pixel !== map[at]).length, colours: new Set(map).size };
    })()`)) as { count: number; colours: number };
    t.equal(count, 0, `${library} ${version} ${crs}: differing pixels`);
    t.ok(colours > 100, `${colours} colours`);
    t.same(failures, [], `${library} has no errors`);
    await page.close();
  }
});

const SCHEMAS = `
import json, sys
from urllib.request import urlopen
from urllib.error import HTTPError
from lxml import etree
url, directory = sys.argv[1:]
schemas = "/usr/share/python3-mapproxy/test/schemas/wms/"
def xsd(path): return etree.XMLSchema(etree.parse(schemas + path))
def dtd(path): return etree.DTD(open(schemas + path, "rb"))
rules = {
    "1.3.0": (xsd("1.3.0/capabilities_1_3_0.xsd"), xsd("1.3.0/exceptions_1_3_0.xsd")),
    "1.1.1": (dtd("1.1.1/WMS_MS_Capabilities.dtd"), dtd("1.1.1/WMS_exception_1_1_1.dtd")),
}
def read(query):
    try: return etree.parse(urlopen(f"{url}?service=WMS&{query}"))
    except HTTPError as error: return etree.parse(error)
found = {}
for version, (capabilities, exceptions) in rules.items():
    answers = []
    for rule, request in ((capabilities, "GetCapabilities"), (exceptions, "GetMap&layers=none"), (exceptions, "GetTile")):
        rule.validate(read(f"version={version}&request={request}"))
        answers.append([str(error) for error in rule.error_log])
    layers = read(f"version={version}&request=GetCapabilities").xpath("count(//*[local-name()='Layer'][@queryable])")
    found[version] = dict(layers=layers, errors=answers)
print(json.dumps(found))
`;

t.test("answers follow OGC's schemas", { skip: clientMissing("mapproxy") }, async (t) => {
  const dims = ["time", "level", "member", "lat", "lon"];
  const more = [
    { name: "w", dims, shape: [2, 3, 2, ROWS, COLUMNS], data: new Float32Array(12 * ROWS * COLUMNS) },
    {
      ...{ name: "mask", dims: ["lat", "lon"], shape: [ROWS, COLUMNS], data: new Int8Array(ROWS * COLUMNS) },
      attrs: { flag_values: [0, 1], flag_meanings: "sea land" },
    },
    {
      ...{ name: "level", dims: ["level"], shape: [3], data: Float64Array.of(1000, 850, 500) },
      attrs: { units: "hPa", standard_name: "air_pressure" },
    },
  ];
  const { url } = await serveEarth(t, more);
  const { answer } = await ask(t, "system", SCHEMAS, [`${url}/datasets/earth/wms`]);
  for (const version of ["1.3.0", "1.1.1"])
    t.same(answer[version], { layers: 3, errors: [[], [], []] }, version);
});
