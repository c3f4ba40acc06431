import fc from "fast-check";
import t from "tap";
import {
  COLOUR_SCALES,
  type ColourScaleName,
  categoryColours,
  colourTable,
  isColourScaleName,
} from "../../src/colour/colour-scales.js";
import { chooseRange, percentileOf, roundRange } from "../../src/colour/value-range.js";

const NAMES = Object.keys(COLOUR_SCALES) as ColourScaleName[];

function colourAt(table: Uint8Array, index: number): number[] {
  return [...table.subarray(index * 3, index * 3 + 3)];
}

t.test("a table has 256 colours, and begins and ends as matplotlib's viridis does", async (t) => {
  const table = colourTable("viridis");
  t.equal(table.length, 768);
  t.strictSame(colourAt(table, 0), [0x44, 0x01, 0x54]);
  t.strictSame(colourAt(table, 255), [0xfd, 0xe7, 0x25]);
});

t.test(
  "every scale has a table of different colours, and the reversed one is the same backwards",
  async (t) => {
    for (const name of NAMES) {
      const table = colourTable(name);
      const reversed = colourTable(name, true);
      const colours = Array.from({ length: 256 }, (_, index) => colourAt(table, index));
      t.strictSame(
        Array.from({ length: 256 }, (_, index) => colourAt(reversed, 255 - index)),
        colours,
        name,
      );
      t.ok(new Set(colours.map(String)).size > 200, `${name} has more than 200 colours`);
      t.equal(colourTable(name), table, "made once");
    }
  },
);

t.test("only names of scales are names", async (t) => {
  t.ok(isColourScaleName("viridis"));
  for (const name of ["Viridis", "", "toString", "__proto__"]) t.notOk(isColourScaleName(name), name);
});

t.test("categories have different colours, few or many", async (t) => {
  for (const count of [0, 1, 10, 11, 37, 255]) {
    const colours = categoryColours(count);
    t.equal(colours.length, 3 * count);
    const distinct = new Set(Array.from({ length: count }, (_, index) => String(colourAt(colours, index))));
    t.ok(distinct.size >= Math.min(count, 200), `${count}`);
  }
});

t.test("a cyclic scale ends with the colour that it begins with", async (t) => {
  const table = colourTable("cyclic");
  t.same([...table.subarray(0, 3)], [...table.subarray(255 * 3)]);
  t.notSame([...table.subarray(0, 3)], [...table.subarray(128 * 3, 129 * 3)]);
});

const floats = (options: fc.DoubleConstraints = {}) =>
  fc.double({ noNaN: true, noDefaultInfinity: true, ...options });

t.test("percentiles are interpolated as numpy does", async (t) => {
  // numpy.percentile([1, 2, 4, 8], [0, 2, 25, 50, 98, 100])
  const values = Float64Array.of(1, 2, 4, 8);
  const expected = [1, 1.06, 1.75, 3, 7.76, 8];
  for (const [index, percent] of [0, 2, 25, 50, 98, 100].entries())
    t.ok(Math.abs(percentileOf(values, percent) - (expected[index] as number)) < 1e-12, `${percent}`);
  t.equal(percentileOf(Float64Array.of(7), 98), 7);
});

t.test("a range is stretched to round numbers and no further than a step", async (t) => {
  t.strictSame(roundRange(0.13, 9.87), [0, 10]);
  t.strictSame(roundRange(231.2, 304.9), [230, 306]);
  t.strictSame(roundRange(0, 0.3), [0, 0.3]);
  t.strictSame(roundRange(-1234, 4321), [-1400, 4400]);
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(floats({ min: -1e9, max: 1e9 }), floats({ min: 1e-3, max: 1e9 }), (low, width) => {
        const high = low + width;
        if (!(high > low)) return true;
        const [begin, end] = roundRange(low, high);
        const slack = 1e-6 * (Math.abs(low) + Math.abs(high));
        return begin <= low + slack && end >= high - slack && end - begin <= 1.11 * width + slack;
      }),
    ),
  );
});

t.test("the range of a sample is that of its percentiles, whatever the order", async (t) => {
  const values = Float64Array.from({ length: 1001 }, (_, index) => ((index * 577) % 1001) / 10);
  t.strictSame(chooseRange(values), { low: 2, high: 98, isDiverging: false });
  const wide = Float64Array.from({ length: 1001 }, (_, index) => index / 10);
  t.strictSame(chooseRange(wide, [0, 100]), { low: 0, high: 100, isDiverging: false });
});

t.test("outliers do not count", async (t) => {
  const values = Float64Array.from({ length: 1000 }, (_, index) => (index < 10 ? 1e30 : 1 + (index % 10)));
  t.strictSame(chooseRange(values), { low: 1, high: 10, isDiverging: false });
});

t.test("a range with both signs is symmetric, unless one side is much wider", async (t) => {
  t.strictSame(chooseRange(Float64Array.of(-8, 10), [0, 100]), { low: -10, high: 10, isDiverging: true });
  t.strictSame(chooseRange(Float64Array.of(-10, 2.5), [0, 100]), { low: -10, high: 10, isDiverging: true });
  t.equal(chooseRange(Float64Array.of(-1, 10), [0, 100]).isDiverging, false);
  t.equal(chooseRange(Float64Array.of(0, 10), [0, 100]).isDiverging, false);
});

t.test("every range is finite and contains the percentiles", async (t) => {
  const values = fc.array(floats({ min: -1e300, max: 1e300 }), { minLength: 1 });
  const check = fc.property(values, (drawn) => {
    const sample = Float64Array.from(drawn);
    const { low, high } = chooseRange(sample);
    const slack = 1e-9 * Math.max(Math.abs(low), Math.abs(high));
    return (
      Number.isFinite(low) &&
      Number.isFinite(high) &&
      low <= percentileOf(sample, 2) + slack &&
      high >= percentileOf(sample, 98) - slack
    );
  });
  t.doesNotThrow(() => fc.assert(check));
});

t.test("the range of a single value holds it, however large it is", async (t) => {
  t.strictSame(chooseRange(Float64Array.of(5, 5)), { low: 4, high: 6, isDiverging: false });
  for (const value of [0, -3, 1e9, 2 ** 60, -9.96e36]) {
    const { low, high } = chooseRange(Float64Array.of(value));
    t.ok(low < value && value < high, `${value}`);
  }
});
