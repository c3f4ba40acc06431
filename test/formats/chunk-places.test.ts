import fc from "fast-check";
import t from "tap";
import { createFindPlace } from "../../src/formats/file-index.js";
import { gridShapeOf } from "../../src/model/data-tree.js";
import { gridPositions } from "../support/datasets/stored-chunks.js";
import { effort } from "../support/effort.js";

const arrays = fc.integer({ min: 0, max: 3 }).chain((rank) => {
  const lengths = (min: number) =>
    fc.array(fc.integer({ min, max: 6 }), { minLength: rank, maxLength: rank });
  return fc.record({ shape: lengths(0), chunkShape: lengths(1) });
});

t.test("a listed chunk is found by its number, whether all are listed or only some", async (t) => {
  fc.assert(
    fc.property(arrays, fc.array(fc.nat(4), { minLength: 216, maxLength: 216 }), (array, drawn) => {
      const positions = [...gridPositions(gridShapeOf(array.shape, array.chunkShape))];
      // 0 is absent; others have an offset, a length and a variant by their number.
      const isThere = (number: number) => drawn[number] !== 0;
      const numbers = positions.map((_, number) => number).filter(isThere);
      const offsetOf = (number: number) => 2 ** 40 + 100 * number;
      const all = createFindPlace(array, {
        kind: "listed",
        offsets: Float64Array.from(positions, (_, number) => (isThere(number) ? offsetOf(number) : -1)),
        byteLengths: Uint32Array.from(positions, (_, number) => number + 1),
        variants: Uint8Array.from(positions, (_, number) => drawn[number] ?? 0),
      });
      const some = createFindPlace(array, {
        kind: "listed",
        numbers: Float64Array.from(numbers),
        offsets: Float64Array.from(numbers, offsetOf),
        byteLengths: Uint32Array.from(numbers, (number) => number + 1),
        variants: Uint8Array.from(numbers, (number) => drawn[number] ?? 0),
      });
      return positions.every((coords, number) => {
        const byteLength = number + 1;
        const offset = offsetOf(number);
        const variant = drawn[number];
        const place = isThere(number) && { offset, byteLength, wholeByteLength: byteLength, variant };
        const isPlace = (found: object | undefined) =>
          place === false ? found === undefined : JSON.stringify(found) === JSON.stringify(place);
        return isPlace(all(coords)) && isPlace(some(coords));
      });
    }),
    { numRuns: effort(1_000) },
  );
  t.pass();
});

t.test("lists that are shorter than the grid have no further chunks", async (t) => {
  const find = createFindPlace(
    { shape: [3], chunkShape: [1] },
    { kind: "listed", offsets: Float64Array.of(7), byteLengths: Uint32Array.of(1) },
  );
  t.equal(find([0])?.offset, 7);
  t.equal(find([2]), undefined);
});
