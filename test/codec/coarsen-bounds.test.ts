import t from "tap";
import { packingOf } from "../../src/cf/packing.js";
import { coarsen } from "../../src/codec/compute/coarsen.js";
import { parseDataType } from "../../src/model/data-type.js";
import type { CoarsenStep, EncodingPlan } from "../../src/zarr/plan/encoding-plan.js";

/** Coarsens one box of pairs. @param box Cells of a box. */
function coarserBounds(pairs: readonly number[], box: number, dtype = "<f8", at = 0): number[] {
  const type = parseDataType(dtype);
  const isLittle = type.byteOrder !== ">";
  const items = new Uint8Array(box * 2 * 8);
  const view = new DataView(items.buffer);
  pairs.slice(at * box * 2, (at + 1) * box * 2).forEach((value, index) => {
    view.setFloat64(index * 8, value, isLittle);
  });
  const step: CoarsenStep = {
    kind: "coarsen",
    revision: "1",
    method: "bounds",
    factors: [2, 1],
    from: type,
    to: type,
    packing: packingOf({}),
    missingItem: null,
    fillItem: null,
  };
  const plan = { shape: [pairs.length / 2, 2], served: { chunkShape: [box, 2] } } as unknown as EncodingPlan;
  const out = coarsen(items, plan, step, [at, 0]);
  const read = new DataView(out.buffer, out.byteOffset, out.byteLength);
  return Array.from({ length: out.length / 8 }, (_, index) => read.getFloat64(index * 8, isLittle));
}

t.test("bounds are the least and the greatest of a block, in the order of its first cell", async (t) => {
  t.same(coarserBounds([0, 1, 1, 2, 2, 3, 3, 4], 4), [0, 2, 2, 4], "ascending");
  t.same(coarserBounds([4, 3, 3, 2, 2, 1, 1, 0], 4), [4, 2, 2, 0], "descending");
  t.same(
    coarserBounds([3, 4, 2, 3, 1, 2, 0, 1], 4),
    [2, 4, 0, 2],
    "pairs that ascend along an axis that descends",
  );
  t.same(coarserBounds([0, 1, 1, 2, 2, 3, 3, 4], 4, ">f8"), [0, 2, 2, 4], "the other byte order");
});

t.test("an odd last cell keeps its own", async (t) => {
  const pairs = [0, 1, 1, 2, 2, 3, 3, 4, 4, 5];
  t.same(coarserBounds(pairs, 4), [0, 2, 2, 4]);
  t.same(coarserBounds(pairs, 4, "<f8", 1), [4, 5, 0, 0], "fill items outside of the array");
  t.same(coarserBounds([7, 8], 2), [7, 8]);
});
