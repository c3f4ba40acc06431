import t from "tap";
import { cfTimeFormatter } from "../../src/cf/cf-time.js";
import { joinParts } from "../../src/join/join-parts.js";
import type { Item } from "../../src/join/join-values.js";
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

t.test(
  "times that are not whole in the first file's units are refused, and large ones get 64 bits",
  async (t) => {
    t.throws(
      () =>
        joinParts(
          [
            part("a.nc", "days since 2001-01-01", [0, 1], "<i2"),
            part("b.nc", "hours since 2001-01-02", [6, 12], "<i4"),
          ],
          BY_TIME,
        ),
      {
        code: "invalid-metadata",
        message:
          "'time': expected times that are exact integers in 'days since 2001-01-01', as in a.nc, received 6 in 'hours since 2001-01-02' in b.nc",
      },
    );
    const wide = joinParts(
      [
        part("a.nc", "seconds since 1970-01-01", [0], ">i4"),
        part("b.nc", "days since 2070-01-01", [0], "<i2"),
      ],
      BY_TIME,
    );
    t.same(valuesOf(wide, "time"), [0n, 3155760000n]);
    t.match(arrayOf(wide, "time")?.stored.dataType.zarr, ">i8");
  },
);

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
      message: `'time': expected times that are exact floats in 'days since 2001-01-01', as in a.nc, received ${1 / 3} in 'days since 2001-01-02' in b.nc`,
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

t.test("any times keep their dates, or are refused", async (t) => {
  const names = ["days", "hours", "minutes", "seconds"];
  const random = (below: number) => Math.floor(Math.random() * below);
  let compared = 0;
  for (let round = 0; round < effort(2000); round++) {
    const isFloat = Math.random() < 0.5;
    const files = Array.from({ length: 1 + random(4) }, (_, index) => ({
      units: `${names[random(names.length)]} since ${1980 + random(60)}-0${1 + random(9)}-1${random(10)} 0${random(10)}:30`,
      values: Array.from({ length: 1 + random(4) }, () =>
        isFloat ? random(4000) / 2 ** random(4) : BigInt(random(100_000) - 500),
      ),
      name: `${index}.nc`,
    }));
    const dtype = isFloat ? "<f8" : "<i8";
    const parts = files.map(({ name, values, units }, index) =>
      describePart(name, {
        time: { dims: ["time"], values: values.map((_, step) => index * 100 + step) },
        seen: { dims: ["time"], values, dtype, attrs: { units } },
      }),
    );
    const tree = joinParts(parts, BY_TIME);
    if (tree.refused.length > 0) {
      if (!/exact (integers|floats) in/.test(tree.refused[0]?.reason ?? "")) t.same(tree.refused, []);
      continue;
    }
    compared++;
    const units = files[0]?.units ?? "";
    const expected = files.flatMap((file) =>
      file.values.map((item) => cfTimeFormatter({ units: file.units })?.(item)),
    );
    const received = valuesOf(tree, "seen").map((item) => cfTimeFormatter({ units })?.(item as number));
    if (expected.join() !== received.join()) t.same(received, expected, units);
  }
  t.ok(compared > effort(2000) / 4, `${compared} compared`);
});
