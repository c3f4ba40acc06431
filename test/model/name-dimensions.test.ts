import fc from "fast-check";
import t from "tap";
import { nameDimensions } from "../../src/model/data-tree.js";

const array = (name: string, shape: number[], dimNames: (string | null)[] | null = null) => ({
  name,
  shape,
  dimNames,
});

t.test("names of the source are kept", async (t) => {
  t.same(nameDimensions([array("t", [3, 4], ["y", "x"])]), [["y", "x"]]);
});

t.test("an unnamed axis is called after its length", async (t) => {
  t.same(nameDimensions([array("a", [3, 4]), array("b", [4])]), [["dim_3", "dim_4"], ["dim_4"]]);
});

t.test("two axes of one length in one array are told apart", async (t) => {
  t.same(nameDimensions([array("a", [3, 3, 3])]), [["dim_3", "dim_3_1", "dim_3_2"]]);
});

t.test("only the axis without a name gets one", async (t) => {
  t.same(nameDimensions([array("a", [3, 4], ["y", null])]), [["y", "dim_4"]]);
});

t.test("a name that a variable has, or a dimension of another length, is passed over", async (t) => {
  t.same(nameDimensions([array("dim_4", [2, 4]), array("b", [9], ["dim_2"])]), [
    ["dim_2_1", "dim_4_1"],
    ["dim_2"],
  ]);
});

t.test("a scalar has no dimensions", async (t) => {
  t.same(nameDimensions([array("a", [])]), [[]]);
});

t.test("no two unnamed variables ever disagree about a length, and no array has a name twice", async () => {
  const shape = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 4 });
  fc.assert(
    fc.property(fc.array(shape, { maxLength: 6 }), (shapes) => {
      const lengths = new Map<string, number>();
      const named = nameDimensions(shapes.map((shape, index) => array(`v${index}`, shape)));
      return named.every(
        (names, index) =>
          new Set(names).size === names.length &&
          names.every((name, axis) => {
            const length = shapes[index]?.[axis] as number;
            const known = lengths.get(name) ?? length;
            lengths.set(name, known);
            return known === length;
          }),
      );
    }),
  );
});
