import t, { type Test } from "tap";
import { COLOUR_SCALES } from "../../../src/colour/colour-scales.js";
import { createMemorySource, type MemoryArray } from "../../../src/open/memory-source.js";
import { decodePng, rowsOf } from "../../support/codec/decode-png.js";
import { datasetOf } from "../../support/datasets/sample-tree.js";
import { type RunningServer, startServer } from "../../support/servers/start-server.js";

const LAT = { name: "lat", dims: ["lat"], shape: [4], attrs: { units: "degrees_north" } };
const LON = { name: "lon", dims: ["lon"], shape: [8], attrs: { units: "degrees_east" } };

/** Values of the whole Earth in cells of 45 degrees: row * 8 + column, 32 more at each further time. */
const EARTH: readonly MemoryArray[] = [
  {
    name: "v",
    dims: ["time", "plev", "member", "lat", "lon"],
    shape: [3, 2, 1, 4, 8],
    data: Float32Array.from({ length: 192 }, (_, at) => (at % 32) + 32 * Math.floor(at / 64)),
    attrs: { long_name: "Values <of> the Earth", units: "K" },
  },
  {
    name: "mask",
    dims: ["lat", "lon"],
    shape: [4, 8],
    data: Int8Array.from({ length: 32 }, (_, at) => (at === 0 ? -1 : at % 2)),
    attrs: { flag_values: [0, 1], flag_meanings: "sea land", _FillValue: -1 },
  },
  { ...LAT, data: Float64Array.of(67.5, 22.5, -22.5, -67.5) },
  { ...LON, data: Float64Array.from({ length: 8 }, (_, at) => 22.5 + 45 * at) },
  {
    ...{ name: "time", dims: ["time"], shape: [3], data: Float64Array.of(0, 6, 12) },
    attrs: { units: "hours since 2020-01-01" },
  },
  {
    ...{ name: "plev", dims: ["plev"], shape: [2], data: Float64Array.of(1000, 850) },
    attrs: { units: "hPa", standard_name: "air_pressure" },
  },
];

function serve(t: Pick<Test, "teardown">, arrays: readonly MemoryArray[] = EARTH) {
  const source = createMemorySource({ location: "memory", groups: [{ path: "/", arrays }] });
  return startServer(t, { datasets: [datasetOf("d", source)] });
}

type Parameters = Readonly<Record<string, string>>;

const MAP_130 = {
  ...{ SERVICE: "WMS", VERSION: "1.3.0", REQUEST: "GetMap", LAYERS: "v", STYLES: "", FORMAT: "image/png" },
  ...{ CRS: "EPSG:4326", BBOX: "-90,-180,90,180", WIDTH: "8", HEIGHT: "4", COLORSCALERANGE: "0,255" },
};
const MAP_111 = {
  ...{ SERVICE: "WMS", VERSION: "1.1.1", REQUEST: "GetMap", LAYERS: "v", STYLES: "", FORMAT: "image/png" },
  ...{ SRS: "EPSG:4326", BBOX: "-180,-90,180,90", WIDTH: "8", HEIGHT: "4", COLORSCALERANGE: "0,255" },
};

const server = await serve(t);

function ask({ get }: RunningServer, parameters: Parameters) {
  return get(`/datasets/d/wms?${new URLSearchParams(parameters)}`);
}

async function pictureOf(server: RunningServer, parameters: Parameters) {
  const answer = await ask(server, parameters);
  if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
  return decodePng(new Uint8Array(await answer.arrayBuffer()));
}

/** Returns the values of the pixels of a map whose range is 0,255. */
async function mapOf(server: RunningServer, parameters: Parameters): Promise<number[][]> {
  return rowsOf(await pictureOf(server, parameters)).map((row) => row.map((index) => index - 1));
}

/** The Earth from the date line on: its axis begins at Greenwich. */
const FROM_DATE_LINE = [0, 8, 16, 24].map((first) => [4, 5, 6, 7, 0, 1, 2, 3].map((x) => first + x));
const LAST = FROM_DATE_LINE.map((row) => row.map((value) => value + 64));

t.test("boxes are read in the order of axes of each version and system", async (t) => {
  for (const [name, parameters] of [
    ["latitude first", MAP_130],
    ["longitude first", MAP_111],
    ["CRS:84", { ...MAP_130, CRS: "CRS:84", BBOX: "-180,-90,180,90" }],
    [
      "names in lower case",
      Object.fromEntries(Object.entries(MAP_130).map(([key, value]) => [key.toLowerCase(), value])),
    ],
    ["an older version is answered as 1.1.1", { ...MAP_111, VERSION: "1.1.0" }],
  ] as const)
    t.same(await mapOf(server, parameters), LAST, name);
  const side = Math.PI * 6_378_137;
  const mercator = { CRS: "EPSG:3857", BBOX: `${-side},${-side},${side},${side}`, HEIGHT: "8" };
  const rows = await mapOf(server, { ...MAP_130, ...mercator });
  t.same(
    rows.map(([first]) => first! - 64),
    [4, 4, 4, 12, 20, 28, 28, 28],
  );
  const turned = await mapOf(server, { ...MAP_130, BBOX: "0,135,45,225", WIDTH: "2", HEIGHT: "1" });
  t.same(turned, [[67 + 8, 68 + 8]], "a box across the date line");
});

t.test("times, elevations and other dimensions are chosen by value", async (t) => {
  const first = async (more: Parameters) => (await mapOf(server, { ...MAP_130, ...more }))[0]![0];
  t.equal(await first({ TIME: "2020-01-01T06:00:00Z" }), 36);
  t.equal(await first({ TIME: "2020-01-01T00:00:00.000Z" }), 4);
  t.equal(await first({ time: "current", elevation: "850", dim_Member: "0" }), 68);
  t.equal(await first({ TIME: "", ELEVATION: "", DIM_MEMBER: "" }), 68, "each has a default");
  const { headers } = await ask(server, { ...MAP_130, TIME: "2020-01-01T06:00:00Z" });
  t.equal(headers.get("warning"), "99 Default value used: elevation=1000, 99 Default value used: member=0");
  const mask = await ask(server, { ...MAP_130, LAYERS: "mask", TIME: "1850-01-01", COLORSCALERANGE: "auto" });
  t.equal(mask.status, 200, "a layer without times has one map for all");
});

t.test("an axis of many uneven times shows the nearest one, and says so", async (t) => {
  const count = 1_500;
  const times = Float64Array.from({ length: count }, (_, at) => at * at);
  const uneven = await serve(t, [
    ...EARTH.filter(({ name }) => name === "lat" || name === "lon"),
    {
      ...{ name: "v", dims: ["time", "lat", "lon"], shape: [count, 4, 8], attrs: {} },
      data: Float32Array.from({ length: count * 32 }, (_, at) => Math.floor(at / 32)),
    },
    {
      ...{ name: "time", dims: ["time"], shape: [count], data: times },
      attrs: { units: "hours since 2020-01-01" },
    },
  ]);
  const text = await (await ask(uneven, { SERVICE: "WMS", REQUEST: "GetCapabilities" })).text();
  t.match(text, 'nearestValue="1">2020-01-01T00:00:00Z/2276-05-03T01:00:00Z/0</Dimension>');
  const asked = { ...MAP_130, TIME: "2020-01-02T03:00:00Z" };
  t.equal((await mapOf(uneven, asked))[0]![0], 5);
  const { headers } = await ask(uneven, asked);
  t.equal(headers.get("warning"), "99 Nearest value used: time=2020-01-02T01:00:00Z");
});

t.test("styles are scales, and missing values have the background", async (t) => {
  const colours = async (more: Parameters) => {
    const { colourOf, indices } = await pictureOf(server, { ...MAP_130, ...more });
    return colourOf(indices[0]!);
  };
  const viridis = await colours({});
  t.same(await colours({ STYLES: "default" }), viridis);
  t.same(await colours({ STYLES: "viridis" }), viridis);
  t.not(`${await colours({ STYLES: "viridis-inv" })}`, `${viridis}`);
  t.not(`${await colours({ STYLES: "turbo" })}`, `${viridis}`);
  const beside = { BBOX: "100,-180,120,180" };
  t.same(await colours({ ...beside, TRANSPARENT: "TRUE" }), [0xc8, 0xc8, 0xc8, 0]);
  t.same(await colours(beside), [255, 255, 255, 255]);
  t.same(await colours({ ...beside, BGCOLOR: "0x010203" }), [1, 2, 3, 255]);
});

t.test("a pixel is asked about as a program and as a person reads it", async (t) => {
  const info = { ...MAP_130, REQUEST: "GetFeatureInfo", QUERY_LAYERS: "v", I: "1", J: "2" };
  const answer = await ask(server, { ...info, INFO_FORMAT: "application/json" });
  t.equal(answer.headers.get("content-type"), "application/json");
  t.same(await answer.json(), {
    type: "FeatureCollection",
    features: [
      {
        ...{ type: "Feature", id: "v", geometry: { type: "Point", coordinates: [-112.5, -22.5] } },
        properties: {
          ...{ layer: "v", title: "Values <of> the Earth", value: 85, units: "K" },
          ...{ time: "2020-01-01T12:00:00Z", elevation: "1000", member: "0" },
        },
      },
    ],
  });
  const text = await ask(server, {
    ...{ ...MAP_111, REQUEST: "GetFeatureInfo", LAYERS: "mask", QUERY_LAYERS: "mask", X: "5", Y: "0" },
    INFO_FORMAT: "text/plain",
  });
  t.match(await text.text(), /value: 1\n.*category: land\nlongitude: 67.500000\nlatitude: 67.500000\n/s);
  const missing = await ask(server, { ...info, LAYERS: "mask", QUERY_LAYERS: "mask", I: "4", J: "0" });
  t.match(await missing.json(), { features: [{ properties: { value: null } }] });
  const legend = await pictureOf(server, {
    ...{ SERVICE: "WMS", VERSION: "1.3.0", REQUEST: "GetLegendGraphic", LAYER: "v", STYLE: "turbo" },
    ...{ FORMAT: "image/png", WIDTH: "20", HEIGHT: "10" },
  });
  t.equal(`${legend.width} × ${legend.height}`, "20 × 10");
});

t.test(
  "capabilities list layers, boxes, dimensions and styles with the address of the service",
  async (t) => {
    const url = `${server.url}/datasets/d/wms?`;
    const capabilities = async (version: string, token = "") => {
      const path = `/datasets/d/wms?${token}request=GetCapabilities&service=WMS&version=${version}`;
      const answer = await server.get(path);
      return { type: answer.headers.get("content-type"), text: await answer.text() };
    };
    const now = await capabilities("1.3.0");
    t.equal(now.type, "text/xml");
    for (const part of [
      `xlink:href="${url}"`,
      "<Name>v</Name><Title>Values &lt;of&gt; the Earth</Title>",
      '<BoundingBox CRS="EPSG:4326" minx="-90" miny="-180" maxx="90" maxy="180"/>',
      '<BoundingBox CRS="CRS:84" minx="-180" miny="-90" maxx="180" maxy="90"/>',
      '<Dimension name="time" units="ISO8601" default="2020-01-01T12:00:00Z">2020-01-01T00:00:00Z/2020-01-01T12:00:00Z/PT6H</Dimension>',
      '<Dimension name="elevation" units="hPa" default="1000">1000,850</Dimension>',
      '<Dimension name="member" units="" default="0">0</Dimension>',
      `xlink:href="${url}request=GetLegendGraphic&amp;layer=v&amp;style=viridis"`,
    ])
      t.ok(now.text.includes(part), part);
    const styles = (title: string) => {
      const [, group = ""] = now.text.split(`<Layer><Title>${title}</Title>`);
      return [...group.split("</Layer>\n</Layer>")[0]!.matchAll(/<Style><Name>(.*?)</g)].map(
        ([, name]) => name,
      );
    };
    t.same(styles("Numbers"), [...Object.keys(COLOUR_SCALES), "default"], "layers inherit the scales");
    t.same(styles("Categories"), ["default"]);
    t.notMatch(now.text, "<Name>lat</Name>");
    const old = await capabilities("1.1.1", "token=a%20b&");
    t.equal(old.type, "application/vnd.ogc.wms_xml");
    for (const part of [
      `xlink:href="${url}token=a%20b&amp;"`,
      '<LatLonBoundingBox minx="-180" miny="-90" maxx="180" maxy="90"/>',
      '<BoundingBox SRS="EPSG:4326" minx="-180" miny="-90" maxx="180" maxy="90"/>',
      '<Dimension name="time" units="ISO8601"/>',
      '<Extent name="time" default="2020-01-01T12:00:00Z">2020-01-01T00:00:00Z/2020-01-01T12:00:00Z/PT6H</Extent>',
    ])
      t.ok(old.text.includes(part), part);
    t.notMatch(old.text, "CRS:84");
    t.match(
      old.text,
      /(?:<Dimension .*\/>\n){3}(?:<Extent .*<\/Extent>\n){3}<Style>/,
      "in the order of its DTD",
    );
  },
);

t.test("what is wrong is an exception of WMS that says what was expected", async (t) => {
  for (const [more, code, said] of [
    [{ CRS: "EPSG:32632" }, "InvalidCRS", "one of EPSG:4326"],
    [{ LAYERS: "w" }, "LayerNotDefined", "not found"],
    [{ LAYERS: "lat" }, "LayerNotDefined", "no two axes"],
    [{ LAYERS: "v,mask" }, "LayerNotDefined", "one layer"],
    [{ STYLES: "jet" }, "StyleNotDefined", "one of default, viridis"],
    [{ LAYERS: "mask", STYLES: "viridis", COLORSCALERANGE: "auto" }, "StyleNotDefined", "one of default"],
    [{ FORMAT: "image/jpeg" }, "InvalidFormat", "image/png"],
    [{ TIME: "2021-01-01" }, "InvalidDimensionValue", "2020-01-01T00:00:00 to"],
    [{ TIME: "2020-01-01/2020-01-02/PT6H" }, "InvalidDimensionValue", "a date"],
    [{ ELEVATION: "900" }, "InvalidDimensionValue", "a label"],
    [{ DIM_LEVEL: "900" }, "InvalidDimensionValue", "one of TIME, ELEVATION, DIM_MEMBER"],
    [{ REQUEST: "GetTile" }, "OperationNotSupported", "GetMap"],
    [{ REQUEST: "GetFeatureInfo", QUERY_LAYERS: "v", I: "8", J: "0" }, "InvalidPoint", "from 0 to 7"],
    [{ REQUEST: "" }, undefined, "the parameter REQUEST"],
    [{ BBOX: "1,2,3" }, undefined, "four numbers"],
    [{ BGCOLOR: "white" }, undefined, "0xRRGGBB"],
    [{ TRANSPARENT: "1" }, undefined, "TRUE or FALSE"],
    [{ COLORSCALERANGE: "5,1" }, undefined, "two numbers"],
    [{ SERVICE: "WFS" }, undefined, "Expected WMS"],
  ] as const) {
    const answer = await ask(server, { ...MAP_130, ...more } as Parameters);
    const text = await answer.text();
    t.equal(answer.status, 400, JSON.stringify(more));
    t.equal(answer.headers.get("content-type"), "text/xml");
    t.match(text, '<ServiceExceptionReport version="1.3.0" xmlns="http://www.opengis.net/ogc">');
    t.equal(/ code="(.*?)"/.exec(text)?.[1], code, text);
    t.match(text, said);
  }
  const old = await ask(server, { ...MAP_111, SRS: "EPSG:1<>" });
  t.equal(old.headers.get("content-type"), "application/vnd.ogc.se_xml");
  t.match(await old.text(), /<ServiceException code="InvalidSRS">SRS: Expected .*'EPSG:1&lt;&gt;'/);
  const unknown = await server.get("/datasets/none/wms?request=GetCapabilities");
  t.equal(unknown.status, 404);
  t.match(await unknown.text(), /<ServiceException>.*none/);
});

t.test("hostile queries are refused before anything is read", async (t) => {
  for (const more of [
    { WIDTH: "4097" },
    { HEIGHT: "1e9" },
    { WIDTH: "-1" },
    { WIDTH: "0" },
    { HEIGHT: "99999999999999999999" },
    { BBOX: "NaN,NaN,NaN,NaN" },
    { BBOX: "-Infinity,-180,Infinity,180" },
    { BBOX: "90,180,-90,-180" },
    { BBOX: "0,0,0,0" },
    { BBOX: "-1e308,-1e308,1e308,1e308" },
    { BBOX: "0x0,0,1,1" },
    { LAYERS: Array.from({ length: 900 }, (_, at) => `l${at}`).join() },
    { layers: "mask" },
  ]) {
    const answer = await ask(server, { ...MAP_130, ...more } as Parameters);
    t.ok(
      answer.status === 400 || answer.status === 414,
      `${JSON.stringify(more).slice(0, 60)}: ${answer.status}`,
    );
    t.match(await answer.text(), "<ServiceException");
  }
  for (const BBOX of ["-1e300,-1e300,1e300,1e300", "1e15,1e15,2e15,2e15"]) {
    const { colourOf, indices } = await pictureOf(server, { ...MAP_130, BBOX, TRANSPARENT: "TRUE" });
    t.ok(
      [...indices].every((index) => colourOf(index)[3] === 0),
      "nothing is there",
    );
  }
  const large = await ask(server, { ...MAP_130, WIDTH: "4096", HEIGHT: "4096" });
  t.equal(large.status, 200);
  t.ok((await large.arrayBuffer()).byteLength < 1e6);
  const repeated = await ask(server, { ...MAP_130, width: "8" });
  t.equal(repeated.status, 200, "the same value twice is one");
  const posted = await fetch(`${server.url}/datasets/d/wms`, { method: "POST", body: "<GetMap/>" });
  t.equal(posted.status, 405);
});
