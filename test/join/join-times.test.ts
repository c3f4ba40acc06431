import t from "tap";
import { type CfTimeScale, cfTimeFormatter, cfTimeScale } from "../../src/cf/cf-time.js";
import { joinParts } from "../../src/join/join-parts.js";
import { type Item, joinTimes, readItems, writeItems } from "../../src/join/join-values.js";
import { parseDataType } from "../../src/model/data-type.js";
import { effort } from "../effort.js";
import { arrayOf, describePart, valuesOf } from "./describe-part.js";

const BY_TIME = { kind: "concat", dimension: "time" } as const;

/** A part with one time coordinate. */
function part(name: string, units: string, values: readonly Item[], dtype: string, attrs = {}) {
  return describePart(name, { time: { dims: ["time"], values, dtype, attrs: { units, ...attrs } } });
}

t.test("times are counted in the units of the first file", async (t) => {
  const tree = joinParts(
    [
      part("2002.nc", "days since 2002-01-01", [0, 1], "<i4"),
      part("2001.nc", "days since 2001-01-01", [363, 364], "<i4"),
    ],
    BY_TIME,
  );
  t.same(valuesOf(tree, "time"), [363, 364, 365, 366]);
  t.match(arrayOf(tree, "time")?.stored, {
    attrs: { units: "days since 2001-01-01" },
    dataType: { zarr: "<i4" },
    shape: [4],
  });
  t.same(tree.warnings, [
    "'time': times of 1 of 2 files are converted to 'days since 2001-01-01', the first of 2002.nc, which has 'days since 2002-01-01'",
  ]);
});

t.test("units that are written otherwise and mean the same are no change", async (t) => {
  const tree = joinParts(
    [
      part("a.nc", "days since 2001-01-01", [0], "<i4"),
      part("b.nc", "days since 2001-1-1 00:00:00", [1], "<i4", { calendar: "gregorian" }),
    ],
    BY_TIME,
  );
  t.same(valuesOf(tree, "time"), [0, 1]);
  t.same(tree.warnings, []);
});

t.test("times that are not whole are counted in a finer unit, and large ones in 64 bits", async (t) => {
  const finer = joinParts(
    [
      part("a.nc", "days since 2001-01-01", [0, 1], "<i2"),
      part("b.nc", "hours since 2001-01-02", [6, 12], "<i4"),
    ],
    BY_TIME,
  );
  t.same(valuesOf(finer, "time"), [0, 24, 30, 36]);
  t.match(arrayOf(finer, "time")?.stored, {
    attrs: { units: "hours since 2001-01-01" },
    dataType: { zarr: "<i2" },
  });
  const wide = joinParts(
    [part("a.nc", "seconds since 1970-01-01", [0], ">i4"), part("b.nc", "days since 2070-01-01", [0], "<i2")],
    BY_TIME,
  );
  t.same(valuesOf(wide, "time"), [0n, 3155760000n]);
  t.match(arrayOf(wide, "time")?.stored.dataType.zarr, ">i8");
});

t.test("floats stay floats if each time is exactly one", async (t) => {
  const half = joinParts(
    [
      part("a.nc", "days since 2001-01-01", [0.5], "<f4"),
      part("b.nc", "hours since 2001-01-02", [12], "<f8"),
    ],
    BY_TIME,
  );
  t.same(valuesOf(half, "time"), [0.5, 1.5]);
  t.match(arrayOf(half, "time")?.stored.dataType.zarr, "<f4");
  const hours = joinParts(
    [part("a.nc", "days since 2001-01-01", [0.5], "<f8"), part("b.nc", "hours since 2001-01-02", [1], "<f8")],
    BY_TIME,
  );
  t.same(valuesOf(hours, "time"), [12, 25]);
  t.match(arrayOf(hours, "time")?.stored.attrs, { units: "hours since 2001-01-01" });
  t.throws(
    () =>
      joinParts(
        [
          part("a.nc", "days since 2001-01-01", [1 / 3], "<f8"),
          part("b.nc", "days since 2001-01-02", [1 / 3], "<f8"),
        ],
        BY_TIME,
      ),
    {
      code: "invalid-metadata",
      message:
        "'time': expected times in 'days since 2001-01-01', as in a.nc, received 'days since 2001-01-02' in b.nc, and some that are no exact floats in these or finer units",
    },
  );
});

t.test("calendars are the same, or the dataset is refused", async (t) => {
  const calendars =
    (a: string, b: string, since = "2001-01-01") =>
    () =>
      joinParts(
        [
          part("a.nc", `days since ${since}`, [0], "<i4", { calendar: a }),
          part("b.nc", `days since ${since}`, [1], "<i4", { calendar: b }),
        ],
        BY_TIME,
      );
  t.same(valuesOf(calendars("noleap", "365_day")(), "time"), [0, 1]);
  t.same(valuesOf(calendars("standard", "proleptic_gregorian")(), "time"), [0, 1]);
  t.throws(calendars("standard", "noleap"), {
    message:
      "'time': expected units 'days since 2001-01-01', 'standard' in b.nc, as in a.nc, received 'days since 2001-01-01', 'noleap'",
  });
  t.throws(calendars("standard", "proleptic_gregorian", "1500-01-01"), { code: "invalid-metadata" });
});

t.test("a mark of missing times keeps its meaning", async (t) => {
  const others =
    (values: readonly Item[], attrs: Record<string, number>, mark: Record<string, number>) => () => {
      const file = (name: string, year: number, own: readonly Item[], ownAttrs: object) =>
        describePart(name, {
          time: { dims: ["time"], values: [year, year + 0.5] },
          seen: {
            dims: ["time"],
            values: own,
            dtype: "<i4",
            attrs: { units: `days since ${year}-01-01`, ...ownAttrs },
          },
        });
      return joinParts([file("a.nc", 2001, [0, 1], mark), file("b.nc", 2002, values, attrs)], BY_TIME);
    };
  const joined = others([1, -1], { _FillValue: -1 }, { _FillValue: -999 })();
  t.same(valuesOf(joined, "seen"), [0, 1, 366, -999]);
  t.match(others([1, -1], { _FillValue: -1 }, {})().refused[0]?.reason, /received a missing one/);
  t.match(others([1, 2], {}, { _FillValue: 366 })().refused[0]?.reason, /would be 366, its mark/);
});

t.test("bounds of converted times are refused", async (t) => {
  const file = (year: number) =>
    describePart(`${year}.nc`, {
      time: {
        dims: ["time"],
        values: [0],
        dtype: "<i4",
        attrs: { units: `days since ${year}-01-01`, bounds: "time_bnds" },
      },
      time_bnds: { dims: ["time", "nv"], shape: [1, 2] },
    });
  t.same(joinParts([file(2001), file(2002)], BY_TIME).refused, [
    { path: "time_bnds", reason: "times of 'time' are converted to other units, and its bounds cannot be" },
  ]);
});

t.test("any times keep their dates", async (t) => {
  const names = ["days", "hours", "minutes", "seconds"];
  const random = (below: number) => Math.floor(Math.random() * below);
  for (let round = 0; round < effort(2000); round++) {
    const isFloat = Math.random() < 0.5;
    const dtype = isFloat ? "<f8" : "<i8";
    const parts = Array.from({ length: 1 + random(4) }, (_, index) => {
      const units = `${names[random(names.length)]} since ${1980 + random(60)}-0${1 + random(9)}-1${random(10)} 0${random(10)}:30`;
      const items = Array.from({ length: random(5) }, () =>
        isFloat ? random(4000) / 2 ** random(4) : BigInt(random(100_000) - 500),
      );
      const type = parseDataType(dtype);
      return {
        name: `${index}.nc`,
        units,
        scale: cfTimeScale({ units }) as CfTimeScale,
        items: readItems(writeItems(items, type), type),
        missing: [],
      };
    });
    const joined = joinTimes(parts, parseDataType(dtype));
    const format = cfTimeFormatter({ units: joined.units });
    parts.forEach(({ items, units }, index) => {
      const expected = Array.from(items as Iterable<number>, (item) => cfTimeFormatter({ units })?.(item));
      const bytes = writeItems(joined.items[index] as Item[], joined.dataType);
      const received = Array.from(readItems(bytes, joined.dataType) as Iterable<number>, (item) =>
        format?.(item),
      );
      if (expected.join() !== received.join()) t.same(received, expected, `${units} as ${joined.units}`);
    });
  }
});
