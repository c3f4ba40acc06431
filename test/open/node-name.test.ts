import fc from "fast-check";
import t from "tap";
import { comparePaths } from "../../src/zarr/stored-tree.js";

t.test("parents come before children, they before the next sibling, siblings by name", async (t) => {
  const sorted = ["", "a", "a/b", "a/b/c", "a-", "a-/x", "b"];
  t.same(sorted.toReversed().sort(comparePaths), sorted);
});

t.test("paths are ordered segment by segment", async () => {
  const path = fc.array(fc.string({ unit: fc.constantFrom("a", "b", "!", "-", "0", "é"), minLength: 1 }), {
    maxLength: 4,
  });
  fc.assert(
    fc.property(path, path, (a, b) => {
      const at = a.findIndex((segment, index) => segment !== b[index]);
      const [left, right] = [a[at], b[at]];
      const expected =
        left === undefined || right === undefined ? Math.sign(a.length - b.length) : left < right ? -1 : 1;
      return comparePaths(a.join("/"), b.join("/")) === expected;
    }),
  );
});
