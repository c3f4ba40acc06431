import { filterTypes } from "../zarr/numeric-filter-rules.js";
import type { Codec } from "./codec.js";
import { allocateItems, itemBytes, type NumberView, readItems } from "./numeric-view.js";

/**
 * `fixedscaleoffset` of numcodecs, decoding only: `encoded / scale + offset` in the arithmetic of numpy, which is double
 * precision for integers, and single for single floats.
 */
export const fixedScaleOffset: Codec = {
  decode(bytes, { codec }) {
    const { dtype, astype } = filterTypes(codec);
    const encoded = readItems(bytes, astype) as NumberView;
    const decoded = allocateItems(encoded.length, dtype) as NumberView;
    const scale = codec.scale as number;
    const offset = codec.offset as number;
    if (encoded instanceof Float32Array) {
      const singleScale = Math.fround(scale);
      const singleOffset = Math.fround(offset);
      for (let i = 0; i < encoded.length; i++) {
        decoded[i] = Math.fround(encoded[i]! / singleScale) + singleOffset;
      }
    } else {
      for (let i = 0; i < encoded.length; i++) decoded[i] = encoded[i]! / scale + offset;
    }
    return itemBytes(decoded, dtype);
  },
};
