import t from "tap";
import type { CoordinateAxis } from "../../../src/cf/axis-labels.js";
import type { DatasetSnapshot } from "../../../src/dataset/dataset.js";
import { ZpublishError } from "../../../src/errors.js";
import { type ExportedDataset, exportedByteLength } from "../../../src/export/exported-dataset.js";
import type { Variable } from "../../../src/model/data-tree.js";
import parsePoints from "../../../src/plugins/select/parse-points.js";
import { parseSelection } from "../../../src/plugins/select/parse-selection.js";
import { type PlanValues, planSelection } from "../../../src/plugins/select/plan-selection.js";
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
  return { axes, crs: "degrees", grid: undefined, version: { token: "" } };
}

/** Values that know all coordinates; nothing else can be read. */
const VALUES_OF: PlanValues = {
  coordinates: async (_, { variable }) => coordinatesOf(variable),
  cellBox: async () => t.fail("no question about cells") as never,
  nearestCells: async () => t.fail("no question about cells") as never,
  dataType: ({ variable }) => variable.dataType,
};

/** @param points CSV. */
async function plan(
  snapshot: DatasetSnapshot,
  text: string,
  { isDecoded = false, points, ...more }: { isDecoded?: boolean; points?: string } & Partial<PlanValues> = {},
): Promise<ExportedDataset> {
  const query = parseSelection(text, ["nc"], points !== undefined);
  const table =
    points === undefined ? undefined : parsePoints({ body: Buffer.from(points), contentType: "text/csv" });
  const form = { isDecoded, keepsTexts: false };
  return planSelection({ ...VALUES_OF, ...more }, snapshot, query, form, table);
}

async function refusal(plan: Promise<unknown>): Promise<Record<string, unknown>> {
  try {
    await plan;
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
    t.strictSame(words(outline(await plan(snapshot, query))), words(expected), query);
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
    const { source } = (await plan(AIR, `var=t2m&${query}`)).variables.at(-1)!;
    const selection = "selection" in source ? source.selection[axis] : undefined;
    const plain =
      selection && "indexes" in selection ? { indexes: Array.from(selection.indexes) } : selection;
    t.strictSame(plain, expected, query);
  }
});

t.test("longitudes across the seam ascend from the first bound", async (t) => {
  for (const [query, labels] of [
    ["lon=-60/60", [-60, 0, 60]],
    ["lon=300/60", [300, 360, 420]],
    ["lon=-60/60&step.lon=2", [-60, 60]],
    ["lon=-180/179", [-180, -120, -60, 0, 60, 120]],
    ["lon=0/60", undefined],
    ["isel.lon=-1&isel.lon=0", undefined],
  ] as const) {
    const { variables } = await plan(AIR, `var=t2m&${query}`);
    const { source } = variables.find(({ name }) => name === "lon")!;
    t.strictSame("block" in source ? Array.from(source.block.values!, Number) : undefined, labels, query);
  }
});

t.test("bytes are known", async (t) => {
  const piece = await plan(AIR, "var=t2m&isel.time=0:2&lat=50");
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
  const stored = (await plan(AIR, "var=t2m&lat=50")).variables.at(-1)!;
  t.strictSame(stored.attrs, { ...PACKED, _FillValue: 0, coordinates: "height lat" });
  const decoded = await plan(AIR, "var=t2m", { isDecoded: true });
  t.strictSame(decoded.variables.at(-1)!.attrs, { units: "K", grid_mapping: "crs", coordinates: "height" });
  const flat = await plan(TREE, "var=a");
  t.strictSame(flat.attrs, { title: "tree", level: 1 });
  const t2m = flat.variables.find(({ name }) => name === "a_t2m");
  t.strictSame(t2m?.attrs, { _FillValue: "NaN", ancillary_variables: "a_quality a_time: a_time" });
});

/** A grid of 6 rows and 4 columns that two variables share, and one of their own for winds. */
const CURVED = fakeSnapshot("curved", {
  variables: {
    ice: { dims: ["time", "y", "x"], shape: [2, 6, 4] },
    snow: { dims: ["y", "x"], shape: [6, 4] },
    wind: { dims: ["y_u", "x"], shape: [7, 4] },
    mean: { dims: ["time"], shape: [2] },
    nav_lat: { dims: ["y", "x"], shape: [6, 4], coordinate: true },
    nav_lon: { dims: ["y", "x"], shape: [6, 4], coordinate: true },
  },
});

/** Answers questions about cells, and notes them. */
function curvedValues() {
  const asked: string[] = [];
  const values: Partial<PlanValues> = {
    coordinates: async (_, { variable }) => {
      const [y, x] = [variable.dims.findIndex((dim) => dim.startsWith("y")), variable.dims.indexOf("x")];
      const end = variable.dims[y] === "y_u" ? "_u" : "";
      const grid = y < 0 ? undefined : { latitude: `nav_lat${end}`, longitude: `nav_lon${end}`, y, x };
      return { ...coordinatesOf(variable), crs: undefined, grid };
    },
    cellBox: async (_, { variable }, latitudes, longitudes) => {
      asked.push(`${variable.path}: ${latitudes} ${longitudes}`);
      return {
        y: { begin: 1, count: latitudes[0] === 80 ? 0 : 4, step: 1 },
        x: { begin: 0, count: 3, step: 1 },
      };
    },
    nearestCells: async (_, { variable }, places) => {
      asked.push(`${variable.path}: ${[...places].join(" ")}`);
      return Array.from(places, ([latitude], at) => ({ cell: 9 + at, distance: latitude * 1e5 }));
    },
  };
  return { asked, values };
}

const LATLON = "lat,lon,name\n1,2,a\n3,4,b\n";

t.test("a curvilinear grid is asked once for all its variables, for a box, a cell or points", async (t) => {
  const cases: [query: string, points: string | undefined, asked: readonly string[], expected: string][] = [
    [
      ...(["var=ice&var=snow&lat=40/60&lon=-10/5", undefined, ["ice: 40,60 -10,5"]] as const),
      "nav_lat(y 4, x 3) nav_lon(y 4, x 3) ice(time 2, y 4, x 3) snow(y 4, x 3)",
    ],
    [
      ...(["var=snow&lat=40/60&lon=../..&step.lat=3", undefined, ["snow: 40,60 ,"]] as const),
      "nav_lat(y 2, x 3) nav_lon(y 2, x 3) snow(y 2, x 3)",
    ],
    [
      ...(["var=ice&nav_lat=nearest::1&nav_lon=nearest::2", undefined, ["ice: 1,2"]] as const),
      "nav_lat() nav_lon() ice(time 2)",
    ],
    [
      ...(["lat=nearest::1&lon=nearest::2", undefined, ["ice: 1,2", "wind: 1,2"]] as const),
      "nav_lat() nav_lon() ice(time 2) snow() wind()",
    ],
    [
      ...(["var=ice&var=snow&method=nearest", LATLON, ["ice: 1,2 3,4"]] as const),
      "name(point 2) nav_lat(point 2) nav_lon(point 2) ice(time 2, point 2) snow(point 2)",
    ],
    [...(["var=snow&isel.y=0&isel.x=0:2", undefined, []] as const), "nav_lat(x 2) nav_lon(x 2) snow(x 2)"],
  ];
  for (const [query, points, expectedQuestions, expected] of cases) {
    const { asked, values } = curvedValues();
    t.equal(outline(await plan(CURVED, query, { ...values, ...(points && { points }) })), expected, query);
    t.strictSame(asked, expectedQuestions, query);
  }
  const { values } = curvedValues();
  const near = await plan(CURVED, "var=snow&method=nearest&tolerance=2", { ...values, points: LATLON });
  const { source } = near.variables.at(-1)!;
  t.match(source, { selection: [{ indexes: Int32Array.of(2, -1) }, { indexes: Int32Array.of(1, -1) }] });
});

t.test("a dimension of cells that is named like their latitudes is no latitude", async (t) => {
  const swath = fakeSnapshot("swath", {
    variables: { rain: { dims: ["lat", "lon"], shape: [3, 6] } },
  });
  const coordinates: PlanValues["coordinates"] = async (_, { variable }) => {
    const axes = coordinatesOf(variable).axes.map((axis) => ({
      ...axis,
      variable: undefined,
      values: undefined,
    }));
    return {
      ...coordinatesOf(variable),
      axes,
      crs: undefined,
      grid: { latitude: "latitude", longitude: "longitude", y: 0, x: 1 },
    };
  };
  const { asked, values } = curvedValues();
  const { variables } = await plan(swath, "var=rain&lat=1/2&lon=3/4", { ...values, coordinates });
  t.same(variables[0]?.shape, [4, 3]);
  t.same(asked, ["rain: 1,2 3,4"]);
  t.same((await plan(swath, "var=rain&isel.lat=1", { coordinates })).variables[0]?.shape, [6]);
});

t.test("coordinates of a projection are no latitudes, even if they are degrees", async (t) => {
  const text = "var=sea&latitude=50";
  for (const crs of [undefined, { definition: "+proj=ob_tran", scale: 1 }]) {
    const coordinates: PlanValues["coordinates"] = async (_, { variable }) => {
      const axes = coordinatesOf(variable).axes.map((axis) => ({ ...axis, dim: `r${axis.dim}` }));
      return { ...coordinatesOf(variable), axes, crs };
    };
    t.match(await refusal(plan(AIR, text, { coordinates })), {
      parameter: "latitude",
      type: "unknown_dimension",
    });
  }
  t.equal(outline(await plan(AIR, text)), "lat() lon(lon 6) height() sea(lon 6)");
});

t.test("two variables that have one name without slashes are refused", async (t) => {
  const twice = fakeSnapshot("twice", {
    variables: { a_v: { dims: ["x"], shape: [2] } },
    groups: { a: { variables: { v: { dims: ["x"], shape: [2] } } } },
  });
  t.match(await refusal(plan(twice, "var=a_v&var=a/v")), { parameter: "var", type: "ambiguous_name" });
  t.equal(outline(await plan(twice, "var=a/v")), "a_v(x 2)");
});

t.test("points take the place of dimensions, and others stay", async (t) => {
  const points = "lat,lon,id\n60,300,7\n40,0,8\n50,60,9\n";
  const cases: [query: string, points: string, expected: string][] = [
    [
      ...(["var=t2m&isel.time=1", points] as const),
      "id(point 3) time() lat(point 3) lon(point 3) height() t2m(point 3)",
    ],
    [
      ...(["var=t2m", points] as const),
      "id(point 3) time(time 4) lat(point 3) lon(point 3) height() t2m(time 4, point 3)",
    ],
    [
      ...(["var=t2m&time=2000-01-02/2000-01-03", points] as const),
      "id(point 3) time(time 2) lat(point 3) lon(point 3) height() t2m(time 2, point 3)",
    ],
    [
      ...(["var=t2m", "time,lon\n2000-01-01,0\n2000-01-02,60\n"] as const),
      "time(point 2) lat(lat 3) lon(point 2) height() t2m(point 2, lat 3)",
    ],
    [
      ...(["", points] as const),
      "id(point 3) time(time 4) lat(point 3) lon(point 3) height() t2m(time 4, point 3) sea(point 3)",
    ],
    [
      ...(["var=sea", "lat,lon,latitude\n60,0,1\n"] as const),
      "latitude(point 1) lat(point 1) lon(point 1) height() sea(point 1)",
    ],
  ];
  for (const [query, csv, expected] of cases)
    t.equal(outline(await plan(AIR, query, { points: csv })), expected, `${query} ${csv}`);
  const piece = await plan(AIR, "var=t2m&isel.time=1:3", { points });
  t.match(piece.variables.at(-1)?.source, {
    selection: [range(1, 2), { indexes: Int32Array.of(0, 2, 1) }, { indexes: Int32Array.of(5, 0, 1) }],
    kept: [0, 1],
    points: [1, 2],
  });
  t.same(
    [...piece.dims],
    [
      ["time", 2],
      ["point", 3],
    ],
  );
  t.equal(exportedByteLength(piece), 2 * 3 * 2 + 2 * 8 + 3 * 8 + 3 * 8 + 8 + 3 * 8);
});

t.test("a dimension of the dataset that is called point is another one than that of points", async (t) => {
  const buoys = fakeSnapshot("buoys", {
    variables: {
      time: { dims: ["time"], shape: [4], type: F8 },
      t: { dims: ["time", "point"], shape: [4, 5] },
    },
  });
  const { dims } = await plan(buoys, "var=t", { points: "time\n2000-01-01\n2000-01-02\n" });
  t.same(
    [...dims],
    [
      ["point", 2],
      ["point_1", 5],
    ],
  );
  t.same(
    [...(await plan(buoys, "var=t")).dims],
    [
      ["time", 4],
      ["point", 5],
    ],
  );
});

t.test("integers without a fill value are doubles if a point is outside", async (t) => {
  const typeOf = async (points: string, isDecoded: boolean) => {
    const { variables } = await plan(AIR, "var=sea&lon=0&method=ffill", { points, isDecoded });
    return variables.at(-1)?.dataType.numpyName;
  };
  t.same(await typeOf("lat\n60\n", true), "int16");
  t.same(await typeOf("lat\n70\n", true), "float64");
  t.same(await typeOf("lat\n70\n", false), "int16");
});
