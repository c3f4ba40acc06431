import { spawnSync } from "node:child_process";
import fc from "fast-check";
import t from "tap";
import { type AxisRole, axisRole, isLatitude, isLongitude, planeOf } from "../../src/cf/axis-roles.js";
import { CALENDARS, cfTimeFormatter } from "../../src/cf/cf-time.js";
import { colourBandsOf, levelPathsOf, missingMarkOf } from "../../src/cf/image-data.js";
import { isCategorical, packingOf } from "../../src/cf/packing.js";
import { unitText, withUnits } from "../../src/cf/unit-text.js";
import type { JsonObject } from "../../src/json/json-value.js";
import { parseJson } from "../../src/json/parse-json.js";
import { parseDataType } from "../../src/model/data-type.js";
import { PYTHON } from "../support/clients/require-client.js";

const SCRIPT = `
import json, sys
import cftime
answers = []
for units, calendar, value in json.load(sys.stdin):
    answers.append(cftime.num2date(value, units, calendar, has_year_zero=True).isoformat())
json.dump(answers, sys.stdout)
`;

const probe = spawnSync(PYTHON, ["-c", "import cftime"]);
const skip = probe.status === 0 ? false : "skipped, because cftime is not there";

t.test("dates are those of cftime, in every calendar", { skip }, async (t) => {
  const cases: [string, string, number][] = [];
  for (const calendar of Object.keys(CALENDARS)) {
    for (const units of [
      "days since 1970-01-01",
      "hours since 1900-01-01 00:00:00.0",
      "seconds since 2000-02-28T12:30:15Z",
      "minutes since 1582-10-01 06:00",
      "days since 0001-01-01 00:00:00",
      "milliseconds since 1999-12-30 23:59:59 +01:30",
    ]) {
      for (const value of [
        0, 1, 59, 60, 365, 366, 1461, 36_524, 100_000, 577_735, 577_736, -1, -400, 10_000_000,
      ]) {
        if (value > 1e6 && /^days/.test(units)) continue;
        cases.push([units, calendar, value]);
      }
    }
  }
  const run = spawnSync(PYTHON, ["-c", SCRIPT], { input: JSON.stringify(cases), encoding: "utf8" });
  t.equal(run.status, 0, run.stderr);
  const answers = JSON.parse(run.stdout) as string[];
  for (const [index, [units, calendar, value]] of cases.entries()) {
    const ours = cfTimeFormatter({ units, calendar })?.(value);
    const theirs = (answers[index] as string).replace(/(\.\d+?)0+$/, "$1");
    if (ours !== theirs) t.equal(ours, theirs, `${value} ${units}, ${calendar}`);
  }
  t.pass(`${cases.length} dates`);
});

t.test("dates become days and the same dates again over centuries", async (t) => {
  for (const [name, calendar] of Object.entries(CALENDARS)) {
    let wrong = 0;
    let previous = "";
    for (let days = -800_000; days < 800_000; days += 13) {
      const date = calendar.dateOf(days);
      if (calendar.daysOf(date) !== days || String(date) === previous) wrong++;
      previous = String(date);
    }
    t.equal(wrong, 0, name);
  }
});

t.test("fractions are times of day, missing values NaT", async (t) => {
  const format = cfTimeFormatter({ units: "days since 1800-01-01", _FillValue: -999, missing_value: 1e20 });
  t.equal(format?.(73_000.1), "1999-11-14T02:24:00");
  t.equal(format?.(0.5), "1800-01-01T12:00:00");
  t.equal(format?.(73_000n), "1999-11-14T00:00:00");
  for (const missing of [-999, -999n, 1e20, Number.NaN, Number.POSITIVE_INFINITY])
    t.equal(format?.(missing), "NaT");
  t.equal(cfTimeFormatter({ units: "seconds since 1970-01-01" })?.(1.25), "1970-01-01T00:00:01.25");
  t.equal(cfTimeFormatter({ units: "days since 1970-01-01" })?.(2n ** 62n), String(2n ** 62n), "no date");
});

t.test("attributes that describe no CF time have no formatter", async (t) => {
  for (const attrs of [
    {},
    { units: "K" },
    { units: "days" },
    { units: "months since 2000-01-01" },
    { units: "days since 2000-13-01" },
    { units: "days since 2001-02-29" },
    { units: "days since yesterday" },
    { units: "constructor since 2000-01-01" },
    { units: "days since 2000-01-01", calendar: "lunar" },
    { units: "days since 2000-01-01", calendar: 7 },
    { units: "days since 2000-01-01", scale_factor: 2 },
    { units: 5 },
  ]) {
    t.equal(cfTimeFormatter(attrs), undefined, JSON.stringify(attrs));
  }
  t.ok(cfTimeFormatter({ units: "days since 2000-02-29", calendar: "gregorian" }));
  t.notOk(cfTimeFormatter({ units: "days since 2000-02-29", calendar: "noleap" }));
  t.ok(cfTimeFormatter({ units: "days since 2000-02-30", calendar: "360_day" }));
});

t.test("attributes tell the role of an axis, in the order of the conventions", async (t) => {
  const roles: readonly (readonly [JsonObject, AxisRole | undefined])[] = [
    [{ axis: "Z", standard_name: "latitude" }, "Z"],
    [{ axis: "x" }, "X"],
    [{ axis: "Q", standard_name: "time" }, "T"],
    [{ standard_name: "projection_y_coordinate", units: "m" }, "Y"],
    [{ standard_name: "air_pressure" }, "Z"],
    [{ standard_name: "toString" }, undefined],
    [{ units: "degrees_north" }, "Y"],
    [{ units: "degree_N" }, "Y"],
    [{ units: "degreeE" }, "X"],
    [{ units: "degrees" }, undefined],
    [{ units: "hours since 1900-01-01" }, "T"],
    [{ units: "since" }, undefined],
    [{ units: "hPa" }, "Z"],
    [{ units: "m", positive: "down" }, "Z"],
    [{ units: 5, axis: ["X"] }, undefined],
    [{}, undefined],
  ];
  for (const [attrs, role] of roles) t.equal(axisRole("some", attrs), role, JSON.stringify(attrs));
});

t.test("names of dimensions tell the role of axes without attributes", async (t) => {
  const names: Readonly<Record<string, AxisRole | undefined>> = {
    ...{ time: "T", Times: "T", lev: "Z", depth: "Z", south_north: "Y", LAT: "Y", nav_lon: "X", xi_rho: "X" },
    ...{ band: undefined, station: undefined, latitudes: undefined, xy: undefined },
  };
  for (const [name, role] of Object.entries(names)) t.equal(axisRole(name, undefined), role, name);
  t.equal(axisRole("lat", { units: "degrees_east" }), "X", "attributes are believed before names");
});

t.test("latitudes and longitudes are told from coordinates of rotated grids", async (t) => {
  t.ok(isLatitude({ standard_name: "latitude", units: "radian" }));
  t.ok(isLatitude({ units: "degrees_north" }));
  t.notOk(isLatitude({ standard_name: "grid_latitude", units: "degrees" }));
  t.ok(isLongitude({ units: "degrees_east" }));
  t.notOk(isLongitude({ units: "degrees_north" }));
});

t.test("a picture shows the axes that a person expects", async (t) => {
  const plane = (...dims: string[]) => planeOf(dims, () => undefined);
  t.same(plane("time", "lat", "lon"), { y: 1, x: 2 });
  t.same(plane("lon", "lat", "time"), { y: 1, x: 0 }, "transposed");
  t.same(plane("a", "b", "c"), { y: 1, x: 2 });
  t.same(plane("lat", "a", "b"), { y: 0, x: 2 }, "one role: it and the last other one");
  t.same(plane("a", "b", "lon"), { y: 1, x: 2 });
  t.same(plane("time", "lev"), { y: 1, x: 0 }, "a profile through time");
  t.same(plane("lat", "time"), { y: 0, x: 1 }, "latitudes through time");
  t.same(plane("time", "lon"), { y: 0, x: 1 }, "longitudes to the right");
  t.same(plane("time", "lev", "lat"), { y: 1, x: 2 }, "a section, and not through time");
  t.same(plane("lev", "lon", "time"), { y: 0, x: 1 });
  t.same(plane("time", "station"), { y: 1, x: 0 });
  t.same(plane("time", "lev", "node"), { y: 1, x: 2 });
  t.same(plane("time", "lev", "j", "i"), { y: 2, x: 3 });
  const long = (shape: readonly number[], ...dims: string[]) => planeOf(dims, () => undefined, shape);
  t.same(long([9, 5, 1, 1], "time", "lev", "lat", "lon"), { y: 1, x: 0 }, "one place");
  t.same(long([9, 5, 1, 7], "time", "lev", "lat", "lon"), { y: 1, x: 3 }, "one latitude");
  t.same(long([9, 1, 1], "time", "lat", "lon"), { y: 1, x: 2 }, "nothing else");
  t.equal(plane("lat"), undefined);
  t.equal(plane(), undefined);
});

t.test("flags beside numbers make no categories", async (t) => {
  t.ok(isCategorical({ flag_values: [0, 1], valid_range: [0, 1] }));
  t.ok(isCategorical({ flag_masks: [1, 2] }));
  t.notOk(isCategorical({ flag_values: [251, 252], scale_factor: 0.004 }));
  t.notOk(isCategorical({ flag_values: [251, 252], valid_range: [0, 250] }));
  t.notOk(isCategorical({}));
});

t.test("images in colour are told from other variables", async (t) => {
  const bandsOf = (dims: string[], shape: number[], dtype = "|u1", attrs = {}) =>
    colourBandsOf({ dims, shape, dataType: parseDataType(dtype), attrs });
  const named = (...names: string[]) => ({ color_interpretation: names });
  t.same(bandsOf(["band", "y", "x"], [3, 9, 9]), { axis: 0, count: 3 });
  t.same(bandsOf(["y", "x", "rgb"], [9, 9, 4]), { axis: 2, count: 4 });
  t.same(bandsOf(["dim_0", "dim_1", "dim_2"], [9, 9, 3]), { axis: 2, count: 3 }, "an image without names");
  t.same(bandsOf(["t", "c", "z", "y", "x"], [1, 3, 1, 9, 9], "<u2"), { axis: 1, count: 3 });
  t.same(bandsOf(["band", "y", "x"], [4, 9, 9], "|u1", named("red", "green", "blue", "undefined")), {
    axis: 0,
    count: 3,
  });
  t.same(bandsOf(["band", "y", "x"], [4, 9, 9], "<u2", named("red", "green", "blue", "alpha")), {
    axis: 0,
    count: 4,
  });
  t.equal(bandsOf(["band", "y", "x"], [3, 9, 9], "|u1", named("gray", "undefined", "undefined")), undefined);
  t.equal(bandsOf(["band", "y", "x"], [4, 9, 9], "<u2"), undefined, "the fourth may be infrared");
  t.equal(bandsOf(["band", "y", "x"], [3, 9, 9], "<f4"), undefined);
  t.equal(bandsOf(["band", "y", "x"], [3, 9, 9], "|u1", { units: "K" }), undefined);
  t.equal(bandsOf(["band", "y", "x"], [5, 9, 9]), undefined);
  t.equal(bandsOf(["band", "x"], [3, 9]), undefined);
  t.equal(bandsOf(["time", "y", "x"], [3, 9, 9]), undefined);
});

t.test(
  "the fill value 0 of an image is black, unless an attribute of CF makes it more than pixels",
  async (t) => {
    const markOf = (dtype: string, fill: number, attrs = {}) =>
      missingMarkOf({ dataType: parseDataType(dtype), attrs }, fill);
    t.equal(markOf("|u1", 0), null);
    t.equal(markOf("<u2", 0, { color_interpretation: [] }), null);
    t.equal(markOf("|u1", 255), 255);
    t.equal(markOf("<i2", 0), 0);
    t.equal(markOf("<f4", 0), 0);
    for (const name of ["_FillValue", "missing_value", "grid_mapping", "units", "scale_factor"])
      t.equal(markOf("|u1", 0, { [name]: "a" }), 0, name);
  },
);

t.test("groups say which arrays are coarser versions of another", async (t) => {
  const groups: Record<string, JsonObject> = {
    "": { multiscales: { layout: [{ asset: "data" }, { asset: "overview_1/data" }, { asset: "o2/data" }] } },
    cells: { multiscales: [{ datasets: [{ path: "0" }, { path: "1" }] }] },
    new: { ome: { multiscales: [{ datasets: [{ path: "s0" }, { path: "s1" }] }] } },
    eo: { multiscales: { layout: [{ asset: "r10m" }, { asset: "r20m" }] } },
  };
  const pathsOf = (path: string) => levelPathsOf(path, (group) => groups[group]);
  t.same(pathsOf("data"), ["overview_1/data", "o2/data"]);
  t.same(pathsOf("overview_1/data"), []);
  t.same(pathsOf("cells/0"), ["cells/1"]);
  t.same(pathsOf("new/s0"), ["new/s1"]);
  t.same(pathsOf("eo/r10m/b02"), ["eo/r20m/b02"]);
  t.same(pathsOf("eo/r10"), []);
});

t.test("both axes of a picture differ and exist", async () => {
  const dims = fc.array(fc.constantFrom("t", "z", "y", "x", "a", "b", "lat", "lon"), {
    minLength: 2,
    maxLength: 6,
  });
  fc.assert(
    fc.property(dims, (names) => {
      const plane = planeOf(names, () => undefined);
      return plane !== undefined && plane.x !== plane.y && plane.x in names && plane.y in names;
    }),
  );
});

const NONE = {
  missing: [],
  validMin: Number.NEGATIVE_INFINITY,
  validMax: Number.POSITIVE_INFINITY,
  scale: 1,
  offset: 0,
  isUnsigned: undefined,
};

/** Attributes as a document has them, so that numbers are of every form. */
function attrsOf(text: string): JsonObject {
  return parseJson(text) as JsonObject;
}

t.test("attributes become a packing", async (t) => {
  t.same(packingOf({}), NONE);
  t.same(packingOf(attrsOf('{"scale_factor":1e-2,"add_offset":273.150}')), {
    ...NONE,
    scale: 0.01,
    offset: 273.15,
  });
  t.match(
    packingOf(attrsOf('{"_FillValue":-32768,"missing_value":[-1.0,9e99]}')).missing,
    [-32768, -1, 9e99],
  );
  t.same(packingOf(attrsOf('{"_FillValue":NaN,"missing_value":"none"}')), NONE, "NaN is missing anyway");
  t.match(packingOf({ valid_range: [0, 100] }), { validMin: 0, validMax: 100 });
  t.match(packingOf({ valid_min: 1, valid_max: 9, valid_range: [0, 100] }), { validMin: 1, validMax: 9 });
  t.match(packingOf({ valid_min: 3 }), { validMin: 3, validMax: Number.POSITIVE_INFINITY });
  t.equal(packingOf({ _Unsigned: "true" }).isUnsigned, true);
  t.equal(packingOf({ _Unsigned: "False" }).isUnsigned, false);
  t.match(packingOf({ scale_factor: "0.1", add_offset: null, valid_range: "0 1" }), NONE);
});

t.test("the array's fill value is a missing one, zero as well, and each is there once", async (t) => {
  t.same(packingOf({}, 0).missing, [0]);
  t.same(packingOf({}, null).missing, []);
  t.same(packingOf({ _FillValue: 0, missing_value: 0 }, 0).missing, [0]);
  t.same([...packingOf({ _FillValue: 1 }, 0).missing].sort(), [0, 1]);
  t.same(packingOf({}, "NaN").missing, []);
  t.same(packingOf({}, false).missing, []);
  t.same(packingOf({}, parseJson("-9223372036854775808")).missing, [-(2 ** 63)]);
});

t.test("flags are categories", async (t) => {
  t.ok(isCategorical({ flag_values: [0, 1], flag_meanings: "sea land" }));
  t.ok(isCategorical({ flag_masks: [1, 2] }));
  t.notOk(isCategorical({ flag_meanings: "sea land" }));
});

t.test("units are written for people", async (t) => {
  for (const [units, text] of [
    ["kg kg-1", "kg kg⁻¹"],
    ["m s-1", "m s⁻¹"],
    ["kg.m-2.s-1", "kg·m⁻²·s⁻¹"],
    ["W m**-2", "W m⁻²"],
    ["W/m^2", "W/m²"],
    ["m^{-3}", "m⁻³"],
    ["m3 m-3", "m³ m⁻³"],
    ["1e-3", "10⁻³"],
    ["10^-6 mol", "10⁻⁶ mol"],
    ["meter second-1", "m s⁻¹"],
    ["kilometers", "km"],
    ["hectopascal", "hPa"],
    ["degrees_north", "°N"],
    ["degrees_east", "°E"],
    ["degree", "°"],
    ["degC", "°C"],
    ["degree_Celsius", "°C"],
    ["degK", "K"],
    ["Kelvin", "K"],
    ["C", "C"],
    ["percent", "%"],
    ["ug m-3", "µg m⁻³"],
    ["ppm CO2", "ppm CO2"],
    ["mm/day", "mm/day"],
    ["months", "months"],
  ] as const)
    t.equal(unitText(units), text);
  t.equal(withUnits("0.012", "kg kg-1"), "0.012 kg kg⁻¹");
  t.equal(withUnits("-1.5e-7", "K"), "-1.5×10⁻⁷ K");
  t.equal(withUnits("1e+21", undefined), "10²¹");
  t.equal(withUnits("285", "degree"), "285°");
  t.equal(withUnits("2013-01-01", undefined), "2013-01-01");
});
