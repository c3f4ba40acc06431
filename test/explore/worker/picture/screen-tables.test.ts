import fc from "fast-check";
import t from "tap";
import {
  type Axis,
  cellAxis,
  createAxis,
  dataExtent,
  edgesOf,
  indexAt,
} from "../../../../src/explore/axis.js";
import { middleCells, runsByChunk, screenTable } from "../../../../src/explore/worker/picture/paint-loops.js";

const lengths = fc.integer({ min: 1, max: 300 });
const pixelCounts = fc.integer({ min: 1, max: 200 });
const share = fc.double({ min: -0.5, max: 1.5, noNaN: true });

t.test(
  "a pixel shows the cell under its middle, and its mean the cells with their centres in it",
  async () => {
    fc.assert(
      fc.property(lengths, pixelCounts, share, share, fc.boolean(), (length, pixels, from, to, isMean) => {
        const [begin, end] = [from * length - 0.5, to * length - 0.5];
        fc.pre(Math.abs(end - begin) > 1e-3);
        const axis = cellAxis(length);
        const table = screenTable(axis, begin, end, pixels, isMean);
        const width = (end - begin) / pixels;
        return middleCells(axis, begin, end, pixels).every((middle, pixel) => {
          const [first, last] = [table.from[pixel]!, table.to[pixel]!];
          if (middle === -1) return first === -1 && last === -1;
          if (!isMean || table.density <= 1) return first === middle && last === middle + 1;
          const middleOfPixel = begin + (pixel + 0.5) * width;
          const holdsCentres = [first, last - 1].every(
            (cell) => Math.abs(cell - middleOfPixel) <= Math.abs(width) / 2 + 1e-6,
          );
          return holdsCentres || (first === middle && last === middle + 1);
        });
      }),
    );
  },
);

t.test("means leave no cell out between the first and the last one that is visible", async () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 50, max: 3000 }),
      fc.integer({ min: 5, max: 40 }),
      fc.boolean(),
      (length, pixels, isReversed) => {
        const [least, greatest] = dataExtent(cellAxis(length));
        const [begin, end] = isReversed ? [greatest, least] : [least, greatest];
        const table = screenTable(cellAxis(length), begin, end, pixels, true);
        const seen = new Uint8Array(length);
        for (let pixel = 0; pixel < pixels; pixel++)
          for (let cell = table.from[pixel]!; cell < table.to[pixel]!; cell++) seen[cell]!++;
        return seen.every((count) => count === 1);
      },
    ),
  );
});

t.test("longitudes repeat beyond a turn, and a global grid leaves no pixel empty", async (t) => {
  const axis = longitudes(0, 2.5, 144);
  const table = middleCells(axis, -181.25, 538.75, 288);
  t.notOk(table.includes(-1));
  t.same(table.slice(0, 144), table.slice(144), "both turns are equal");
  t.equal(table[0], 72, "180° W is in the middle of 0 to 360");
  const mean = screenTable(axis, -180, 180, 36, true);
  for (let pixel = 0; pixel < 36; pixel++)
    t.ok(mean.to[pixel]! - mean.from[pixel]! <= 5, "not across the seam");
});

t.test("runs by chunk put every pixel into its chunk, at any level", async () => {
  fc.assert(
    fc.property(
      lengths,
      pixelCounts,
      fc.integer({ min: 1, max: 50 }),
      fc.constantFrom(1, 2, 4, 8),
      (length, pixels, chunk, factor) => {
        const axis = cellAxis(length);
        const table = screenTable(axis, -0.5, length - 0.5, pixels, false);
        const runs = runsByChunk(table, factor, chunk, 3);
        const found = new Int32Array(pixels).fill(-1);
        const firsts: number[] = [];
        for (const [index, run] of runs) {
          run.pixels.forEach((pixel, place) => {
            found[pixel] = index * chunk + run.offsets[place]! / 3;
            if (run.isFirst[place] === 1) firsts.push(found[pixel]!);
          });
          if (run.cells !== run.isFirst.filter((first) => first === 1).length) return false;
        }
        return (
          found.every((cell, pixel) => cell === Math.floor(table.from[pixel]! / factor)) &&
          new Set(firsts).size === firsts.length
        );
      },
    ),
  );
});

t.test("both sides of an edge are in different cells, whatever the order of the axis", async (t) => {
  for (const centres of [
    [0, 1, 3, 7],
    [7, 3, 1, 0],
  ]) {
    const axis = createAxis(4, {
      numbers: Float64Array.from(centres),
      texts: undefined,
      bounds: undefined,
      units: undefined,
      calendar: undefined,
    });
    for (let index = 1; index < 4; index++) {
      const [edge] = edgesOf(axis, index);
      const towards = axis.isDescending ? -1e-6 : 1e-6;
      t.equal(indexAt(axis, edge - towards), index - 1);
      t.equal(indexAt(axis, edge + towards), index);
    }
  }
});

function longitudes(first: number, step: number, length: number): Axis {
  const numbers = Float64Array.from({ length }, (_, index) => first + index * step);
  const values = { numbers, texts: undefined, bounds: undefined, units: undefined, calendar: undefined };
  return createAxis(length, values, { isLongitude: true });
}
