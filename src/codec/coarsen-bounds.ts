import type { CoarsenStep } from "../zarr/plan/encoding-plan.js";
import type { Blocks } from "./block-rows.js";
import { openRows } from "./item-rows.js";

/**
 * Makes the bounds of coarser cells: of the bounds of a block the least and the greatest, in the order that those of its first cell
 * have (CF section 7.1).
 * @param items Two bounds per cell of an axis that is halved.
 */
export function coarsenBounds(
  items: Uint8Array,
  out: Uint8Array,
  { inside, outInside }: Blocks,
  { from, packing }: CoarsenStep,
): void {
  const cells = inside[0]!;
  const bounds = new Float64Array(cells * 2);
  openRows(items, from, packing).read(bounds, 0, bounds.length);

  function copy(source: number, target: number): void {
    const item = items.subarray(source * from.itemSize, (source + 1) * from.itemSize);
    out.set(item, target * from.itemSize);
  }

  for (let cell = 0; cell < outInside[0]!; cell++) {
    const first = cell * 4;
    const end = Math.min(first + 4, bounds.length);
    let least = first;
    let greatest = first;
    for (let index = first + 1; index < end; index++) {
      if (bounds[index]! < bounds[least]!) least = index;
      if (bounds[index]! > bounds[greatest]!) greatest = index;
    }
    const descends = bounds[first]! > bounds[first + 1]!;
    copy(descends ? greatest : least, cell * 2);
    copy(descends ? least : greatest, cell * 2 + 1);
  }
}
