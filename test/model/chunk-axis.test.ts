import fc from "fast-check";
import t from "tap";
import {
  chunksWithin,
  createChunkAxis,
  isRegularChunk,
  lengthRangeOf,
  regularLengthOf,
} from "../../src/model/chunk-axis.js";
import { effort } from "../support/effort.js";

/** Chunks as an axis is made of them. */
type Given = Parameters<typeof createChunkAxis>[0][number];

const runArbitrary: fc.Arbitrary<Given> = fc
  .record({
    length: fc.integer({ min: 1, max: 4 }),
    more: fc.constantFrom(0, 0, 1, 2),
    count: fc.integer({ min: 1, max: 5 }),
  })
  .map(({ length, more, count }) => ({ length, decodedLength: length + more, count }));

const axisArbitrary = fc.record({
  runs: fc.array(runArbitrary, { minLength: 1, maxLength: 6 }),
  cut: fc.integer({ min: 0, max: 12 }),
});

/** Lists the chunks of runs one by one, as far as they have items of the array. */
function listChunks(runs: readonly Given[], extent: number) {
  const chunks: { index: number; start: number; length: number; decodedLength: number }[] = [];
  let start = 0;
  for (const { length, decodedLength, count } of runs)
    for (let each = 0; each < count; each++, start += length)
      if (start < extent) chunks.push({ index: chunks.length, start, length, decodedLength });
  return chunks;
}

t.test("an axis finds the chunks that a list of all of them has", async (t) => {
  fc.assert(
    fc.property(axisArbitrary, fc.nat(60), fc.nat(60), ({ runs, cut }, first, span) => {
      const sum = runs.reduce((total, { length, count }) => total + length * count, 0);
      const extent = Math.max(0, sum - cut);
      const axis = createChunkAxis(runs, extent);
      const all = listChunks(runs, extent);
      if (first < extent) {
        const within = all.filter(({ start, length }) => start < first + span && start + length > first);
        t.strictSame(chunksWithin(axis, first, first + span), span === 0 ? [] : within);
      }
      const decoded = all.map(({ decodedLength }) => decodedLength);
      if (extent > 0) t.strictSame(lengthRangeOf(axis), [Math.min(...decoded), Math.max(...decoded)]);
      for (const maxChunks of [3, 4, 6]) {
        const length = regularLengthOf(axis, maxChunks);
        const counts = Array.from({ length: Math.ceil(extent / length) }, (_, index) => {
          return chunksWithin(axis, index * length, (index + 1) * length).length;
        });
        t.ok(Math.max(0, ...counts) <= maxChunks, JSON.stringify({ runs, extent, length, maxChunks }));
      }
    }),
    { numRuns: effort(2_000) },
  );
});

t.test("a chunk of which items are ignored is a regular one only at the end of the array", async (t) => {
  const runs = [
    { length: 3, decodedLength: 4, count: 1 },
    { length: 5, decodedLength: 5, count: 1 },
    { length: 3, decodedLength: 4, count: 1 },
  ];
  const axis = createChunkAxis(runs, 11);
  const isRegular = chunksWithin(axis, 0, 11).map((chunk) => isRegularChunk(axis, chunk, 4));
  t.strictSame(isRegular, [false, false, true]);
});

t.test("repeated chunks take no memory, and those behind the array none at all", async (t) => {
  const many = { length: 7, decodedLength: 7, count: 10 ** 12 };
  const axis = createChunkAxis([many, many, { length: 3, decodedLength: 3, count: 10 ** 15 }], 8 * 10 ** 12);
  t.equal(axis.runs.length, 1);
  t.strictSame(chunksWithin(axis, 7 * 10 ** 12 + 1, 7 * 10 ** 12 + 2), [
    { index: 10 ** 12, start: 7 * 10 ** 12, length: 7, decodedLength: 7 },
  ]);
});

t.test(
  "the served length is the one that most items have, unless chunks would be made of too many",
  async (t) => {
    const lengthOf = (pairs: readonly [length: number, count: number][], maxChunks: number) => {
      const runs = pairs.map(([length, count]) => ({ length, decodedLength: length, count }));
      const extent = runs.reduce((total, { length, count }) => total + length * count, 0);
      return regularLengthOf(createChunkAxis(runs, extent), maxChunks);
    };
    t.equal(
      lengthOf(
        [
          [31, 7],
          [30, 4],
          [28, 1],
        ],
        256,
      ),
      31,
    );
    t.equal(
      lengthOf(
        [
          [1, 100],
          [1_000, 5],
        ],
        256,
      ),
      1_000,
    );
    t.equal(
      lengthOf(
        [
          [1, 1_000],
          [1_500, 1],
        ],
        256,
      ),
      1,
    );
    t.equal(
      lengthOf(
        [
          [10, 2],
          [20, 1],
        ],
        256,
      ),
      10,
    );
  },
);
