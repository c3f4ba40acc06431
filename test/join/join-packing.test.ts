import t from "tap";
import type { JoinedArray } from "../../src/join/join-arrays.js";
import { joinParts } from "../../src/join/join-parts.js";
import type { JsonObject } from "../../src/json/json-value.js";
import { type ArrayInput, arrayOf, describePart, valuesOf } from "./describe-part.js";

const BY_TIME = { kind: "concat", dimension: "time" } as const;

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
  const packing = (scale: number, more: JsonObject = {}) => ({
    scale_factor: scale,
    long_name: "v",
    ...more,
  });
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
    { kind: "unpack", from: ">i2", to: "<f4", scale: 0.5, offset: 0, missing: [-1] },
    { kind: "unpack", from: ">i2", to: "<f4", scale: 0.25, offset: 0, missing: [-1, -2] },
    undefined,
  ]);
  t.same(passedOf(tree), [false, false, true]);
  t.same(tree.warnings, [
    "'v': served unpacked, as float32: 2 of 3 files are stored otherwise than 0.nc, the first of them 1.nc",
  ]);
});

t.test("the type of unpacked items is xarray's", async (t) => {
  const typeOf = (...inputs: readonly Input[]) => {
    const { dataType } = arrayOf(join(...inputs), "v")?.stored ?? {};
    return dataType?.zarr;
  };
  const scaled = { scale_factor: 2 };
  t.equal(typeOf({ dtype: "<i2", attrs: scaled }, { dtype: "<i2" }), "<f4");
  t.equal(typeOf({ dtype: "<i2", attrs: { add_offset: 2 } }, { dtype: "<i2" }), "<f8");
  t.equal(typeOf({ dtype: "<i2", attrs: { add_offset: 2 }, fill: 0 }, { dtype: "<i2" }), "<f4");
  t.equal(typeOf({ dtype: "<i4", attrs: scaled }, { dtype: "<i2" }), "<f8");
  t.equal(typeOf({ dtype: "<f4" }, { dtype: "<f8" }), "<f8");
  t.equal(typeOf({ dtype: "<i2" }, { dtype: "<i2", fill: 5 }), "<f4");
  t.equal(typeOf({ dtype: "|i1", attrs: { _Unsigned: "true" }, fill: -1 }, { dtype: "|u1" }), "<f4");
  t.match(
    conversionsOf(join({ dtype: "|i1", attrs: { _Unsigned: "true" }, fill: -1 }, { dtype: "|u1" }))[0],
    { from: "|i1", missing: [-1], isUnsigned: true },
  );
  t.equal(typeOf({ dtype: "<i8", attrs: scaled }, { dtype: "<i8" }), "<f8");
  t.equal(typeOf({ dtype: "<u8", fill: 5 }, { dtype: "<i2", attrs: scaled }), "<f8");
  t.equal(typeOf({ dtype: "<i8" }, { dtype: "<f8" }), undefined);
  t.equal(typeOf({ dtype: "<i8" }, { dtype: "<u8" }), undefined);
});

t.test("integers become the widest, and byte order that of most steps", async (t) => {
  const wide = join({ dtype: ">i2" }, { dtype: "<i4" });
  t.same(conversionsOf(wide), [{ kind: "widen", from: ">i2", to: "<i4" }, undefined]);
  const unsigned = join({ dtype: "|i1", attrs: { _Unsigned: "true" } }, { dtype: "<u2" });
  t.same(conversionsOf(unsigned), [{ kind: "widen", from: "|u1", to: "<u2" }, undefined]);
  const mixed = join({ dtype: "|u1" }, { dtype: "|i1" });
  t.equal(arrayOf(mixed, "v")?.stored.dataType.zarr, "<i2");
  const swapped = join({ dtype: ">f4", length: 3 }, { dtype: "<f4" });
  t.equal(arrayOf(swapped, "v")?.stored.dataType.zarr, "<f4");
  t.same(conversionsOf(swapped), [{ kind: "swap", wordSize: 4 }, undefined]);
  t.same(passedOf(swapped), [false, true]);
  t.same(swapped.warnings, []);
});

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
  t.same(odd.refused, [
    {
      path: "v",
      reason:
        "expected items without a fixed size in whole chunks of 4 steps and equal codecs, received 6 steps in 0.nc",
    },
  ]);
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
