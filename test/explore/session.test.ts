import t from "tap";
import type { VariableDescription } from "../../src/explore/protocol.js";
import { describeDataset } from "../../src/explore/worker/describe-dataset.js";

interface Described {
  readonly shape: readonly number[];
  readonly dims: readonly string[];
  readonly dtype?: string;
  readonly attrs?: Readonly<Record<string, unknown>>;
  readonly more?: Readonly<Record<string, unknown>>;
}

const LAT = { shape: [4], dims: ["lat"], attrs: { units: "degrees_north" } };
const LON = { shape: [6], dims: ["lon"], attrs: { units: "degrees_east" } };
const TIME = { shape: [3], dims: ["time"], dtype: "<i8", attrs: { units: "days since 2000-01-01" } };

t.test("roles, axes, planes and titles", async (t) => {
  const all = describe({
    lat: LAT,
    lon: LON,
    time: TIME,
    v: {
      shape: [3, 4, 6],
      dims: ["time", "lat", "lon"],
      attrs: { units: "K", standard_name: "air_temperature" },
    },
    turned: { shape: [6, 4, 3], dims: ["lon", "lat", "time"], attrs: { long_name: " ", title: "Turned" } },
    profile: { shape: [3], dims: ["time"] },
    label: { shape: [3], dims: ["time"], dtype: "<U4" },
    mask: { shape: [4, 6], dims: ["lat", "lon"], dtype: "|b1" },
    crs: { shape: [], dims: [], dtype: "<i4" },
  });
  const v = all.get("v")!;
  t.match(v, {
    title: "air_temperature",
    units: "K",
    form: "image",
    plane: { y: 1, x: 2 },
    isCategorical: false,
  });
  t.same(
    v.axes.map(({ role, coordinate, isLatitude, isLongitude }) => [
      role,
      coordinate,
      isLatitude,
      isLongitude,
    ]),
    [
      ["T", "time", false, false],
      ["Y", "lat", true, false],
      ["X", "lon", false, true],
    ],
  );
  t.match(all.get("turned"), { plane: { y: 1, x: 0 }, title: "Turned" });
  t.match(all.get("time"), { isCoordinate: true, units: undefined, form: "plot" });
  t.same([all.get("profile")?.form, all.get("label")?.form, all.get("crs")?.form], ["plot", "text", "text"]);
  t.match(all.get("mask"), { isCategorical: true, form: "image" });
});

t.test("fill values keep their digits, and have the type's precision", async (t) => {
  const text =
    '{"a/.zarray":{"shape":[2],"chunks":[2],"dtype":"<M8[ns]","fill_value":-9223372036854775808,"order":"C","filters":null,"compressor":null},';
  const rest =
    '"b/.zarray":{"shape":[2],"chunks":[2],"dtype":"<f4","fill_value":1e20,"order":"C","filters":null,"compressor":null}}';
  const { variables } = describeDataset(`{"metadata":${text}${rest}}`).description;
  t.same(variables[0]?.packing.missing, [-(2 ** 63)]);
  t.same(variables[1]?.packing.missing, [Math.fround(1e20)]);
  t.same(variables[1]?.dims, ["dim_0"], "dimensions without names");
});

t.test("infinite and unsigned fill values", async (t) => {
  const all = describe({
    infinite: { shape: [1], dims: ["x"], more: { fill_value: "-Infinity" } },
    nan: { shape: [1], dims: ["x"], more: { fill_value: "NaN" } },
    text: { shape: [1], dims: ["x"], dtype: "<U8", more: { fill_value: "Infinity" } },
    unsigned: {
      shape: [1],
      dims: ["x"],
      dtype: "<i2",
      attrs: { _Unsigned: "true", _FillValue: -1, valid_range: [0, -2] },
    },
    signed: { shape: [1], dims: ["x"], dtype: "|u1", attrs: { _Unsigned: "false", _FillValue: 255 } },
  });
  t.same(all.get("infinite")?.packing.missing, [Number.NEGATIVE_INFINITY]);
  t.same(all.get("nan")?.packing.missing, []);
  t.same(all.get("text")?.packing.missing, []);
  t.match(all.get("unsigned")?.packing, { missing: [65_535], validMin: 0, validMax: 65_534 });
  t.match(all.get("signed")?.packing, { missing: [-1] });
  t.equal(all.get("unsigned")?.dataType.numpyName, "int16", "the type is the stored one");
});

t.test("curvilinear coordinates have the dimensions of the plane", async (t) => {
  const lat = { shape: [4, 6], dims: ["y", "x"], attrs: { units: "degrees_north" } };
  const lon = { shape: [4, 6], dims: ["y", "x"], attrs: { standard_name: "longitude" } };
  const v = { shape: [3, 4, 6], dims: ["time", "y", "x"], attrs: { coordinates: "nlat nlon" } };
  const all = describe({ "g/nlat": lat, "g/nlon": lon, "g/v": v, "h/v": v });
  t.same(all.get("g/v")?.curvilinear, { latitude: "g/nlat", longitude: "g/nlon" });
  t.same(all.get("h/v")?.curvilinear, { latitude: "g/nlat", longitude: "g/nlon" }, "of another group");
  t.ok(all.get("g/nlat")?.isCoordinate);
  const both = describe({
    lat: LAT,
    nlat: { ...lat, dims: ["lat", "x"] },
    nlon: { ...lon, dims: ["lat", "x"] },
  });
  t.equal(both.get("nlat")?.curvilinear?.latitude, "nlat", "its own");
  const plain = describe({
    lat: LAT,
    lon: LON,
    v: { shape: [4, 6], dims: ["lat", "lon"] },
    nlat: { ...lat, dims: ["lat", "lon"] },
    nlon: { ...lon, dims: ["lat", "lon"] },
  });
  t.equal(plain.get("v")?.curvilinear, undefined, "axes of their own are believed first");
});

t.test("levels are found below their number, and end where shapes do not fit", async (t) => {
  const at = (y: number, x: number): Described => ({ shape: [3, y, x], dims: ["t", "y", "x"] });
  const levels = (overviews: Readonly<Record<string, Described>>, group = "") =>
    describeDataset(metadataOf({ v: at(5, 9) }), metadataOf(overviews), group).description.variables[0]
      ?.levels;
  t.match(levels({ "0/v": at(5, 9), "1/v": at(3, 5), "2/v": at(2, 3) }), [
    { level: 1, path: "1/v", shape: [3, 3, 5], factors: [1, 2, 2] },
    { level: 2, path: "2/v", factors: [1, 4, 4] },
  ]);
  t.same(levels({ "2/v": at(2, 3) }), []);
  t.equal(levels({ "1/v": at(3, 5), "2/v": at(2, 2) })?.length, 1);
  t.equal(levels({ "1/a/b/v": at(3, 5) }, "a/b")?.length, 1, "the overview store has the whole dataset");
  t.equal(levels({ "1/a/b/v": at(3, 5) })?.length, 0);
});

t.test("what cannot be read is a sentence, and the others are there", async (t) => {
  const all = describe({
    good: { shape: [2], dims: ["x"] },
    bz2: { shape: [2], dims: ["x"], more: { compressor: { id: "bz2", level: 1 } } },
    packed: { shape: [2], dims: ["x"], more: { filters: [{ id: "packbits" }] }, dtype: "|b1" },
    odd: { shape: [2], dims: ["x"], dtype: "<q9" },
    long: { shape: [2], dims: ["x"], dtype: "<f16" },
  });
  t.equal(all.get("good")?.problem, undefined);
  t.equal(
    all.get("bz2")?.problem,
    "The codec bz2 cannot be decoded in a browser; serve the dataset with another compressor.",
  );
  t.equal(
    all.get("packed")?.problem,
    "The codec packbits cannot be decoded in a browser; serve the dataset without this filter.",
  );
  t.match(all.get("odd")?.problem, /^expected dtype to be a numpy type/);
  t.match(all.get("long")?.problem, /cannot be shown in a browser\.$/);
  t.ok([...all.values()].every(({ problem, form }) => problem === undefined || form === "text"));
});

function describe(arrays: Readonly<Record<string, Described>>): ReadonlyMap<string, VariableDescription> {
  const { variables } = describeDataset(metadataOf(arrays)).description;
  return new Map(variables.map((variable) => [variable.path, variable]));
}

function metadataOf(arrays: Readonly<Record<string, Described>>): string {
  const metadata: Record<string, unknown> = { ".zgroup": { zarr_format: 2 } };
  for (const [path, { shape, dims, dtype = "<f4", attrs, more }] of Object.entries(arrays)) {
    const rest = { order: "C", filters: null, compressor: null, fill_value: null, zarr_format: 2 };
    metadata[`${path}/.zarray`] = {
      shape,
      chunks: shape.map((length) => Math.max(1, length)),
      dtype,
      ...rest,
      ...more,
    };
    metadata[`${path}/.zattrs`] = { ...attrs, _ARRAY_DIMENSIONS: dims };
  }
  return JSON.stringify({ metadata });
}
