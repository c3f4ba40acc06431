import t from "tap";
import { packingOf } from "../../src/cf/packing.js";
import { categoryColours } from "../../src/colour/colour-scales.js";
import { categoriesOf, categoryColour } from "../../src/explore/page/colour/categories.js";
import {
  positionInRange,
  rangeText,
  roundToRange,
  scaleOf,
  shownRangeOf,
  valueInRange,
} from "../../src/explore/page/colour/colour-model.js";
import { tableIndexOf } from "../../src/explore/page/map/frame-painter.js";
import {
  ABOVE,
  EMPTY_VIEW,
  MISSING,
  type RangeAnswer,
  type VariableDescription,
} from "../../src/explore/protocol.js";
import { ByteScale } from "../../src/explore/worker/picture/byte-scale.js";
import { parseDataType } from "../../src/model/data-type.js";

const PACKING = { ...packingOf({}), missing: [255] };

t.test("categories have the colours of thumbnails, and others a colour of their own", async (t) => {
  for (const count of [1, 5, 10, 40, 250, 300]) {
    const values = Array.from({ length: count }, (_, index) => (index * 7) % 1009);
    const categories = categoriesOf(variableWith({ flag_values: values }));
    const { range, table, names } = categories!;
    const scale = new ByteScale(PACKING, range, false);
    const colours = categoryColours(count);
    const drawn = (value: number) => {
      const at = tableIndexOf(scale.byteOf(value)) * 3;
      return [...table.subarray(at, at + 3)];
    };
    const own = values.slice(0, 251).every((value, index) => {
      const expected = [...colours.subarray(3 * index, 3 * index + 3)];
      return (
        `${drawn(value)}` === `${expected}` &&
        categoryColour(categories!, categories!.bytes[index]) === `rgb(${expected})`
      );
    });
    t.ok(own, `${count} categories`);
    t.equal(names.length, count);
    t.equal(scale.byteOf(0.5), ABOVE);
    t.same(drawn(0.5), [102, 102, 102]);
    t.equal(scale.storedByte(255), MISSING, "missing values are no category");
  }
});

t.test("categories have the names that they are given, else their values", async (t) => {
  const named = categoriesOf(variableWith({ flag_values: [1, 2, 4], flag_meanings: " water  tree_cover" }));
  t.same(named?.names, ["water", "tree_cover", "4"]);
  t.equal(categoriesOf(variableWith({ flag_masks: [1, 2], flag_values: [1, 2] })), undefined);
  t.equal(categoriesOf(variableWith({})), undefined);
  t.same(categoriesOf({ ...variableWith({}), dataType: parseDataType("|b1") })?.names, ["false", "true"]);
  t.same(categoriesOf(variableWith({ flag_values: "0b, 10b" }))?.names, ["0", "10"]);
});

t.test("a palette has the colours of its file, of which more than bytes share the nearest", async (t) => {
  const hex = (value: number) => value.toString(16).padStart(2, "0");
  const flag_values = Array.from({ length: 256 }, (_, index) => index);
  const flag_colors = flag_values.map((index) => `#${hex(index)}0${index % 2}ff`).join(" ");
  const { range, table } = categoriesOf(variableWith({ flag_values, flag_colors }))!;
  const scale = new ByteScale(packingOf({}), range, false);
  for (const value of flag_values) {
    const at = tableIndexOf(scale.byteOf(value)) * 3;
    const [red = 0, green = 0, blue] = table.subarray(at, at + 3);
    t.ok(Math.abs(red - value) + Math.abs(green - (value % 2)) <= (value < 251 ? 0 : 6));
    t.equal(blue, 255);
  }
  const few = { flag_values: [1, 2, 3], flag_colors: "#ff0000 #00ff00 #ff0000" };
  t.same(categoriesOf(variableWith(few))?.bytes, [2, 3, 2], "the same colour, the same byte");
});

function variableWith(attrs: VariableDescription["attrs"]): VariableDescription {
  return { attrs, isCategorical: true, dataType: parseDataType("|u1") } as VariableDescription;
}

const { colour } = EMPTY_VIEW;
const FOUND: RangeAnswer = {
  kind: "range",
  range: { low: -20, high: 40, isDiverging: false },
  least: -22,
  greatest: 43,
  bins: [1],
  count: 1,
  missing: 0,
};

t.test("the range is by hand, else as it was found, symmetric or logarithmic", async (t) => {
  t.equal(shownRangeOf(colour, undefined), undefined);
  const log = { isLog: true };
  for (const [chosen, found, low, high] of [
    [{}, FOUND, -20, 40],
    [{ range: { low: 1, high: 2 } }, undefined, 1, 2],
    // All are missing.
    [{}, { ...FOUND, range: undefined }, 0, 1],
    [{ isSymmetric: true }, FOUND, -40, 40],
    [log, FOUND, 0.04, 40],
    [{ ...log, range: { low: 1, high: 9 } }, FOUND, 1, 9],
    [{ ...log, range: { low: -2, high: -1 } }, FOUND, 0.001, 1],
  ] as const)
    t.strictSame(shownRangeOf({ ...colour, ...chosen }, found), { low, high, isLog: "isLog" in chosen });
});

t.test("a symmetric range has a diverging scale unless another is chosen", async (t) => {
  t.equal(scaleOf(colour, { low: -4, high: 4, isLog: false }), "rdbu");
  t.equal(scaleOf(colour, { low: -4, high: 5, isLog: false }), "viridis");
  t.equal(scaleOf({ ...colour, scale: "magma" }, { low: -4, high: 4, isLog: false }), "magma");
});

t.test("values and positions belong together", async (t) => {
  for (const range of [
    { low: -2, high: 8, isLog: false },
    { low: 1, high: 1000, isLog: true },
  ]) {
    t.strictSame([positionInRange(range, range.low), positionInRange(range, range.high)], [0, 1]);
    for (const position of [-0.1, 0.3, 0.9]) {
      t.ok(Math.abs(positionInRange(range, valueInRange(range, position)) - position) < 1e-12);
    }
  }
  t.equal(valueInRange({ low: 1, high: 100, isLog: true }, 0.5), 10);
});

t.test("an end that is dragged is rounded to what can be seen", async (t) => {
  t.equal(roundToRange(251.23456, { low: 240, high: 300, isLog: false }), 251.2);
  t.equal(roundToRange(0.00123456, { low: 0, high: 0.01, isLog: false }), 0.0012);
  t.equal(roundToRange(123456, { low: 0, high: 1e6, isLog: false }), 123456);
});

t.test("an end is written in few characters", async (t) => {
  const between = (low: number, high: number) => ({ low, high, isLog: false });
  t.equal(rangeText(2.44e8, between(2.44e8, 2.92e8)), "2.44e8");
  t.equal(rangeText(9007202000123456, between(9.0072e15, 9.00721e15)), "9.007202e15");
  t.equal(rangeText(-9.75e-10, between(-9.75e-10, 0)), "-9.75e-10");
  t.equal(rangeText(0.0054, between(0, 5.4)), "0.01");
  t.equal(rangeText(0, between(0, 1)), "0");
  t.equal(rangeText(1e20, { low: 1, high: 1e20, isLog: true }), "1e20");
});
