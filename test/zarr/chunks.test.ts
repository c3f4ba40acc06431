import fc from "fast-check";
import t, { type Test } from "tap";
import { encodeChunkKey, parseChunkKey } from "../../src/zarr/chunk-reader.js";
import { createSteps } from "../../src/zarr/plan/codec-steps.js";
import { createEncodingPlan, type EncodingRequest } from "../../src/zarr/plan/create-encoding-plan.js";
import { maxStoredByteLength } from "../../src/zarr/plan/max-stored-byte-length.js";
import type { StoredArray } from "../../src/zarr/stored-array.js";
import { storedArray } from "../support/datasets/stored-array.js";
import { effort } from "../support/effort.js";

t.test("stored chunks have the names of their encoding", async (t) => {
  t.equal(encodeChunkKey([1, 2], { name: "v2", separator: "." }), "1.2");
  t.equal(encodeChunkKey([1, 2], { name: "v2", separator: "/" }), "1/2");
  t.equal(encodeChunkKey([1, 2], { name: "default", separator: "/" }), "c/1/2");
  t.equal(encodeChunkKey([1, 2], { name: "default", separator: "." }), "c.1.2");
  t.equal(encodeChunkKey([], { name: "v2", separator: "/" }), "0");
  t.equal(encodeChunkKey([], { name: "default", separator: "/" }), "c");
});

t.test("only the canonical key of a chunk inside the grid is one", async (t) => {
  t.same(parseChunkKey("0.0", [1, 1]), [0, 0]);
  t.same(parseChunkKey("12.0.3", [13, 1, 4]), [12, 0, 3]);
  t.same(parseChunkKey("0", []), []);
  t.same(parseChunkKey("9007199254740990", [2 ** 53]), [9007199254740990]);
  const hostile =
    "|.|0.|.0|00.0|0.00|+1.0|-1.0|1_0.0|1e0.0|٠.0|0,0|0/0|0.0.0|0|0.0 | 0.0|0.0\n|2.0|0.2|0x0.0";
  for (const key of [...hostile.split("|"), "NaN.0", "0..0", "1.9007199254740993"]) {
    t.equal(parseChunkKey(key, [2, 2]), undefined, JSON.stringify(key));
  }
  for (const key of ["", "1", "00", "0.0", "c"]) t.equal(parseChunkKey(key, []), undefined, key);
  for (const key of ["0", "0.0"]) t.equal(parseChunkKey(key, [0]), undefined, key);
  t.equal(parseChunkKey("9007199254740993", [Number.MAX_SAFE_INTEGER]), undefined);
  t.equal(parseChunkKey("9".repeat(400), [Number.MAX_SAFE_INTEGER]), undefined);
});

t.test("a text that parses is the key of what it parses to", async () => {
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.string({ unit: fc.constantFrom(..."0123456789.+-_eE٠ /") as never }),
  );
  fc.assert(
    fc.property(text, fc.array(fc.integer({ min: 0, max: 200 }), { maxLength: 3 }), (key, shape) => {
      const coords = parseChunkKey(key, shape);
      return coords === undefined || encodeChunkKey(coords, { name: "v2", separator: "." }) === key;
    }),
    { numRuns: effort(50_000) },
  );
});

const MIB = 2 ** 20;
const LIMIT = 64 * MIB;
const zlib = { id: "zlib", level: 1 };

/** Of chunks of 4 by 5 items. */
function boundOf(
  stored: StoredArray,
  asked: EncodingRequest = {},
): readonly [kind: string, bound: number | undefined] {
  const { plan } = createEncodingPlan(stored, asked, { maxChunkBytes: LIMIT });
  const steps = createSteps(stored, stored.codecs, plan.stored.chunkShape, LIMIT);
  return [plan.kind, maxStoredByteLength(plan, steps)];
}

const ZSTD = { compressor: { id: "zstd", level: 1 } };
const NONE = { chunkShape: [2, 3], filters: null, compressor: null };

/** All three kinds of plan have the same bound. */
function boundOfAll(t: Test, stored: StoredArray): number | undefined {
  const bounds = [boundOf(stored), boundOf(stored, ZSTD), boundOf(stored, NONE)];
  const [, bound] = bounds[0] ?? [];
  t.same(bounds, [
    ["passthrough", bound],
    ["recompress", bound],
    ["rechunk", bound],
  ]);
  return bound;
}

t.test("where nothing tells, what is decoded has its limit, and what is passed through none", async (t) => {
  const texts = (compressor?: { readonly id: string }) =>
    storedArray({
      dtype: "|O",
      codecs: [{ id: "vlen-utf8" }, ...(compressor === undefined ? [] : [compressor])],
      compressorCount: compressor === undefined ? 0 : 1,
      fill: { served: "", item: null, absentIsServed: true },
    });
  t.same(boundOf(texts(zlib)), ["passthrough", undefined]);
  t.same(boundOf(texts(zlib), ZSTD), ["recompress", LIMIT + MIB]);
  t.same(boundOf(texts(), ZSTD), ["recompress", LIMIT + MIB], "encoded as they are");
  t.same(boundOf(storedArray({ codecs: [{ id: "somebody-elses" }] })), ["passthrough", undefined]);
  const filtered = storedArray({ codecs: [{ id: "somebody-elses" }, zlib] });
  t.same(boundOf(filtered), ["passthrough", undefined]);
});

t.test("chunks whose codecs differ may be as long as those allow", async (t) => {
  const stored = storedArray({ dtype: "<i2", codecs: [], compressorCount: 0 });
  const boundsWith = (variants: NonNullable<StoredArray["variants"]>) =>
    boundOfAll(t, { ...stored, variants });
  t.equal(boundsWith([[]]), 40);
  t.equal(boundsWith([[], [zlib]]), 2 * 40 + MIB);
  t.equal(boundOfAll(t, { ...stored, codecs: [zlib], compressorCount: 1, variants: [[]] }), 2 * 40 + MIB);
});
