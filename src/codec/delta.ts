import { filterTypes, type NumericType } from "../zarr/plan/codec-rules.js";
import type { Codec } from "./codec.js";
import { convertItems } from "./convert-items.js";
import { copyNativeBytes, swapToOrder } from "./numeric-view.js";
import { sumUp, takeDifferences } from "./running-sum.js";

/**
 * `delta` of numcodecs: the first item, then differences, in the arithmetic of `dtype` (integers wrap around, single
 * floats round after every step), stored as `astype`.
 */
export const delta: Codec = {
  decode(bytes, { codec }, memory) {
    const { dtype, astype } = filterTypes(codec);
    const sumType = sumTypeOf(dtype, astype);
    const items = convertItems(copyNativeBytes(bytes, astype, memory), astype, sumType, memory);
    sumUp(items, sumType);
    return swapToOrder(convertItems(items, sumType, dtype, memory), dtype);
  },
  encode(bytes, { codec }, memory) {
    const { dtype, astype } = filterTypes(codec);
    const items = copyNativeBytes(bytes, dtype, memory);
    // Differences wrap around in `dtype` before they widen to `astype`.
    takeDifferences(items, dtype);
    return swapToOrder(convertItems(items, dtype, astype, memory), astype);
  },
};

/** The type that sums are taken in. numpy takes one that holds both; if that is an integer, `dtype` gives the same. */
function sumTypeOf(dtype: NumericType, astype: NumericType): NumericType {
  if (dtype.kind === "f" || astype.kind !== "f") return dtype;
  return dtype.itemSize < 4 ? astype : DOUBLE;
}

const DOUBLE: NumericType = Object.freeze({ kind: "f", itemSize: 8, isBigEndian: false, name: "<f8" });
