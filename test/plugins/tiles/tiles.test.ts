import t, { type Test } from "tap";
import { createMemorySource, type MemoryArray } from "../../../src/open/memory-source.js";
import { decodePng, rowsOf } from "../../support/codec/decode-png.js";
import { datasetOf } from "../../support/datasets/sample-tree.js";
import { type RunningServer, startServer } from "../../support/servers/start-server.js";

const LAT = { name: "lat", dims: ["lat"], shape: [4], attrs: { units: "degrees_north" } };
const LON = { name: "lon", dims: ["lon"], shape: [8], attrs: { units: "degrees_east" } };
const TIME = { name: "time", dims: ["time"], shape: [2], attrs: { units: "days since 2020-01-01" } };

/** Two times of the whole Earth in cells of 45 degrees: row * 8 + column, and 100 more at the second time. */
const EARTH: readonly MemoryArray[] = [
  {
    name: "v",
    dims: ["time", "lat", "lon"],
    shape: [2, 4, 8],
    data: Float32Array.from({ length: 64 }, (_, at) => (at % 32) + (at < 32 ? 0 : 100)),
    attrs: { long_name: "Some values", units: "K" },
  },
  { ...LAT, data: Float64Array.of(67.5, 22.5, -22.5, -67.5) },
  { ...LON, data: Float64Array.from({ length: 8 }, (_, at) => 22.5 + 45 * at) },
  { ...TIME, data: Float64Array.of(0, 1) },
];

function serve(t: Test, arrays: readonly MemoryArray[], more: Parameters<typeof startServer>[1] = {}) {
  const source = createMemorySource({ location: "memory", groups: [{ path: "/", arrays }] });
  return startServer(t, { datasets: [datasetOf("d", source)], ...more });
}

/** Returns the values of the pixels of a tile, if a colour is a number. */
async function tileOf({ get }: RunningServer, path: string, query = "range=0,255"): Promise<number[][]> {
  const answer = await get(`/datasets/d/tiles/${path}?${query}`);
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  const rows = rowsOf(decodePng(new Uint8Array(await answer.arrayBuffer())));
  return rows.map((row) => row.map((index) => index - 1));
}

const every = (rows: readonly number[][], step: number) =>
  rows.filter((_, at) => at % step === step / 2).map((row) => row.filter((_, at) => at % step === step / 2));

t.test("a tile shows the Earth from the date line on, whatever the axes", async (t) => {
  const server = await serve(t, EARTH);
  const rows = await tileOf(server, "v/0/0/0.png", "range=0,255&isel.time=0");
  t.equal(rows.length, 256);
  const across = every(rows, 32)[3]!;
  t.same(across, [12, 13, 14, 15, 8, 9, 10, 11], "longitudes from 0 to 360 begin in the middle");
  const down = rows.map((row) => row[0]!);
  t.same([...new Set(down)], [4, 12, 20, 28]);
  t.equal(down.indexOf(12), 128 - 36, "45 degrees north are there in Web Mercator");
  t.same((await tileOf(server, "v/1/1/0@2x.png", "range=0,255&isel.time=0")).length, 512);
});

t.test("dimensions are chosen by label and by index, and by default the last time is shown", async (t) => {
  const server = await serve(t, EARTH);
  const first = async (query: string) =>
    (await tileOf(server, "v/0/0/0.png", `range=0,255&${query}`))[255]![0];
  t.equal(await first(""), 128);
  for (const query of [
    "isel.time=0",
    "isel.time=-2",
    "time=2020-01-01",
    "time=ffill::2020-01-01T23:00",
    "time=nearest::2019",
  ])
    t.equal(await first(query), 28, query);
  for (const [query, said] of [
    ["time=2021-01-01", "time"],
    ["time=2020-01", "one step"],
    ["isel.time=2", "an index from -2 to 1"],
    ["isel.lat=0", "one of time"],
    ["height=3", "one of time"],
    ["time=2020-01-01&isel.time=0", "either it or"],
    ["time=2020-01-01/2020-01-02", "date"],
    ["range=NaN,NaN", "two numbers"],
    ["range=5,1", "two numbers"],
    ["range=-1e308,1e308", "two numbers"],
    ["scale=jet", "one of viridis"],
    ["reversed=yes", "true or false"],
    ["interpolate=cubic", "nearest, linear"],
  ] as const) {
    const answer = await server.get(`/datasets/d/tiles/v/0/0/0.png?${query}`);
    t.equal(answer.status, 422, query);
    t.match(await answer.text(), said, query);
  }
});

t.test("tiles beside the Earth's square are 404, and zoom ends at 30", async (t) => {
  const { get } = await serve(t, EARTH);
  for (const [path, status] of [
    ["30/1073741823/1073741823.png", 200],
    ["31/0/0.png", 404],
    ["0/1/0.png", 404],
    ["1/0/2.png", 404],
    ["01/0/0.png", 404],
    ["0/0/0.jpg", 404],
    ["0/0/0@3x.png", 404],
    ["0/0/-0.png", 404],
  ] as const) {
    const answer = await get(`/datasets/d/tiles/v/${path}`);
    t.equal(answer.status, status, path);
  }
});

t.test("variables without a place have no tiles, and say why", async (t) => {
  const { get } = await serve(t, [
    { name: "bare", dims: ["y", "x"], shape: [2, 3], data: new Uint8Array(6) },
    { name: "line", dims: ["lon"], shape: [8], data: new Uint8Array(8) },
    { name: "mixed", dims: ["lat", "lon"], shape: [2, 8], data: new Uint8Array(16) },
    { ...LAT, shape: [2], data: Float64Array.of(Number.NaN, 3) },
    { ...LON, data: Float64Array.from({ length: 8 }, (_, at) => at) },
  ]);
  for (const [path, said] of [
    ["bare", "no system that is known here"],
    ["line", "no two axes"],
    ["mixed", "'lat' neither ascends nor descends"],
    ["none", "not found"],
  ] as const) {
    const answer = await get(`/datasets/d/tiles/${path}/0/0/0.png`);
    t.equal(answer.status, 404, path);
    t.match(await answer.text(), said, path);
  }
});

t.test(
  "interpolated values lie between those of cells, also across the seam, and missing ones stay missing",
  async (t) => {
    const cells = Float32Array.from({ length: 32 }, (_, at) => 10 * (at % 8));
    cells[9] = Number.NaN;
    const server = await serve(t, [
      { name: "v", dims: ["lat", "lon"], shape: [4, 8], data: cells },
      ...EARTH.slice(1, 3),
    ]);
    const rows = await tileOf(server, "v/0/0/0.png", "range=0,255&interpolate=linear");
    const south = rows[200]!;
    t.equal(south[128 + 16], 0, "the centre of a cell has its value");
    t.ok(Math.abs(south[128 + 32]! - 5) <= 1, "the edge of two cells the mean of both");
    t.ok(south[128]! > 30 && south[128]! < 40, "between 70 and 0, where the Earth closes");
    const north = rows[111]!;
    t.same([north[128 + 33], north[128 + 62]], [-1, -1]);
    t.equal(north[128 + 30], 0, "a missing neighbour has no weight");
  },
);

t.test("ETags are those of what is drawn, and 304 draws nothing", async (t) => {
  const { get } = await serve(t, EARTH);
  const etag = async (query: string) =>
    (await get(`/datasets/d/tiles/v/0/0/0.png?${query}`)).headers.get("etag")!;
  const first = await etag("time=2020-01-01");
  t.equal(await etag("isel.time=-2"), first, "whatever the words of the query");
  t.not(await etag("isel.time=1"), first);
  t.not(await etag("time=2020-01-01&scale=magma"), first);
  const answer = await get("/datasets/d/tiles/v/0/0/0.png?time=2020-01-01", { "if-none-match": first });
  t.equal(answer.status, 304);
});

t.test("TileJSON and legends say what tiles show", async (t) => {
  const flags = { flag_values: [1, 2], flag_meanings: "sea land" };
  const kinds: MemoryArray = {
    name: "kind",
    dims: ["lat", "lon"],
    shape: [4, 8],
    data: new Uint8Array(32).fill(2),
    attrs: flags,
  };
  const { get, json, url } = await serve(t, [...EARTH, kinds]);
  const described = (await json("/datasets/d/tiles/v/tilejson.json?time=2020-01-01")) as Record<
    string,
    unknown
  >;
  t.match(described, {
    tilejson: "3.0.0",
    name: "Some values",
    minzoom: 0,
    bounds: [-180, -85.05112877980659, 180, 85.05112877980659],
  });
  const [template] = described.tiles as [string];
  t.equal(template, `${url}/datasets/d/tiles/v/{z}/{x}/{y}.png?time=2020-01-01`);
  t.equal((await fetch(template.replace("{z}/{x}/{y}", "0/0/0"))).status, 200);
  const legend = (await json("/datasets/d/tiles/v/legend.json?range=0,10&scale=magma")) as {
    colours: string[];
  };
  t.match(legend, { title: "Some values", units: "K", range: [0, 10], scale: "magma", reversed: false });
  t.equal(legend.colours.length, 255);
  const png = await get("/datasets/d/tiles/v/legend.png?range=0,10&scale=magma");
  t.equal(decodePng(new Uint8Array(await png.arrayBuffer())).width, 256);
  t.match(await json("/datasets/d/tiles/kind/legend.json"), {
    categories: [
      { value: 1, meaning: "sea" },
      { value: 2, meaning: "land" },
    ],
  });
  t.equal((await get("/datasets/d/tiles/kind/0/0/0.png?range=0,1")).status, 422);
  t.equal((await get("/datasets/d/tiles/kind/0/0/0.png")).status, 200);
});
