import t from "tap";
import type { StoredArray } from "../../../src/zarr/stored-array.js";
import { fakeSource, storedTree } from "../../support/datasets/fake-source.js";
import { joinParts, type TestPart } from "../../support/datasets/joined-array.js";
import { openPyramid } from "../../support/datasets/pyramid.js";
import { storedArray } from "../../support/datasets/stored-array.js";
import { readerOf } from "../../support/datasets/stored-chunks.js";
import { mapCache } from "../../support/map-cache.js";

const FORM = {
  ...{ dtype: "<f4", codecs: [], compressorCount: 0 as const, dimNames: ["time", "y", "x"] },
};

/** A field of 8 × 8 items per step. */
function fieldOf(step: number): number[] {
  return Array.from({ length: 64 }, (_, index) => (step === 3 ? Number.NaN : step * 1000 + index));
}

function bytesOf(first: number, length: number): Uint8Array {
  const steps = Array.from({ length }, (_, index) => fieldOf(first + index));
  return new Uint8Array(Float32Array.from(steps.flat()).buffer);
}

async function partsOf(lengths: readonly number[]): Promise<TestPart[]> {
  const parts: TestPart[] = [];
  let first = 0;
  for (const [index, length] of lengths.entries()) {
    const stored = storedArray({ ...FORM, shape: [length, 8, 8], chunkShape: [2 - (index % 2), 4, 8] });
    const reader = await readerOf(stored, bytesOf(first, length), ([step]) => first + (step ?? 0) === 3);
    parts.push({ stored, reader, from: 0, length });
    first += length;
  }
  return parts;
}

/** The form of a joined array, and of the same one in one store. */
function arrayOf(steps: number): StoredArray {
  return storedArray({ ...FORM, shape: [steps, 8, 8], chunkShape: [2, 4, 4] });
}

async function pyramidOf(array: StoredArray, cache = mapCache(), immutable = false) {
  const source = fakeSource(storedTree([{ path: "/", attrs: {}, arrays: [array] }]));
  return openPyramid(source, array.path, { levels: 2, cache, config: { immutable } });
}

t.test("levels of a joined array are those of the same array in one store", async (t) => {
  const joined = await pyramidOf(joinParts(await partsOf([3, 2, 4]), { stored: arrayOf(9), axis: 0 }));
  const single = arrayOf(9);
  const reader = await readerOf(single, bytesOf(0, 9));
  const one = await pyramidOf({
    ...single,
    chunks: {
      ...{ kind: "ranges", store: "s", key: "k", version: "v", path: "p", form: "ranges", differing: 0 },
      openReader: () => reader,
    },
  });
  for (const level of [1, 2])
    for (const key of ["0.0.0", "1.0.0", "2.0.0", "3.0.0", "4.0.0"]) {
      const [found, expected] = [await joined.fetch(level, key), await one.fetch(level, key)];
      t.ok(expected.bytes);
      t.same(found.bytes, expected.bytes, `level ${level}, chunk ${key}`);
    }
});

t.test("levels of old parts stay in the cache when a part is added", async (t) => {
  const cache = mapCache();
  const parts = await partsOf([3, 2, 4]);
  const open = (count: number, immutable = false) => {
    const used = parts.slice(0, count);
    const steps = used.reduce((sum, { length }) => sum + length, 0);
    return pyramidOf(joinParts(used, { stored: arrayOf(steps), axis: 0 }), cache, immutable);
  };
  const before = await open(2);
  const after = await open(3);
  for (const level of [2, 1])
    for (const [key, isOld] of [
      ["0.0.0", true],
      ["1.0.0", true],
      ["2.0.0", false],
    ] as const) {
      const was = await before.fetch(level, key);
      const made = after.made.length;
      const is = await after.fetch(level, key);
      t.equal(is.etag === was.etag, isOld, `level ${level}, chunk ${key}`);
      t.equal(after.made.length === made, isOld || level === 1, "level 1 was made for level 2");
      t.not(is.bytes, undefined);
    }
  const kept = (await (await open(2, true)).fetch(2, "0.0.0")).etag;
  t.not((await (await open(3, true)).fetch(2, "0.0.0")).etag, kept, "chunks without versions");
});
