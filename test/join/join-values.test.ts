import { deflateSync } from "node:zlib";
import t, { type Test } from "tap";
import { cfTimeFormatter } from "../../src/cf/cf-time.js";
import { describePart as describeStored, type PartArray } from "../../src/join/describe-part.js";
import type { JoinedArray } from "../../src/join/join-arrays.js";
import { joinParts } from "../../src/join/join-parts.js";
import type { Item } from "../../src/join/join-values.js";
import type { JsonObject } from "../../src/json/json-value.js";
import { openSource } from "../../src/open/open-source.js";
import { unpackConversion } from "../support/codec/unpack-conversion.js";
import { effort } from "../support/effort.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../support/write-store.js";
import { type ArrayInput, arrayOf, describePart, valuesOf } from "./describe-part.js";

const BY_TIME = { kind: "concat", dimension: "time" } as const;

type Times = readonly [units: string, values: readonly Item[], dtype?: string, attrs?: JsonObject];

/** Joins files `a.nc`, `b.nc` of one time coordinate each. */
function joinTimes(...files: readonly Times[]) {
  const parts = files.map(([units, values, dtype = "<i4", attrs], index) =>
    describePart(["a.nc", "b.nc"][index] ?? "c.nc", {
      time: { dims: ["time"], values, dtype, attrs: { units, ...attrs } },
    }),
  );
  return joinParts(parts, BY_TIME);
}

t.test("times are counted in the units of the first file", async (t) => {
  const tree = joinTimes(["days since 2002-01-01", [0, 1]], ["days since 2001-01-01", [363, 364]]);
  t.same(valuesOf(tree, "time"), [363, 364, 365, 366]);
  t.match(arrayOf(tree, "time")?.stored, {
    attrs: { units: "days since 2001-01-01" },
    dataType: { zarr: "<i4" },
    shape: [4],
  });
  t.same(tree.warnings, [
    "'time': times of 1 of 2 files are converted to 'days since 2001-01-01', the first of a.nc, which has 'days since 2002-01-01'",
  ]);
  const calendar = { calendar: "gregorian" };
  const same = joinTimes(["days since 2001-01-01", [0]], ["days since 2001-1-1 00:00", [1], "<i4", calendar]);
  t.same([valuesOf(same, "time"), same.warnings], [[0, 1], []], "units that mean the same");
});

t.test("times that are not exact in the first file's units are refused", async (t) => {
  for (const [first, second, message] of [
    [
      ["days since 2001-01-01", [0, 1], "<i2"],
      ["hours since 2001-01-02", [6, 12]],
      "'time': expected times that are exact integers in 'days since 2001-01-01', as in a.nc, received 6 in 'hours since 2001-01-02' in b.nc",
    ],
    [
      ["days since 2001-01-01", [0], "<f8"],
      ["nanoseconds since 2201-01-02", [1], "<f8"],
      "'time': expected times that are exact floats in 'days since 2001-01-01', as in a.nc, received",
    ],
  ] as const satisfies readonly (readonly [Times, Times, string])[])
    t.throws(() => joinTimes(first, second), { code: "invalid-metadata", message });
});

t.test("large times get 64 bits, and floats stay floats if each time is exactly one", async (t) => {
  const wide = joinTimes(["seconds since 1970-01-01", [0], ">i4"], ["days since 2070-01-01", [0], "<i2"]);
  t.same(valuesOf(wide, "time"), [0n, 3155760000n]);
  t.match(arrayOf(wide, "time")?.stored.dataType.zarr, ">i8");
  const half = joinTimes(["days since 2001-01-01", [0.5], "<f4"], ["hours since 2001-01-02", [12], "<f8"]);
  t.same(valuesOf(half, "time"), [0.5, 1.5]);
  t.match(arrayOf(half, "time")?.stored.dataType.zarr, "<f4");
});

t.test("calendars are the same, or the dataset is refused", async (t) => {
  const calendars = (a: string, b: string, since = "2001-01-01") => {
    const units = `days since ${since}`;
    return joinTimes([units, [0], "<i4", { calendar: a }], [units, [1], "<i4", { calendar: b }]);
  };
  t.same(valuesOf(calendars("noleap", "365_day"), "time"), [0, 1]);
  t.same(valuesOf(calendars("standard", "proleptic_gregorian"), "time"), [0, 1]);
  t.throws(() => calendars("standard", "noleap"), {
    message:
      "'time': expected units 'days since 2001-01-01', 'standard' in b.nc, as in a.nc, received 'days since 2001-01-01', 'noleap'",
  });
  t.throws(() => calendars("standard", "proleptic_gregorian", "1500-01-01"), { code: "invalid-metadata" });
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
  t.match(others([1, -1], { _FillValue: -1 }, {})().refused[0]?.reason, /as in a.nc, received -1 in/);
  t.match(others([1, 2], {}, { _FillValue: 366 })().refused[0]?.reason, /as in a.nc, received 1 in/);
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

type Input = Partial<ArrayInput> & { readonly length?: number };

/** Joins a variable `v` along `time` and `x`, of files of 12 steps, or of as many as are given. */
function join(...inputs: readonly Input[]) {
  const parts = inputs.map(({ length = 12, ...input }, index) =>
    describePart(`${index}.nc`, {
      v: { dims: ["time", "x"], shape: [length, 3], chunks: [1, 3], ...input },
    }),
  );
  return joinParts(parts, BY_TIME);
}

function spansOf(array: JoinedArray | undefined) {
  return array?.kind === "joined" ? array.spans : [];
}

const conversionsOf = (tree: ReturnType<typeof join>) =>
  spansOf(arrayOf(tree, "v")).map(({ conversion }) => conversion);
const passedOf = (tree: ReturnType<typeof join>) =>
  spansOf(arrayOf(tree, "v")).map(({ isPassed }) => isPassed);

t.test("files that are packed differently are served unpacked, as xarray decodes them", async (t) => {
  const packing = (scale_factor: number, more = {}) => ({ scale_factor, long_name: "v", ...more });
  const tree = join(
    { dtype: ">i2", fill: -1, attrs: packing(0.5) },
    { dtype: ">i2", fill: -1, attrs: packing(0.25, { missing_value: -2 }) },
    { dtype: "<f4" },
  );
  t.match(arrayOf(tree, "v")?.stored, {
    dataType: { zarr: "<f4" },
    attrs: { long_name: "v", scale_factor: undefined },
    fill: { served: "NaN" },
  });
  t.same(conversionsOf(tree), [
    unpackConversion({ from: ">i2", to: "<f4", scale: 0.5, missing: [-1] }),
    unpackConversion({ from: ">i2", to: "<f4", scale: 0.25, missing: [-1, -2] }),
    undefined,
  ]);
  t.same(passedOf(tree), [false, false, true]);
  t.same(tree.warnings, [
    "'v': served unpacked, as float32: 2 of 3 files are stored otherwise than 0.nc, the first of them 1.nc",
  ]);
});

t.test("the type of unpacked items is xarray's", async (t) => {
  const typeOf = (...inputs: readonly Input[]) => arrayOf(join(...inputs), "v")?.stored.dataType.zarr;
  const scaled = { scale_factor: 2 };
  t.equal(typeOf({ dtype: "<i2", attrs: scaled }, { dtype: "<i2" }), "<f4");
  t.equal(typeOf({ dtype: "<i2", attrs: { add_offset: 2 } }, { dtype: "<i2" }), "<f8");
  t.equal(typeOf({ dtype: "<i2", attrs: { add_offset: 2 }, fill: 0 }, { dtype: "<i2" }), "<f4");
  t.equal(typeOf({ dtype: "<i4", attrs: scaled }, { dtype: "<i2" }), "<f8");
  t.equal(typeOf({ dtype: "<f4" }, { dtype: "<f8" }), "<f8");
  t.equal(typeOf({ dtype: "<i2" }, { dtype: "<i2", fill: 5 }), "<f4");
  t.equal(typeOf({ dtype: "|i1", attrs: { _Unsigned: "true" }, fill: -1 }, { dtype: "|u1" }), "<f4");
  const unsigned = join({ dtype: "|i1", attrs: { _Unsigned: "true" }, fill: -1 }, { dtype: "|u1" });
  t.match(conversionsOf(unsigned)[0], {
    from: "|i1",
    decoding: { from: { kind: "u" }, missing: [255] },
  });
  t.equal(typeOf({ dtype: "<i8", attrs: scaled }, { dtype: "<i8" }), "<f8");
  t.equal(typeOf({ dtype: "<u8", fill: 5 }, { dtype: "<i2", attrs: scaled }), "<f8");
  t.equal(typeOf({ dtype: "<i8" }, { dtype: "<f8" }), undefined);
  t.equal(typeOf({ dtype: "<i8" }, { dtype: "<u8" }), undefined);
});

t.test(
  "integers of several types are refused unless they are coordinates, and byte order is that of most steps",
  async (t) => {
    t.match(join({ dtype: ">i2" }, { dtype: "<i4" }).refused, [
      { path: "v", reason: "expected type >i2 in 1.nc, as in 0.nc, received int32" },
    ]);
    const times = joinTimes(["days since 2001-01-01", [0]], ["days since 2001-01-01", [2n ** 40n], "<i8"]);
    t.same(valuesOf(times, "time"), [0n, 2n ** 40n]);
    const swapped = join({ dtype: ">f4", length: 3 }, { dtype: "<f4" });
    t.equal(arrayOf(swapped, "v")?.stored.dataType.zarr, "<f4");
    t.same(conversionsOf(swapped), [{ kind: "swap", wordSize: 4 }, undefined]);
    t.same(passedOf(swapped), [false, true]);
    t.same(swapped.warnings, []);
  },
);

t.test("a fill value that marks nothing new changes no type", async (t) => {
  const tree = join({ dtype: "<f4", length: 2 }, { dtype: "<f4", fill: "NaN" });
  t.same(conversionsOf(tree), [undefined, undefined]);
  t.equal(arrayOf(tree, "v")?.stored.fill.served, "NaN");
  t.same(passedOf(tree), [false, true]);
  const named = join({ dtype: "<i2", fill: -1, length: 2 }, { dtype: "<i2", attrs: { missing_value: -1 } });
  t.match(arrayOf(named, "v")?.stored, { fill: { served: -1 }, attrs: {} });
});

t.test("coordinates are unpacked in memory", async (t) => {
  const file = (name: string, values: readonly number[], scale: number) =>
    describePart(name, {
      time: { dims: ["time"], values: values.map((_, index) => index + scale * 100) },
      level: { dims: ["time"], values, dtype: "<i2", fill: -1, attrs: { scale_factor: scale } },
    });
  const tree = joinParts([file("a.nc", [1, -1], 0.5), file("b.nc", [4], 0.75)], BY_TIME);
  t.same(valuesOf(tree, "level"), [0.5, Number.NaN, 3]);
  const wide = (name: string, day: number, scale: number) =>
    describePart(name, {
      time: { dims: ["time"], values: [day, day + 1] },
      level: { dims: ["time"], values: [63n, -1n], dtype: ">i8", fill: -1, attrs: { scale_factor: scale } },
    });
  const joined = joinParts([wide("a.nc", 0, 0.1), wide("b.nc", 2, 0.2)], BY_TIME);
  t.same(valuesOf(joined, "level"), [63 * 0.1, Number.NaN, 63 * 0.2, Number.NaN]);
});

t.test("the grid is that of most steps", async (t) => {
  const zlib = [{ id: "zlib", level: 4 }];
  const other = [{ id: "zlib", level: 9 }];
  const chunkShapeOf = (tree: ReturnType<typeof join>) => arrayOf(tree, "v")?.stored.chunkShape;
  const tree = join(
    { chunks: [12, 3], codecs: other },
    { chunks: [6, 3], codecs: zlib },
    { chunks: [6, 3], codecs: zlib },
    { chunks: [12, 3], codecs: zlib },
    { chunks: [6, 1], codecs: zlib },
    { chunks: [6, 3], codecs: zlib, axisOrder: [1, 0] },
  );
  t.same(chunkShapeOf(tree), [6, 3]);
  t.same(passedOf(tree), [false, true, true, false, false, false]);
  t.match(arrayOf(tree, "v")?.stored, { codecs: zlib, compressorCount: 1, variants: [[]] });
  const short = join({ chunks: [1024, 3], length: 31 }, { chunks: [1024, 3], length: 30 });
  t.same(chunkShapeOf(short), [31, 3]);
  t.same(passedOf(short), [false, false]);
});

t.test("items without a fixed size need whole chunks", async (t) => {
  const texts = { dtype: "|O", codecs: [{ id: "vlen-utf8" }] };
  const good = join({ ...texts, chunks: [4, 3] }, { ...texts, chunks: [4, 3], length: 6 });
  t.same(good.refused, []);
  t.same(passedOf(good), [true, true]);
  const odd = join({ ...texts, chunks: [4, 3], length: 6 }, { ...texts, chunks: [4, 3] });
  const reason =
    "expected items without a fixed size in whole chunks of 4 steps and equal codecs, received 6 steps in 0.nc";
  t.same(odd.refused, [{ path: "v", reason }]);
});

t.test("texts of several widths become the widest", async (t) => {
  const file = (name: string, dtype: string, values: readonly string[]) =>
    describePart(name, { time: { dims: ["time"], values, dtype } });
  const tree = joinParts([file("b.nc", "<U4", ["zoe!"]), file("a.nc", ">U2", ["Ä", "öb"])], BY_TIME);
  t.same(valuesOf(tree, "time"), ["zoe!", "Ä", "öb"]);
  t.throws(() => joinParts([file("a.nc", "<U1", ["b"]), file("b.nc", "<U1", ["a", "c"])], BY_TIME), {
    message: /received "a" to "c" in b\.nc and "b" in a\.nc/,
  });
});

/** Describes one array, named as its dimension, of a Zarr store. */
async function describe(
  t: Test,
  document: { readonly shape?: readonly number[] } & Readonly<Record<string, unknown>>,
  chunks: Readonly<Record<string, Uint8Array>>,
  dimension = "x",
): Promise<PartArray> {
  const folder = await makeDirectory(t);
  await writeFiles(folder, {
    ".zgroup": zgroup,
    "x/.zarray": { ...zarray, ...document },
    "x/.zattrs": { _ARRAY_DIMENSIONS: (document.shape ?? [1]).map(() => "x") },
    ...Object.fromEntries(Object.entries(chunks).map(([key, bytes]) => [`x/${key}`, bytes])),
  });
  const { arrays } = await describeStored("part", await (await openSource(folder)).readTree(), dimension);
  return arrays[0] as PartArray;
}

t.test("coordinates are read chunk by chunk, decoded, without padding", async (t) => {
  const { values } = await describe(
    t,
    { shape: [5], chunks: [2], dtype: ">i2", fill_value: 7, compressor: { id: "zlib", level: 1 } },
    { 0: deflateSync(Uint8Array.of(0, 1, 0, 2)), 2: deflateSync(Uint8Array.of(0, 5, 9, 9)) },
  );
  t.same([...(values as Uint8Array)], [0, 1, 0, 2, 0, 7, 0, 7, 0, 5]);
});

t.test("scalars and empty coordinates are read", async (t) => {
  const scalar = await describe(t, { shape: [], chunks: [], dtype: "|u1" }, { 0: Uint8Array.of(3) });
  t.same([...(scalar.values as Uint8Array)], [3]);
  t.same((await describe(t, { shape: [0], chunks: [1] }, {})).values?.length, 0);
});

t.test("texts are one chunk of texts", async (t) => {
  const text = (...texts: string[]) => {
    const bytes = Buffer.concat(
      texts.flatMap((each) => [Uint8Array.of(Buffer.byteLength(each), 0, 0, 0), Buffer.from(each)]),
    );
    return Buffer.concat([Uint8Array.of(texts.length, 0, 0, 0), bytes]);
  };
  const document = { shape: [5], chunks: [2], dtype: "|O", fill_value: "", filters: [{ id: "vlen-utf8" }] };
  const { values } = await describe(t, document, { 0: text("a", "é"), 2: text("last", "padding") });
  t.same(Buffer.from(values as Uint8Array), text("a", "é", "", "", "last"));
  await t.rejects(describe(t, document, { 0: Uint8Array.of(2, 0, 0, 0, 9, 0, 0, 0) }), {
    code: "corrupt-chunk",
    message: /expected 2 items, received 0/,
  });
});

t.test("a coordinate of the joined dimension has to be read, others need not be", async (t) => {
  const long = { shape: [1_000_001], chunks: [1_000_001] };
  await t.rejects(describe(t, long, {}), {
    code: "unsupported",
    message: "'x': expected at most 1000000 values in one part, received 1000001",
  });
  t.equal((await describe(t, long, {}, "time")).values, undefined);
  const unknown = { compressor: { id: "unheard-of" } };
  await t.rejects(describe(t, unknown, {}), { code: "unsupported", message: /unheard-of/ });
  t.equal((await describe(t, unknown, {}, "time")).values, undefined);
  await t.rejects(describe(t, {}, { 0: Uint8Array.of(1) }), { code: "corrupt-chunk" });
});
