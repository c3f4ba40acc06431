import t from "tap";
import type { CoordinateAxis } from "../../../src/cf/axis-labels.js";
import type { DatasetSnapshot } from "../../../src/dataset/dataset.js";
import { ZpublishError } from "../../../src/errors.js";
import { type ExportedDataset, exportedByteLength } from "../../../src/export/exported-dataset.js";
import type { DimSelection } from "../../../src/export/selection-plan.js";
import type { Variable } from "../../../src/model/data-tree.js";
import { parseSelection } from "../../../src/plugins/select/parse-selection.js";
import {
  candidateVariables,
  gridQuestion,
  type PlanContext,
  planSelection,
} from "../../../src/plugins/select/plan-selection.js";
import type { Coordinates } from "../../../src/values/values.js";
import { fakeSnapshot, fakeType } from "../../support/datasets/fake-snapshot.js";

const F8 = fakeType("f", 8);
const SHORT = fakeType("i", 2);
const PACKED = { scale_factor: 0.5, units: "K", _FillValue: -1, coordinates: "height", grid_mapping: "crs" };

const AIR = fakeSnapshot("air", {
  attrs: { title: "air" },
  variables: {
    time: { dims: ["time"], shape: [4], type: F8, attrs: { units: "days since 2000-01-01" } },
    lat: { dims: ["lat"], shape: [3], type: F8, attrs: { units: "degrees_north" } },
    lon: { dims: ["lon"], shape: [6], type: F8, attrs: { units: "degrees_east" } },
    height: { dims: [], shape: [], type: F8, coordinate: true },
    t2m: { dims: ["time", "lat", "lon"], shape: [4, 3, 6], type: SHORT, attrs: PACKED },
    sea: { dims: ["lat", "lon"], shape: [3, 6], type: SHORT },
    mean: { dims: ["time"], shape: [4], type: F8 },
    crs: { dims: [], shape: [], type: SHORT },
    waves: { dims: ["lat"], shape: [3], type: fakeType("c", 8) },
  },
});

const TREE = fakeSnapshot("tree", {
  attrs: { title: "tree" },
  variables: { lat: { dims: ["lat"], shape: [3], type: F8 }, top: { dims: ["lat"], shape: [3] } },
  groups: {
    a: {
      attrs: { level: 1 },
      variables: {
        time: { dims: ["time"], shape: [4], type: F8 },
        t2m: {
          dims: ["time", "lat", "x"],
          shape: [4, 3, 2],
          attrs: { ancillary_variables: "quality time: time" },
        },
        quality: { dims: ["time"], shape: [4] },
      },
    },
    b: { variables: { t2m: { dims: ["time", "x"], shape: [5, 7] } } },
  },
});

const VALUES: Readonly<Record<string, readonly number[]>> = {
  time: [0, 1, 2, 3],
  lat: [60, 50, 40],
  lon: [0, 60, 120, 180, 240, 300],
};
const ROLES = { time: "T", lat: "Y", lon: "X" } as const;

function coordinatesOf({ dims, shape }: Variable): Coordinates {
  const axes = dims.map((dim, at): CoordinateAxis => {
    const values = VALUES[dim];
    return {
      dim,
      length: shape[at]!,
      role: ROLES[dim as keyof typeof ROLES],
      variable: values && dim,
      values: values && Float64Array.from(values),
      regular: undefined,
      units: dim === "time" ? "days since 2000-01-01" : values && "degrees",
      calendar: dim === "time" ? "standard" : undefined,
      floatBytes: 8,
      isLongitude: dim === "lon",
    };
  });
  return { axes, crs: "degrees", grid: undefined };
}

function plan(
  snapshot: DatasetSnapshot,
  text: string,
  isDecoded = false,
  more: Partial<PlanContext> = {},
): ExportedDataset {
  const query = parseSelection(text, ["nc"], false);
  const dataTypeOf: PlanContext["dataTypeOf"] = ({ variable }) => variable.dataType;
  const context = { snapshot, coordinatesOf, cellsOf: () => undefined, dataTypeOf, ...more };
  return planSelection(context, query, candidateVariables(snapshot, query), isDecoded);
}

function refusal(run: () => unknown): Record<string, unknown> {
  try {
    run();
  } catch (error) {
    if (error instanceof ZpublishError) return { code: error.code, message: error.message, ...error.details };
    throw error;
  }
  return {};
}

/** Names, dimensions and selections in few words: `t2m(lat 3, lon 2)`. */
function outline({ variables }: ExportedDataset): string {
  return variables
    .map(({ name, dims, shape }) => `${name}(${dims.map((dim, at) => `${dim} ${shape[at]}`).join(", ")})`)
    .join(" ");
}

const range = (begin: number, count: number, step = 1) => ({ begin, count, step });

t.test("a query says which variables and coordinates are answered", async (t) => {
  const cases: [DatasetSnapshot, string, string][] = [
    [AIR, "var=t2m", "time(time 4) lat(lat 3) lon(lon 6) height() t2m(time 4, lat 3, lon 6)"],
    [AIR, "var=sea&var=mean", "lat(lat 3) lon(lon 6) height() time(time 4) sea(lat 3, lon 6) mean(time 4)"],
    [AIR, "time=2000-01-02", "time() lat(lat 3) lon(lon 6) height() t2m(lat 3, lon 6) mean()"],
    [
      AIR,
      "isel.lat=0:2",
      "time(time 4) lat(lat 2) lon(lon 6) height() t2m(time 4, lat 2, lon 6) sea(lat 2, lon 6)",
    ],
    [AIR, "lat=50&lon=nearest::8.6", "time(time 4) lat() lon() height() t2m(time 4) sea()"],
    [AIR, "latitude=50", "time(time 4) lat() lon(lon 6) height() t2m(time 4, lon 6) sea(lon 6)"],
    [AIR, "var=time", "height() time(time 4)"],
    [AIR, "var=crs", "height() crs()"],
    [TREE, "var=a/t2m", "a_time(a_time 4) lat(lat 3) a_t2m(a_time 4, lat 3, x 2)"],
    [TREE, "var=a", "a_time(a_time 4) lat(lat 3) a_t2m(a_time 4, lat 3, x 2) a_quality(a_time 4)"],
    [
      TREE,
      "var=/a/t2m/&var=b/t2m&isel.time=1:3",
      "a_time(a_time 2) lat(lat 3) a_t2m(a_time 2, lat 3, x 2) b_t2m(time 2, x_1 7)",
    ],
    [TREE, "isel.lat=1", "lat() a_time(a_time 4) top() a_t2m(a_time 4, x 2)"],
  ];
  for (const [snapshot, query, expected] of cases) {
    const words = (text: string) => text.match(/\w+\([^)]*\)/g)?.sort();
    t.strictSame(words(outline(plan(snapshot, query))), words(expected), query);
  }
});

t.test("labels and indexes become indexes as in xarray", async (t) => {
  const cases: [string, number, unknown][] = [
    ["lat=50", 1, range(1, 1)],
    ["lat=nearest::41", 1, range(2, 1)],
    ["lat=60&lat=40", 1, { indexes: [0, 2] }],
    ["lat=60/50", 1, range(0, 2)],
    ["lat=../50", 1, range(0, 2)],
    ["time=2000-01-02/2000-01-03", 0, range(1, 2)],
    ["time=2000-01-01/2000-01-04&step.time=2", 0, range(0, 2, 2)],
    ["time=2000-01-02/..&step.time=2", 0, range(1, 2, 2)],
    ["lon=-60", 2, range(5, 1)],
    ["lon=-60/60", 2, { indexes: [5, 0, 1] }],
    ["lon=-60/60&step.lon=2", 2, { indexes: [5, 1] }],
    ["isel.lon=-1", 2, range(5, 1)],
    ["isel.lon=-1&isel.lon=0", 2, { indexes: [5, 0] }],
    ["isel.lon=::2", 2, range(0, 3, 2)],
    ["isel.lon=::-1", 2, range(5, 6, -1)],
    ["isel.lon=4:1:-2", 2, range(4, 2, -2)],
    ["isel.lon=-100:100", 2, range(0, 6)],
  ];
  for (const [query, axis, expected] of cases) {
    const { source } = plan(AIR, `var=t2m&${query}`).variables.at(-1)!;
    t.strictSame("selection" in source && source.selection[axis], expected, query);
  }
});

t.test("bytes are known", async (t) => {
  const piece = plan(AIR, "var=t2m&isel.time=0:2&lat=50");
  t.equal(exportedByteLength(piece), 2 * 6 * 2 + 2 * 8 + 8 + 6 * 8 + 8);
  t.strictSame(
    [...piece.dims],
    [
      ["time", 2],
      ["lon", 6],
    ],
  );
});

t.test("attributes are those of the answer", async (t) => {
  const stored = plan(AIR, "var=t2m&lat=50").variables.at(-1)!;
  t.strictSame(stored.attrs, { ...PACKED, _FillValue: 0, coordinates: "height lat" });
  t.strictSame(plan(AIR, "var=t2m", true).variables.at(-1)!.attrs, {
    units: "K",
    coordinates: "height",
    grid_mapping: "crs",
  });
  const flat = plan(TREE, "var=a");
  t.strictSame(flat.attrs, { title: "tree", level: 1 });
  const t2m = flat.variables.find(({ name }) => name === "a_t2m");
  t.strictSame(t2m?.attrs, { _FillValue: "NaN", ancillary_variables: "a_quality a_time: a_time" });
});

t.test("what cannot be answered is refused with what was expected and received", async (t) => {
  const cases: [string, string, string, RegExp][] = [
    ["var=t3m", "var", "unknown_variable", /a variable: time, lat, lon.*received 't3m'/],
    ["var=", "var", "unknown_variable", /received ''/],
    ["level=1", "level", "unknown_dimension", /time, lat, lon.*received 'level'/],
    ["isel.level=1", "isel.level", "unknown_dimension", /received 'isel.level'/],
    ["var=mean&lat=50", "lat", "unknown_dimension", /a dimension: time/],
    ["lat=51", "lat", "label", /60 to 40.*received '51'/],
    ["lat=north", "lat", "label", /a number.*received 'north'/],
    ["lat=ffill::61", "lat", "empty_selection", /received '61'/],
    ["lat=70/80", "lat", "empty_selection", /60 to 40.*received '70\/80'/],
    ["time=2001", "time", "label", /received '2001'/],
    ["time=2000-13-01", "time", "label", /ISO 8601/],
    ["isel.lat=3", "isel.lat", "index_error", /-3 to 2, received '3'/],
    ["isel.lat=2:2", "isel.lat", "empty_selection", /indexes 0 to 2, received '2:2'/],
    ["lat=50&latitude=40", "latitude", "contradiction", /either it or 'lat'/],
  ];
  for (const [query, parameter, type, message] of cases)
    t.match(
      refusal(() => plan(AIR, query)),
      { code: "invalid-query", parameter, type, message },
      query,
    );
  t.match(
    refusal(() => plan(AIR, "var=time&lat=50")),
    { parameter: "lat", type: "unknown_dimension" },
  );
});

t.test("a curvilinear grid is asked for a box or a cell, by latitude and longitude together", async (t) => {
  const [variable] = [
    ...fakeSnapshot("curved", {
      variables: { ice: { dims: ["y", "x"], shape: [2, 3] } },
    }).tree.root.variables.values(),
  ];
  const grid = { latitude: "nav_lat", longitude: "nav_lon", y: 0, x: 1 };
  const own = { ...coordinatesOf(variable!), grid };
  const ask = (text: string) => gridQuestion(parseSelection(text, [], false).axes, variable!, own);
  t.match(ask("lat=40/60&lon=-10/.."), { latitudes: [40, 60], longitudes: [-10, undefined] });
  t.match(ask("nav_lat=nearest::1&nav_lon=nearest::2"), { latitudes: [1], longitudes: [2] });
  t.equal(ask("isel.y=1"), undefined);
  for (const text of [
    "lat=40/60",
    "lat=40/60&lon=nearest::3",
    "lat=40&lon=3",
    "lat=a/b&lon=1/2",
    "isel.lat=1&lon=1/2",
  ])
    t.match(
      refusal(() => ask(text)),
      { code: "invalid-query", type: "grid" },
      text,
    );
});

t.test("coordinates of a projection are no latitudes, even if they are degrees", async (t) => {
  const rotated: PlanContext["coordinatesOf"] = (variable) => {
    const { axes } = coordinatesOf(variable);
    const named = axes.map((axis) => ({ ...axis, dim: `r${axis.dim}` }));
    return {
      axes: named,
      crs: { projection: "+proj=ob_tran" } as unknown as Coordinates["crs"],
      grid: undefined,
    };
  };
  const text = "var=sea&latitude=50";
  t.match(
    refusal(() => plan(AIR, text, false, { coordinatesOf: rotated })),
    { parameter: "latitude" },
  );
  t.equal(outline(plan(AIR, text)), "lat() lon(lon 6) height() sea(lon 6)");
});

t.test("two variables that have one name without slashes are refused", async (t) => {
  const twice = fakeSnapshot("twice", {
    variables: { a_v: { dims: ["x"], shape: [2] } },
    groups: { a: { variables: { v: { dims: ["x"], shape: [2] } } } },
  });
  t.match(
    refusal(() => plan(twice, "var=a_v&var=a/v")),
    { parameter: "var", type: "ambiguous_name" },
  );
  t.equal(outline(plan(twice, "var=a/v")), "a_v(x 2)");
});

t.test("points take the place of dimensions", async (t) => {
  const points = (parameter: string, indexes: readonly number[]): DimSelection => ({
    ...{ parameter, points: Int32Array.from(indexes), selection: range(0, 1), isDropped: true },
  });
  const places = new Map([
    ["lat", points("lat", [0, 2])],
    ["lon", points("lon", [5, -1])],
  ]);
  const ask = (text: string) => {
    const query = parseSelection(text, [], true);
    const dataTypeOf: PlanContext["dataTypeOf"] = ({ variable }) => variable.dataType;
    const context = { snapshot: AIR, coordinatesOf, cellsOf: () => undefined, dataTypeOf };
    return planSelection(context, query, candidateVariables(AIR, query), false, places);
  };
  const answer = ask("var=t2m&isel.time=1");
  t.equal(outline(answer), "time() lat(point 2) lon(point 2) height() t2m(point 2)");
  const { source } = answer.variables.at(-1)!;
  t.strictSame("points" in source && [...source.points], [1, 0, 5, 1, 2, -1]);
  t.strictSame(outline(ask("")), "lat(point 2) lon(point 2) height() sea(point 2) crs()");
  t.match(
    refusal(() => ask("var=t2m")),
    { parameter: "time", type: "missing", message: /for time of 't2m'/ },
  );
  t.match(
    refusal(() => ask("var=t2m&isel.time=1&lat=50")),
    { parameter: "lat", type: "contradiction" },
  );
});
