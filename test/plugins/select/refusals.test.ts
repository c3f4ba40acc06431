import t from "tap";
import type { CoordinateAxis } from "../../../src/cf/axis-labels.js";
import type { DatasetSnapshot } from "../../../src/dataset/dataset.js";
import { ZpublishError } from "../../../src/errors.js";
import { writeArrow } from "../../../src/export/arrow-writer.js";
import type { DatasetWriter } from "../../../src/export/exported-dataset.js";
import { writeNetcdf } from "../../../src/export/netcdf-writer.js";
import { writeNpy } from "../../../src/export/npy-writer.js";
import { writeCsv, writeJson } from "../../../src/export/text-writer.js";
import parsePoints from "../../../src/plugins/select/parse-points.js";
import { parseSelection } from "../../../src/plugins/select/parse-selection.js";
import { planSelection } from "../../../src/plugins/select/plan-selection.js";
import type { Values } from "../../../src/values/values.js";
import { fakeSnapshot, fakeType } from "../../support/datasets/fake-snapshot.js";

const F8 = fakeType("f", 8);
const LABELS: Readonly<Record<string, Partial<CoordinateAxis>>> = {
  time: {
    ...{
      role: "T",
      values: Float64Array.of(0, 1, 2, 3),
      units: "days since 2000-01-01",
      calendar: "standard",
    },
  },
  lat: { role: "Y", values: Float64Array.of(60, 50, 40), units: "degrees_north" },
  lon: { role: "X", values: Float64Array.of(0, 90, 180, 270), units: "degrees_east", isLongitude: true },
  band: { values: ["blue", "green", "red"] },
  level: { values: Float64Array.of(1000, 500, 700) },
  twice: { values: Float64Array.of(1, 1, 2) },
  when: { role: "T", values: Float64Array.of(0, 30), units: "days since 2001-01-01", calendar: "360_day" },
  f: { values: Float64Array.of(1, 2) },
};
const axis = (dim: string) => ({ dims: [dim], shape: [LABELS[dim]!.values!.length], type: F8 });
const AIR = fakeSnapshot("air", {
  variables: {
    ...Object.fromEntries(Object.keys(LABELS).map((dim) => [dim, axis(dim)])),
    t2m: { dims: ["time", "lat", "lon"], shape: [4, 3, 4] },
    mean: { dims: ["time"], shape: [4] },
    colour: { dims: ["band"], shape: [3] },
    profile: { dims: ["level"], shape: [3] },
    pairs: { dims: ["twice"], shape: [3] },
    days: { dims: ["when"], shape: [2] },
    cells: { dims: ["cell"], shape: [5] },
    odd: { dims: ["f"], shape: [2] },
    spectrum: { dims: ["lat"], shape: [3], type: fakeType("c", 8) },
  },
});
const ICE = fakeSnapshot("ice", { variables: { ice: { dims: ["time", "y", "x"], shape: [4, 6, 4] } } });

const COORDINATES: Pick<Values, "coordinates" | "cellBox" | "nearestCells" | "dataType"> = {
  async coordinates(snapshot, { variable: { dims, shape } }) {
    const axes = dims.map((dim, at): CoordinateAxis => {
      const none = { values: undefined, units: undefined, calendar: undefined, isLongitude: false };
      const common = { dim, length: shape[at]!, role: undefined, regular: undefined, floatBytes: undefined };
      return { ...common, ...none, variable: LABELS[dim] && dim, ...LABELS[dim] };
    });
    const grid = { latitude: "nav_lat", longitude: "nav_lon", y: 1, x: 2 };
    const version = { token: "" };
    return snapshot.id === "ice"
      ? { axes, version, crs: undefined, grid }
      : { axes, version, crs: "degrees", grid: undefined };
  },
  cellBox: async () => ({ y: { begin: 0, count: 0, step: 1 }, x: { begin: 0, count: 0, step: 1 } }),
  nearestCells: async (_, __, places) => Array.from(places, () => ({ cell: -1, distance: Number.NaN })),
  dataType: ({ variable }) => variable.dataType,
};

const WRITERS: Readonly<Record<string, DatasetWriter>> = {
  ...{ nc: writeNetcdf, npy: writeNpy, csv: writeCsv, json: writeJson, arrow: writeArrow },
};

/** Plans a selection, and lays it out in the format that it names. Nothing is read. */
async function answer(snapshot: DatasetSnapshot, text: string, points?: string): Promise<unknown> {
  const query = parseSelection(text, Object.keys(WRITERS), points !== undefined);
  const contentType = points?.startsWith("{") ? "application/json" : "text/csv";
  const table = points === undefined ? undefined : parsePoints({ body: Buffer.from(points), contentType });
  const form = { isDecoded: query.isDecoded ?? false, keepsTexts: false };
  const plan = await planSelection(COORDINATES, snapshot, query, form, table);
  const { signal } = new AbortController();
  return WRITERS[query.format ?? "json"]!(plan, COORDINATES as Values, signal);
}

t.test("a dimension that is named like a parameter is selected by index", async (t) => {
  t.ok(await answer(AIR, "var=odd&isel.f=1"));
  t.ok(await answer(AIR, "var=odd&isel.f=::-1&f=csv"));
});

/** A query, the parameter that is wrong, the type of the error, and its message. */
type Refused = readonly [query: string, parameter: string, type: string, message: string];

async function refuses(snapshot: DatasetSnapshot, cases: readonly Refused[], points?: string): Promise<void> {
  for (const [query, parameter, type, message] of cases) {
    const error = await answer(snapshot, query, points).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof ZpublishError)) {
      t.fail(`${query}: ${error instanceof Error ? error.stack : "expected a refusal, received an answer"}`);
      continue;
    }
    const { details = {} } = error as { details?: { parameter?: string; type?: string } };
    t.same([error.message, details.parameter, details.type], [message, parameter, type], query);
  }
}

t.test("wrong queries are refused with what was expected and received", () =>
  refuses(AIR, [
    [
      "var=t3m",
      "var",
      "unknown_variable",
      "Expected a variable: time, lat, lon, band, level, twice, when, f, t2m, mean, colour, profile, …, received 't3m'",
    ],
    [
      "var=",
      "var",
      "unknown_variable",
      "Expected a variable: time, lat, lon, band, level, twice, when, f, t2m, mean, colour, profile, …, received ''",
    ],
    [
      "var=a/b",
      "var",
      "unknown_variable",
      "Expected a variable: time, lat, lon, band, level, twice, when, f, t2m, mean, colour, profile, …, received 'a/b'",
    ],
    [
      "height=2",
      "height",
      "unknown_dimension",
      "Expected var, f, decode, or a dimension: time, lat, lon, band, level, twice, when, cell, f, received 'height'",
    ],
    [
      "isel.height=2",
      "isel.height",
      "unknown_dimension",
      "Expected var, f, decode, or a dimension: time, lat, lon, band, level, twice, when, cell, f, received 'isel.height'",
    ],
    [
      "var=mean&lat=50",
      "lat",
      "unknown_dimension",
      "Expected var, f, decode, or a dimension: time, received 'lat'",
    ],
    [
      "isel.latitude=1",
      "isel.latitude",
      "unknown_dimension",
      "Expected var, f, decode, or a dimension: time, lat, lon, band, level, twice, when, cell, f, received 'isel.latitude'",
    ],
    ["lat=51", "lat", "label", "Axis 'lat': expected a label of the axis (60 to 40), received '51'"],
    ["lat=50&lat=51", "lat", "label", "Axis 'lat': expected a label of the axis (60 to 40), received '51'"],
    ["lat=north", "lat", "label", "Axis 'lat': expected a number (60 to 40), received 'north'"],
    ["lat=", "lat", "missing", "Expected a label, or a range a/b, received ''"],
    ["lat=nearest::", "lat", "missing", "Expected a label, or a range a/b, received 'nearest::'"],
    [
      "lat=linear::5",
      "lat",
      "enum",
      "Expected a method of exact, nearest, ffill, bfill before '::', received 'linear::5'",
    ],
    [
      "lat=ffill::61",
      "lat",
      "empty_selection",
      "Expected a label with a step of 'lat' before it (60 to 40), received '61'",
    ],
    [
      "lat=bfill::39",
      "lat",
      "empty_selection",
      "Expected a label with a step of 'lat' after it (60 to 40), received '39'",
    ],
    [
      "lat=70/80",
      "lat",
      "empty_selection",
      "Expected a range with labels of 'lat' (60 to 40), received '70/80'",
    ],
    [
      "time=2000-01-03/2000-01-02",
      "time",
      "empty_selection",
      "Expected a range with labels of 'time' (2000-01-01T00:00:00 to 2000-01-04T00:00:00), received '2000-01-03/2000-01-02'",
    ],
    ["lat=1/2/3", "lat", "range", "Expected a range a/b, a/.. or ../b, received '1/2/3'"],
    ["lat=1/", "lat", "range", "Expected a range a/b, a/.. or ../b, received '1/'"],
    [
      "lat=50&lat=40/60",
      "lat",
      "contradiction",
      "Expected one range, or values without one, received '50 and 40/60'",
    ],
    [
      "lat=40/50&lat=50/60",
      "lat",
      "contradiction",
      "Expected one range, or values without one, received '40/50 and 50/60'",
    ],
    ["lat=50&isel.lat=1", "isel.lat", "contradiction", "Expected either it or 'lat', received '1'"],
    ["lat=50&latitude=40", "latitude", "contradiction", "Expected either it or 'lat', received 'latitude'"],
    ["lon=1e9", "lon", "label", "Axis 'lon': expected a longitude from -720 to 720, received '1e9'"],
    [
      "time=2001",
      "time",
      "label",
      "Axis 'time': expected a date of the axis (2000-01-01T00:00:00 to 2000-01-04T00:00:00), received '2001'",
    ],
    [
      "time=yesterday",
      "time",
      "label",
      "Axis 'time': expected a date of the calendar standard as ISO 8601 has it (2000-01-01T00:00:00 to 2000-01-04T00:00:00), received 'yesterday'",
    ],
    [
      "time=2000-02-30",
      "time",
      "label",
      "Axis 'time': expected a date of the calendar standard as ISO 8601 has it (2000-01-01T00:00:00 to 2000-01-04T00:00:00), received '2000-02-30'",
    ],
    [
      "when=2001-01-31",
      "when",
      "label",
      "Axis 'when': expected a date of the calendar 360_day as ISO 8601 has it (2001-01-01T00:00:00 to 2001-02-01T00:00:00), received '2001-01-31'",
    ],
    [
      "band=nearest::gre",
      "band",
      "label",
      "Axis 'band': expected the method exact, ffill or bfill for texts, received 'nearest'",
    ],
    [
      "band=yellow",
      "band",
      "label",
      "Axis 'band': expected a label of the axis (blue to red), received 'yellow'",
    ],
    [
      "level=500/700",
      "level",
      "label",
      "Axis 'level': expected an index or an exact label, since its labels neither ascend nor descend, received '500'",
    ],
    [
      "level=nearest::600",
      "level",
      "label",
      "Axis 'level': expected an index or an exact label, since its labels neither ascend nor descend, received '600'",
    ],
    [
      "twice=1",
      "twice",
      "label",
      "Axis 'twice': expected an index, since some of its labels occur several times, received '1'",
    ],
    ["cell=7", "cell", "label", "Axis 'cell': expected a label of the axis (0 to 4), received '7'"],
    ["cell=a", "cell", "label", "Axis 'cell': expected a number (0 to 4), received 'a'"],
    ["isel.lat=3", "isel.lat", "index_error", "Expected an index from -3 to 2, received '3'"],
    ["isel.lat=-4", "isel.lat", "index_error", "Expected an index from -3 to 2, received '-4'"],
    [
      "isel.lat=1.5",
      "isel.lat",
      "slice_parsing",
      "Expected an index, or a slice begin:end:step, received '1.5'",
    ],
    [
      "isel.lat=2:2",
      "isel.lat",
      "empty_selection",
      "Expected a slice with some of the indexes 0 to 2, received '2:2'",
    ],
    [
      "isel.lat=0:2:-1",
      "isel.lat",
      "empty_selection",
      "Expected a slice with some of the indexes 0 to 2, received '0:2:-1'",
    ],
    ["isel.lat=0:2:0", "isel.lat", "slice_parsing", "Expected a step that is not 0, received '0:2:0'"],
    [
      "isel.lat=0:1&isel.lat=2",
      "isel.lat",
      "contradiction",
      "Expected one slice, or indexes without one, received '0:1 and 2'",
    ],
    ["isel.lat=", "isel.lat", "slice_parsing", "Expected an index, or a slice begin:end:step, received ''"],
    ["step.lat=2", "step.lat", "not_applicable", "Expected a range such as lat=a/b, received '2'"],
    ["lat=50&step.lat=2", "step.lat", "not_applicable", "Expected a range such as lat=a/b, received '2'"],
    [
      "isel.lat=0:2&step.lat=2",
      "step.lat",
      "not_applicable",
      "Expected a range such as lat=a/b, received '2'",
    ],
    ["lat=40/60&step.lat=0", "step.lat", "int_parsing", "Expected an integer from 1 on, received '0'"],
    ["lat=40/60&step.lat=-1", "step.lat", "int_parsing", "Expected an integer from 1 on, received '-1'"],
    ["lat=40/60&step.lat=1.5", "step.lat", "int_parsing", "Expected an integer from 1 on, received '1.5'"],
    [
      "lat=40/60&step.lat=1&step.lat=2",
      "step.lat",
      "int_parsing",
      "Expected an integer from 1 on, received '1,2'",
    ],
    ["decode=yes", "decode", "enum", "Expected 0 or 1, received 'yes'"],
    ["decode=1&decode=0", "decode", "repeated_parameter", "Expected the parameter once, received '1 and 0'"],
    [
      "method=nearest",
      "method",
      "not_applicable",
      "Expected a body of points (POST); a label has its method before it: nearest::8.6, received 'nearest'",
    ],
    [
      "tolerance=1",
      "tolerance",
      "not_applicable",
      "Expected a body of points (POST); a label has its method before it: nearest::8.6, received '1'",
    ],
    ["f=grib", "f", "enum", "Expected one of nc, npy, csv, json, arrow, received 'grib'"],
    ["f=1", "f", "enum", "Expected one of nc, npy, csv, json, arrow, received '1'"],
    ["f=nc&f=csv", "f", "repeated_parameter", "Expected the parameter once, received 'nc and csv'"],
  ]),
);

t.test("what a format cannot hold is refused before anything is read", () =>
  refuses(AIR, [
    [
      "var=spectrum&f=nc",
      "f",
      "unsupported_type",
      "Expected a type that NetCDF has; variable 'spectrum' is c64, which f=npy has, received 'nc'",
    ],
    [
      "var=spectrum&f=csv",
      "f",
      "unsupported_type",
      "Expected numbers, texts or times; variable 'spectrum' is c64, received 'csv'",
    ],
    [
      "var=spectrum&f=json",
      "f",
      "unsupported_type",
      "Expected numbers, texts or times; variable 'spectrum' is c64, received 'json'",
    ],
    [
      "var=spectrum&f=arrow",
      "f",
      "unsupported_type",
      "Expected a type that Arrow has; variable 'spectrum' is c64, received 'arrow'",
    ],
    ["var=t2m&var=mean&f=npy", "f", "npy", "Expected one variable (var=) for npy, received 't2m,mean'"],
    [
      "f=npy",
      "f",
      "npy",
      "Expected one variable (var=) for npy, received 't2m,mean,colour,profile,pairs,days,cells,odd'",
    ],
  ]),
);

t.test("wrong questions about a curvilinear grid are refused", () =>
  refuses(ICE, [
    [
      "lat=40/60",
      "lat",
      "grid",
      "Expected latitude and longitude, both as range a/b or both as nearest::…, since the grid is curvilinear, received 'lat'",
    ],
    [
      "lon=40/60",
      "lon",
      "grid",
      "Expected latitude and longitude, both as range a/b or both as nearest::…, since the grid is curvilinear, received 'lon'",
    ],
    [
      "lat=40/60&lon=nearest::3",
      "lat",
      "grid",
      "Expected latitude and longitude, both as range a/b or both as nearest::…, since the grid is curvilinear, received 'lat and lon'",
    ],
    [
      "lat=40&lon=3",
      "lat",
      "grid",
      "Expected latitude and longitude, both as range a/b or both as nearest::…, since the grid is curvilinear, received 'lat and lon'",
    ],
    [
      "lat=nearest::1&lat=nearest::2&lon=nearest::3",
      "lat",
      "grid",
      "Expected latitude and longitude, both as range a/b or both as nearest::…, since the grid is curvilinear, received 'lat and lon'",
    ],
    ["lat=a/b&lon=1/2", "lat", "float_parsing", "Expected a number in degrees, received 'a'"],
    [
      "lat=1/2&lon=3/4",
      "lat",
      "empty_selection",
      "Expected a region with cells of the grid, received '1/2, 3/4'",
    ],
    [
      "lat=nearest::1&lon=nearest::2",
      "lat",
      "empty_selection",
      "Expected a region with cells of the grid, received '1,2'",
    ],
    [
      "isel.lat=1",
      "isel.lat",
      "unknown_dimension",
      "Expected var, f, decode, or a dimension: time, y, x, received 'isel.lat'",
    ],
    [
      "lat=1/2&lon=1/2&isel.y=1",
      "lat",
      "empty_selection",
      "Expected a region with cells of the grid, received '1/2, 1/2'",
    ],
  ]),
);

t.test("wrong points are refused", async () => {
  await refuses(
    AIR,
    [
      ["var=t2m&lat=50", "lat", "contradiction", "Expected either it or the column 'lat', received 'lat'"],
      [
        "var=t2m&isel.lat=1",
        "isel.lat",
        "contradiction",
        "Expected either it or the column 'lat', received 'isel.lat'",
      ],
      ["var=t2m&latitude=50", "lat", "contradiction", "Expected either it or 'latitude', received 'lat'"],
      [
        "var=t2m&method=linear",
        "method",
        "enum",
        "Expected one of exact, nearest, ffill, bfill, received 'linear'",
      ],
      ["var=t2m&tolerance=1", "tolerance", "not_applicable", "Expected a method besides exact, received '1'"],
      [
        "var=t2m&tolerance=x&method=nearest",
        "lat",
        "label",
        "Axis 'lat': expected a tolerance in degrees_north, received 'x'",
      ],
      ["var=t2m", "lat", "label", "Axis 'lat': expected a label of the axis (60 to 40), received '51'"],
      [
        "var=colour",
        "points",
        "unknown_dimension",
        "Expected a column named after a dimension or coordinate, received 'lat, lon'",
      ],
    ],
    "lat,lon\n51,0\n",
  );
  for (const [points, ...refused] of [
    [
      "station\na\n",
      "points",
      "unknown_dimension",
      "Expected a column named after a dimension or coordinate, received 'station'",
    ],
    ["lat,lon\n", "points", "missing", "Expected at least one point, received 'none'"],
    ["lat,lon\n50\n", "points", "csv_parsing", "Expected 2 fields in row 1, received '1'"],
    [
      "lat,lat\n50,50\n",
      "points",
      "repeated_column",
      "Expected columns with different names, received 'lat'",
    ],
    ['lat,lon\n50,"0\n', "points", "csv_parsing", "Expected a field of CSV in line 2, received '\"0\n'"],
    [
      "lat,lon,t2m\n50,0,1\n",
      "points",
      "repeated_column",
      "Expected a column named unlike the variables of the answer, received 't2m'",
    ],
    [
      "lat,lon,point\n50,0,1\n",
      "points",
      "repeated_column",
      "Expected a column named unlike the variables of the answer, received 'point'",
    ],
    ["lat,lon\n,0\n", "lat", "label", "Axis 'lat': expected a number (60 to 40), received ''"],
    ["{", "points", "json_parsing", "Expected JSON, received '{'"],
    [
      '{"type": "LineString"}',
      "points",
      "geojson",
      "Expected a FeatureCollection, Feature, Point or MultiPoint, received 'LineString'",
    ],
    [
      '{"type": "Point", "coordinates": [8]}',
      "points",
      "geojson",
      "Expected a position [longitude, latitude], received '[8]'",
    ],
  ] as const)
    await refuses(AIR, [["var=t2m", ...refused]], points);
  await refuses(
    ICE,
    [
      ["var=ice", "method", "grid", "Expected nearest, since the grid is curvilinear, received 'exact'"],
      [
        "var=ice&method=nearest&tolerance=PT1H",
        "tolerance",
        "float_parsing",
        "Expected degrees, received 'PT1H'",
      ],
    ],
    "lat,lon\n51,0\n",
  );
  await refuses(
    ICE,
    [["var=ice&method=nearest", "lat", "float_parsing", "Expected a number in degrees, received 'north'"]],
    "lat,lon\nnorth,0\n",
  );
  await refuses(
    ICE,
    [
      [
        "var=ice&method=nearest",
        "points",
        "unknown_dimension",
        "Expected a column named after a dimension or coordinate, received 'lat'",
      ],
    ],
    "lat\n51\n",
  );
});
