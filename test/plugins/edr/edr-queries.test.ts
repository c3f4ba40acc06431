import t, { type Test } from "tap";
import { createMemorySource } from "../../../src/open/memory-source.js";
import { airOnGrid, airValue, iceOnCells } from "../../support/datasets/edr-samples.js";
import { datasetOf } from "../../support/datasets/sample-tree.js";
import { startServer } from "../../support/servers/start-server.js";

/** An axis of a domain. */
interface CovAxis {
  readonly values: readonly (number | string | readonly (number | string)[])[];
  readonly coordinates?: readonly string[];
}
interface Coverage {
  readonly domain: {
    readonly domainType?: string;
    readonly axes: Readonly<Record<string, CovAxis>>;
    readonly referencing: readonly { readonly coordinates: readonly string[]; readonly system: object }[];
  };
  readonly ranges: Readonly<
    Record<
      string,
      {
        readonly values: readonly (number | null)[];
        readonly axisNames?: readonly string[];
        readonly shape?: readonly number[];
        readonly dataType: string;
      }
    >
  >;
}

/** One server for all tests. */
const site = startSite(t);

async function startSite(t: Pick<Test, "teardown">) {
  const datasets = [
    datasetOf("air", airOnGrid()),
    datasetOf("year360", airOnGrid("360_day")),
    datasetOf("ice", iceOnCells()),
  ];
  const server = await startServer(t, { datasets });
  const query = (path: string) => server.get(`/edr/collections/${path}`);
  const coverage = async (path: string): Promise<Coverage> => {
    const response = await query(path);
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${response.status} ${text}`);
    return JSON.parse(text);
  };
  return { ...server, query, coverage };
}
const NOON = "datetime=2000-02-29T12:00:00Z";
const valuesOf = ({ domain }: Coverage, name: string) => domain.axes[name]?.values;

t.test("a position is the nearest cell, with its own coordinates", async (t) => {
  const { coverage } = await site;
  const all = await coverage("air/position?coords=POINT(12 47)&parameter-name=t");
  t.strictSame(
    ["x", "y", "z"].map((name) => valuesOf(all, name)),
    [[10], [45], [850, 500, 250]],
  );
  t.strictSame(
    valuesOf(all, "t"),
    ["00", "06", "12", "18"].map((hour) => `2000-02-29T${hour}:00:00Z`),
  );
  t.equal(all.domain.domainType, "Grid");
  t.match(all.ranges.t, { axisNames: ["t", "z"], shape: [4, 3], dataType: "float" });
  const times = [0, 1, 2, 3];
  t.strictSame(
    all.ranges.t?.values,
    times.flatMap((time) => [0, 1, 2].map((level) => airValue(time, level, 4, 1))),
  );
  const series = await coverage("air/position?coords=POINT(-170.1 47)&parameter-name=t&z=500");
  t.equal(series.domain.domainType, "PointSeries");
  t.strictSame(valuesOf(series, "x"), [-170], "in the turn of the position");
  t.strictSame(
    series.ranges.t?.values,
    times.map((time) => airValue(time, 1, 4, 19)),
  );
  const profile = await coverage(`air/position?coords=POINT(12 47)&parameter-name=t&${NOON}`);
  t.equal(profile.domain.domainType, "VerticalProfile");
  t.strictSame(
    profile.ranges.t?.values,
    [0, 1, 2].map((level) => airValue(2, level, 4, 1)),
  );
  const point = await coverage(`air/position?coords=POINT Z(12 47 480)&parameter-name=t&${NOON}`);
  t.equal(point.domain.domainType, "Point");
  t.strictSame([valuesOf(point, "z"), point.ranges.t?.values], [[500], [airValue(2, 1, 4, 1)]]);
  const given = await coverage(`air/position?coords=POINT Z(12 47 480)&z=250&parameter-name=t&${NOON}`);
  t.strictSame(valuesOf(given, "z"), [250], "the parameter z wins");
});

t.test("several points are cells in their order, each once, without those outside", async (t) => {
  const { coverage, query } = await site;
  const points = "coords=MULTIPOINT((12 47),(-20 5),11 46)";
  const found = await coverage(`air/position?${points}&parameter-name=t&z=850&${NOON}`);
  t.match(found.domain.axes.composite, {
    coordinates: ["x", "y"],
    values: [
      [10, 45],
      [-20, 5],
    ],
  });
  t.strictSame(found.ranges.t?.values, [airValue(2, 0, 4, 1), airValue(2, 0, 8, 34)]);
  const csv = await query(`air/position?${points}&parameter-name=t&z=850&f=CSV&${NOON}`);
  t.equal(csv.headers.get("content-type"), "text/csv");
  t.equal(
    await csv.text(),
    "time,level,point,t,lat,lon\n" +
      `2000-02-29T12:00:00,850.0,0,${airValue(2, 0, 4, 1)}.0,45.0,10.0\n` +
      `2000-02-29T12:00:00,850.0,1,${airValue(2, 0, 8, 34)}.0,5.0,-20.0\n`,
  );
  // Two levels of one cell are two points of parameters without levels, too.
  const levels = "coords=MULTIPOINT Z((12 47 480),(13 47 250))&parameter-name=sea,t&f=CSV";
  t.equal(
    await (await query(`air/position?${levels}&${NOON}`)).text(),
    "point,time,sea,t,lon,lat,level\n" +
      `0,2000-02-29T12:00:00,22,${airValue(2, 1, 4, 1)}.0,10.0,45.0,500.0\n` +
      `1,2000-02-29T12:00:00,22,${airValue(2, 2, 4, 1)}.0,10.0,45.0,250.0\n`,
  );
  const above = await query(`air/position?coords=POINT Z(12 47 9000)&parameter-name=sea,t&f=CSV&${NOON}`);
  t.equal(await above.text(), "sea,lon,lat\n22,10.0,45.0\n");
  t.equal(
    (await query("air/position?coords=POINT(12 90)&parameter-name=t")).status,
    200,
    "within half a cell",
  );
  t.equal((await query("air/position?coords=POINT(12 90)&parameter-name=t&f=nc")).status, 200);
  const none = await query("ice/position?coords=POINT(40 10)");
  t.strictSame([none.status, await none.text()], [204, ""]);
});

t.test("parameters with other axes are other coverages", async (t) => {
  const { json } = await site;
  const found = (await json("/edr/collections/air/position?coords=POINT(0 85)")) as {
    readonly type: string;
    readonly coverages: readonly Coverage[];
  };
  t.equal(found.type, "CoverageCollection");
  t.strictSame(found.coverages.map(({ ranges }) => Object.keys(ranges)).toSorted(), [
    ["member/t"],
    ["sea"],
    ["surface"],
    ["t"],
  ]);
  const [surface] = found.coverages.filter(({ ranges }) => ranges.surface !== undefined);
  t.equal(surface?.ranges.surface?.values[0], null, "a missing value is null");
  t.equal(surface?.ranges.surface?.values[1], 0.5 * 648);
  const [members] = found.coverages.filter(({ ranges }) => ranges["member/t"] !== undefined);
  t.strictSame(members?.domain.axes.member?.values, ["1", "2"]);
  t.equal(members?.domain.domainType, undefined);
});

t.test("longer lists than the bound are refused", async (t) => {
  const { url } = await site;
  for (const [name, item] of Object.entries({
    "parameter-name": "t",
    datetime: "2000",
    z: "850",
    member: "1",
  })) {
    const body = JSON.stringify({
      coords: "POINT(0 85)",
      [name]: Array(2 ** 16)
        .fill(item)
        .join(),
    });
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${url}/edr/collections/air/position`, { method: "POST", headers, body });
    t.equal(response.status, 400, name);
    t.match(await response.json(), { description: /at most 65536 characters/ });
  }
});

t.test("a custom dimension is selected by its name", async (t) => {
  const { coverage, query } = await site;
  const path = "air/position?coords=POINT(0 85)&parameter-name=member/t";
  t.strictSame((await coverage(`${path}&member=2`)).ranges["member/t"]?.values, [648]);
  t.strictSame((await coverage(`${path}&member=1/2`)).ranges["member/t"]?.values, [0, 648]);
  t.strictSame((await coverage(`${path}&member=R3/1/1`)).ranges["member/t"]?.values, [0, 648]);
  t.equal((await query(`${path}&member=7`)).status, 204);
  t.equal((await query("air/position?coords=POINT(0 85)&parameter-name=t&member=1")).status, 400);
});

t.test("an area is the grid around polygons, with null outside; a list of cells in tables", async (t) => {
  const { coverage, query } = await site;
  // A triangle across Greenwich, with cells on its edges.
  const triangle = "coords=POLYGON((-20 35,20 35,0 55,-20 35))";
  const found = await coverage(`air/area?${triangle}&parameter-name=t&z=850&${NOON}`);
  t.equal(found.domain.domainType, "Grid");
  t.strictSame(
    [valuesOf(found, "x"), valuesOf(found, "y")],
    [
      [-20, -10, 0, 10, 20],
      [55, 45, 35],
    ],
  );
  const value = (row: number, column: number) => airValue(2, 0, row, column);
  t.strictSame(found.ranges.t?.values, [
    ...[null, null, value(3, 0), null, null],
    ...[null, value(4, 35), value(4, 0), value(4, 1), null],
    ...[34, 35, 0, 1, 2].map((column) => value(5, column)),
  ]);
  const turned = await coverage(`air/area?${triangle}&parameter-name=sea`);
  t.match(turned.ranges.sea, { axisNames: ["x", "y"], shape: [5, 3], dataType: "integer" });
  t.strictSame(
    turned.ranges.sea?.values,
    [
      [null, null, 617],
      [null, 634, 635],
      [3, 4, 5],
      [null, 22, 23],
      [null, null, 41],
    ].flat(),
  );
  const csv = await (await query(`air/area?${triangle}&parameter-name=sea&f=csv`)).text();
  t.strictSame(csv.trim().split("\n").slice(1), [
    ...["3,0.0,55.0", "634,-10.0,45.0", "4,0.0,45.0", "22,10.0,45.0"],
    ...["617,-20.0,35.0", "635,-10.0,35.0", "5,0.0,35.0", "23,10.0,35.0", "41,20.0,35.0"],
  ]);
  const hole =
    "coords=MULTIPOLYGON(((0 25,40 25,40 65,0 65,0 25),(5 30,35 30,35 60,5 60,5 30)),((100 1,110 1,110 9,100 9,100 1)))";
  const ring = await coverage(`air/area?${hole}&parameter-name=sea`);
  t.equal(ring.ranges.sea?.values.filter((each) => each !== null).length, 16 + 2);
  t.equal((await query("air/area?coords=POLYGON((1 1,4 1,4 4,1 1))")).status, 204, "between cells");
  const apart = "coords=MULTIPOLYGON(((355 1,365 1,365 9,355 9,355 1)),((-30 1,-20 1,-20 9,-30 9,-30 1)))";
  const turns = await coverage(`air/area?${apart}&parameter-name=sea`);
  const places = valuesOf(turns, "x")?.filter((_, at) => turns.ranges.sea?.values[at] !== null);
  t.strictSame(places, [-30, -20, 0], "polygons further apart than one turn");
});

t.test("a cube is a box of longitudes, latitudes and levels", async (t) => {
  const { coverage, query } = await site;
  const found = await coverage(`air/cube?bbox=-15,40,5,60&z=200/600&parameter-name=t&${NOON}`);
  t.strictSame(
    ["x", "y", "z"].map((name) => valuesOf(found, name)),
    [
      [-10, 0],
      [55, 45],
      [500, 250],
    ],
  );
  t.strictSame(
    found.ranges.t?.values,
    [1, 2].flatMap((level) =>
      [3, 4].flatMap((row) => [35, 0].map((column) => airValue(2, level, row, column))),
    ),
  );
  const six = await coverage(`air/cube?bbox=-15,40,200,5,60,600&parameter-name=t&${NOON}`);
  t.strictSame(six, found);
  const date = await coverage(
    "air/cube?bbox=170,0,-170,10&z=850&parameter-name=t&datetime=../2000-02-29T07:00:00Z",
  );
  t.strictSame(
    [valuesOf(date, "x"), valuesOf(date, "t")?.length],
    [[170, 180, 190], 2],
    "across the 180th meridian",
  );
  for (const z of ["850,250", "R2/250/600"]) {
    const levels = await coverage(`air/cube?bbox=0,0,1,9&z=${z}&parameter-name=t&${NOON}`);
    t.strictSame(valuesOf(levels, "z"), [850, 250], z);
  }
  const nc = await query(`air/cube?bbox=0,0,10,10&parameter-name=t,surface&f=NetCDF&${NOON}`);
  t.equal(Buffer.from(await nc.arrayBuffer()).toString("latin1", 0, 4), "CDF\u0001");
});

t.test("a trajectory is the cells along a line, at its levels and times", async (t) => {
  const { coverage } = await site;
  const path = await coverage(
    `air/trajectory?coords=LINESTRING(0 44,31 46,31 64)&parameter-name=t&z=850&${NOON}`,
  );
  t.match(path.domain.axes.composite, { coordinates: ["t", "x", "y"] });
  const cells = [
    [0, 45, 4, 0],
    [10, 45, 4, 1],
    [20, 45, 4, 2],
    [30, 45, 4, 3],
    [30, 55, 3, 3],
    [30, 65, 2, 3],
  ] as const;
  t.strictSame(
    valuesOf(path, "composite"),
    cells.map(([x, y]) => ["2000-02-29T12:00:00Z", x, y]),
  );
  t.strictSame(
    path.ranges.t?.values,
    cells.map(([, , row, column]) => airValue(2, 0, row, column)),
  );
  const series = await coverage("air/trajectory?coords=LINESTRING(0 44,11 46)&parameter-name=surface");
  t.equal(series.domain.domainType, "MultiPointSeries");
  const begin = Date.UTC(2000, 1, 29) / 1000;
  const flight = `LINESTRINGZM(0 45 850 ${begin},20 45 250 ${begin + 12 * 3600})`;
  const found = await coverage(`air/trajectory?coords=${flight}&parameter-name=t`);
  t.equal(found.domain.domainType, "Trajectory");
  t.match(found.domain.axes.composite, { coordinates: ["t", "x", "y", "z"] });
  t.strictSame(valuesOf(found, "composite")?.at(0), ["2000-02-29T00:00:00Z", 0, 45, 850]);
  t.strictSame(valuesOf(found, "composite")?.at(-1), ["2000-02-29T12:00:00Z", 20, 45, 250]);
  t.equal(found.ranges.t?.values.at(-1), airValue(2, 2, 4, 2));
  const early = `LINESTRINGM(0 45 ${begin - 9e5},20 45 ${begin})`;
  const part = await coverage(`air/trajectory?coords=${early}&parameter-name=surface`);
  t.strictSame(
    valuesOf(part, "composite"),
    [["2000-02-29T00:00:00Z", 20, 45]],
    "without what is before the data",
  );
});

t.test("cells of a curvilinear grid are listed", async (t) => {
  const { coverage, query } = await site;
  const point = await coverage("ice/position?coords=POINT(-9.7 61.1)");
  t.strictSame([valuesOf(point, "x"), valuesOf(point, "y"), point.ranges.ice?.values], [[-9.8], [61], [9]]);
  const box = await coverage("ice/cube?bbox=-10.5,59.5,-7.5,62.15");
  t.strictSame(box.ranges.ice?.values, [0, 1, 9, 10, 18, 19]);
  t.strictSame(valuesOf(box, "composite")?.slice(0, 2), [
    [-10, 60],
    [-8, 60.1],
  ]);
  const area = await query("ice/area?coords=POLYGON((-10.5 59.5,-7.5 59.5,-10.5 63,-10.5 59.5))&f=csv");
  t.strictSame(
    (await area.text())
      .trim()
      .split("\n")
      .slice(1)
      .map((row) => row.split(",")[0]),
    ["0.0", "9.0"],
  );
  const line = await coverage("ice/trajectory?coords=LINESTRING(-10 60,-9.4 63)");
  t.strictSame(line.ranges.ice?.values, [0, 9, 18, 27]);
});

t.test("coordinates of rows and columns of a curvilinear grid stay as stored", async (t) => {
  const cells = { shape: [2, 2], dims: ["y", "x"] };
  const place = (name: string, units: string, values: readonly number[]) => ({
    ...{ name, data: Float64Array.from(values), ...cells, attrs: { units } },
  });
  const attrs = { coordinates: "lat lon" };
  const arrays = [
    { name: "ice", data: Float32Array.of(0, 1, 2, 3), ...cells, attrs },
    place("lat", "degrees_north", [60, 60.1, 61, 61.1]),
    place("lon", "degrees_east", [350, 352, 350.2, 352.2]),
    { name: "x", data: Float64Array.of(1000, 2000), shape: [2], dims: ["x"], attrs: { units: "m" } },
  ];
  const source = createMemorySource({ location: "ice", groups: [{ path: "/", attrs: {}, arrays }] });
  const { get } = await startServer(t, { datasets: [datasetOf("ice", source)] });
  const found = await get("/edr/collections/ice/position?coords=MULTIPOINT(-7.9 60.2,-9.7 61)&f=CSV");
  t.equal(await found.text(), "ice,x,lat,lon\n1.0,2000.0,60.1,352.0\n2.0,1000.0,61.0,350.2\n");
});

t.test("a cell of a curvilinear grid is found though its neighbour has no place", async (t) => {
  const cells = { shape: [3, 3], dims: ["y", "x"] };
  const at = [...Array(9).keys()];
  const placeOf = (cell: number, degrees: number) => (cell === 7 ? Number.NaN : degrees);
  const arrays = [
    { name: "ice", data: Float32Array.from(at), ...cells, attrs: { coordinates: "lat lon" } },
    {
      ...{ name: "lat", ...cells, attrs: { units: "degrees_north" } },
      data: Float64Array.from(at, (cell) => placeOf(cell, 60 + Math.floor(cell / 3))),
    },
    {
      ...{ name: "lon", ...cells, attrs: { units: "degrees_east" } },
      data: Float64Array.from(at, (cell) => placeOf(cell, cell % 3)),
    },
  ];
  const source = createMemorySource({ location: "ice", groups: [{ path: "/", attrs: {}, arrays }] });
  const { json } = await startServer(t, { datasets: [datasetOf("ice", source)] });
  const found = await json("/edr/collections/ice/position?coords=POINT(1.1 61.1)");
  t.match(found, { ranges: { ice: { values: [4] } } });
});

t.test("times of other calendars have a reference system of their own", async (t) => {
  const { coverage } = await site;
  const found = await coverage(
    "year360/position?coords=POINT(0 5)&parameter-name=surface&datetime=2000-02-29T06:00:00",
  );
  t.strictSame(valuesOf(found, "t"), ["2000-02-29T06:00:00"]);
  const [system] = found.domain.referencing.filter(({ coordinates }) => coordinates.includes("t"));
  t.match(system, { system: { type: "TemporalRS", calendar: /^https:.*360_day$/ } });
});

t.test("GeoJSON has a feature for each point, time and level", async (t) => {
  const { json, url } = await site;
  const path = `/edr/collections/air/position?coords=MULTIPOINT(0 5,10 5)&parameter-name=sea,t&z=500&f=GeoJSON&${NOON}`;
  const found = (await json(path)) as { readonly features: readonly object[] };
  const feature = (x: number) => ({
    type: "Feature",
    geometry: { type: "Point", coordinates: [10 * x, 5] },
    properties: {
      ...{
        point: x,
        time: "2000-02-29T12:00:00",
        level: 500,
        t: airValue(2, 1, 8, x),
        sea: 18 * x + 8,
        lat: 5,
        lon: 10 * x,
      },
      ...{ datetime: "2000-02-29T12:00:00Z", "parameter-name": ["sea", "t"], label: `5, ${10 * x}` },
      edrqueryendpoint: `${url}/edr/collections/air/position`,
    },
  });
  t.strictSame(found.features, [feature(0), feature(1)]);
});

t.test("answers have an ETag, and 304", async (t) => {
  const { query, get } = await site;
  const path = "air/position?coords=POINT(0 5)";
  const first = await query(path);
  const etag = first.headers.get("etag") as string;
  await first.arrayBuffer();
  t.equal((await get(`/edr/collections/${path}`, { "if-none-match": etag })).status, 304);
  const other = await get(`/edr/collections/${path}`, { accept: "text/csv" });
  t.not(other.headers.get("etag"), etag);
  t.match(other.headers.get("vary"), /^Accept,/);
  await other.text();
});
