import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import { createMemorySource } from "../../src/open/memory-source.js";
import { commandOf, GENERATIONS, type Generation } from "../support/clients/client-generation.js";
import { runCommand } from "../support/clients/fixtures.js";
import { clientMissing, clientMissingIn } from "../support/clients/require-client.js";
import { decodePng } from "../support/codec/decode-png.js";
import { datasetOf } from "../support/datasets/sample-tree.js";
import { startServer } from "../support/servers/start-server.js";

const [ROWS, COLUMNS] = [36, 72];
const RANGE = "COLORSCALERANGE=0,255";

/** Values of cells of 5 degrees from the north pole and the date line on: no two rows, and no two columns, are alike. */
const stored = (row: number, column: number, step: number) => ((row * 7 + column * 3) % 200) + 20 * step;

/** Serves the whole Earth at two times: latitudes ascend, longitudes begin at Greenwich. */
function serveEarth(t: Test) {
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

/** Returns the colours that maps of these windows have, row by row: red, green, blue. */
function coloursOf(png: ReturnType<typeof decodePng>): number[][][] {
  return WINDOWS.map(([west, north, east]) => {
    const degrees = (east - west) / COLUMNS;
    return Array.from({ length: ROWS * COLUMNS }, (_, at) => {
      const [row, column] = [Math.floor(at / COLUMNS) + 0.5, (at % COLUMNS) + 0.5];
      const value = stored(
        Math.floor((90 - north + row * degrees) / 5),
        Math.floor((180 + west + column * degrees) / 5),
        1,
      );
      return png.colourOf(value + 1).slice(0, 3);
    });
  });
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
for crs in ("EPSG:4326", "EPSG:3857", "CRS:84"):
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
    for west, north, east, south in json.loads(windows) if crs != "EPSG:3857" else []:
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
  const expected = coloursOf(await colourMap(server));
  const args = [`${server.url}/datasets/earth/wms`, RANGE, JSON.stringify(WINDOWS)];
  const settings = { QT_QPA_PLATFORM: "offscreen", XDG_RUNTIME_DIR: "/tmp", HOME: t.testdir({}) };
  const { answer } = await ask(t, "system", QGIS, args, settings);
  for (const crs of ["EPSG:4326", "CRS:84"]) {
    t.same(answer[crs].extent, [-180, -90, 180, 90]);
    for (const [at, window] of WINDOWS.entries())
      t.equal(differing(answer[crs].maps[at], expected[at]!), 0, `${crs}: ${window}`);
  }
  t.match(answer["EPSG:3857"].metadata, "Some values");
});
