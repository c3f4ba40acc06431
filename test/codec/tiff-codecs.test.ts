import fc from "fast-check";
import t from "tap";
import type { Codec } from "../../src/codec/codec.js";
import { tiffLzw, tiffPackbits, tiffPredictor } from "../../src/codec/file-formats/tiff-codecs.js";
import { OWN_MEMORY } from "../../src/codec/kernel/wasm-memory.js";
import { ZpublishError } from "../../src/errors.js";
import { stepOf } from "../support/codec/step.js";
import {
  encodeLzw,
  encodePackbits,
  predictFloats,
  predictItems,
  type Rows,
} from "../support/codec/tiff-encoders.js";
import { effort } from "../support/effort.js";

const RUNS = { numRuns: effort(1000) };

/** Bytes that repeat, so that tables fill and runs grow. */
const bytes = fc
  .array(fc.tuple(fc.uint8Array({ maxLength: 40 }), fc.integer({ min: 1, max: 60 })), { maxLength: 30 })
  .map((parts) =>
    Uint8Array.from(
      parts.flatMap(([part, count]) =>
        Array(count)
          .fill([...part])
          .flat(),
      ),
    ),
  );

async function decode(codec: Codec, encoded: Uint8Array, length: number): Promise<Uint8Array> {
  return codec.decode(encoded, stepOf({ id: "test" }, length));
}

for (const [name, codec, encode] of [
  ["LZW", tiffLzw, encodeLzw],
  ["PackBits", tiffPackbits, encodePackbits],
] as const) {
  t.test(`${name} decodes what was encoded`, async (t) => {
    await fc.assert(
      fc.asyncProperty(bytes, async (plain) => {
        t.equal(Buffer.compare(await decode(codec, encode(plain), plain.length), plain), 0);
      }),
      RUNS,
    );
  });

  t.test(`${name} ends with as many bytes as a chunk has, and says if there are fewer`, async (t) => {
    const plain = new Uint8Array(1000).map((_, index) => index % 7);
    const encoded = encode(plain);
    t.same(await decode(codec, encoded, 700), plain.subarray(0, 700));
    await t.rejects(decode(codec, encoded, 1001), { code: "corrupt-chunk" });
    await t.rejects(decode(codec, encoded.subarray(0, 5), 1000), { code: "corrupt-chunk" });
    await t.rejects(decode(codec, new Uint8Array(0), 1), { code: "corrupt-chunk" });
  });

  t.test(`${name} of noise is refused, or has the length of a chunk`, async (t) => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 600 }), fc.nat(3000), async (noise, length) => {
        try {
          t.equal((await decode(codec, noise, length)).length, length);
        } catch (error) {
          t.equal((error as ZpublishError).code, "corrupt-chunk");
        }
      }),
      RUNS,
    );
  });
}

t.test("the table of LZW fills, and begins again", async (t) => {
  const plain = new Uint8Array(200_000).map((_, index) => (index * index * 31 + (index >> 5)) & 0xff);
  t.equal(Buffer.compare(await decode(tiffLzw, encodeLzw(plain), plain.length), plain), 0);
});

t.test("LZW with the least significant bit first is refused by name", async (t) => {
  await t.rejects(decode(tiffLzw, Uint8Array.of(0, 1, 4, 16), 3), { message: /old-style LZW/ });
});

const rows = fc.record({
  itemSize: fc.constantFrom(1, 2, 4, 8),
  pixels: fc.integer({ min: 1, max: 40 }),
  step: fc.integer({ min: 1, max: 4 }),
  isBigEndian: fc.boolean(),
  count: fc.integer({ min: 1, max: 4 }),
  seed: fc.uint8Array({ minLength: 32, maxLength: 32 }),
  /** Memory that is not aligned takes the general way. */
  offset: fc.integer({ min: 0, max: 3 }),
});

for (const [predictor, predict] of [
  [2, predictItems],
  [3, predictFloats],
] as const) {
  t.test(`predictor ${predictor} restores items of every size, order and number of bands`, async (t) => {
    await fc.assert(
      fc.asyncProperty(rows, async ({ itemSize, pixels, step, isBigEndian, count, seed, offset }) => {
        const form: Rows = { itemSize, rowItems: pixels * step, step, isBigEndian };
        const plain = new Uint8Array(count * form.rowItems * itemSize).map(
          (_, index) => ((seed[index % 32] as number) * (1 + (index >> 5))) & 0xff,
        );
        const codec = { id: "tiff-predictor", predictor, ...form };
        const memory = {
          ...OWN_MEMORY,
          allocate: (length: number) => new Uint8Array(new ArrayBuffer(length + offset), offset, length),
        };
        const decoded = await tiffPredictor.decode(predict(plain, form), stepOf(codec, plain.length), memory);
        t.same(decoded, plain);
      }),
      RUNS,
    );
  });
}

t.test("rows that are not whole are refused", async (t) => {
  const codec = { id: "tiff-predictor", predictor: 2, itemSize: 2, rowItems: 4, step: 1, isBigEndian: false };
  t.throws(() => tiffPredictor.decode(new Uint8Array(10), stepOf(codec, 10)), ZpublishError);
});
