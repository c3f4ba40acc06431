import t from "tap";
import { categoryColours } from "../../../../src/colour/colour-scales.js";
import { categoriesOf, categoryColour } from "../../../../src/explore/page/colour/categories.js";
import { tableIndexOf } from "../../../../src/explore/page/map/frame-painter.js";
import type { VariableDescription } from "../../../../src/explore/protocol.js";
import { ABOVE, ByteScale, MISSING } from "../../../../src/explore/worker/picture/byte-scale.js";

const PACKING = {
  missing: [255],
  validMin: Number.NEGATIVE_INFINITY,
  validMax: Number.POSITIVE_INFINITY,
  scale: 1,
  offset: 0,
  isUnsigned: undefined,
};

t.test("categories have the colours of thumbnails, and others a colour of their own", async (t) => {
  for (const count of [1, 5, 10, 40, 250, 300]) {
    const values = Array.from({ length: count }, (_, index) => (index * 7) % 1009);
    const categories = categoriesOf(variableWith({ flag_values: values }));
    const { range, table, names } = categories!;
    const scale = new ByteScale(PACKING, range);
    const colours = categoryColours(count);
    const drawn = (value: number) => {
      const at = tableIndexOf(scale.byteOf(value)) * 3;
      return [...table.subarray(at, at + 3)];
    };
    const own = values.slice(0, 250).every((value, index) => {
      const expected = [...colours.subarray(3 * index, 3 * index + 3)];
      return `${drawn(value)}` === `${expected}` && categoryColour(categories!, index) === `rgb(${expected})`;
    });
    t.ok(own, `${count} categories`);
    t.equal(names.length, Math.min(count, 250));
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
});

function variableWith(attrs: VariableDescription["attrs"]): VariableDescription {
  return { attrs, isCategorical: true } as VariableDescription;
}
