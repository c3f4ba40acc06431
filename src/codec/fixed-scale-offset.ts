import { filterTypes } from "../zarr/plan/codec-rules.js";
import type { Codec } from "./codec.js";
import { allocateItems, bytesOf, type NumberView, nativeBytes, swapToOrder, viewOf } from "./numeric-view.js";

/** Items per block: 16 KiB, half of a first-level cache. */
const BLOCK_ITEMS = 2048;

/**
 * `fixedscaleoffset` of numcodecs, decoding only: `encoded / scale + offset` in numpy's arithmetic, which has double precision
 * for integers and single precision for single floats.
 */
export const fixedScaleOffset: Codec = {
  decode(bytes, { codec }, memory) {
    const { dtype, astype } = filterTypes(codec);
    const encoded = viewOf(nativeBytes(bytes, astype, memory), astype);
    const decoded = allocateItems(encoded.length, dtype, memory);
    const scale = codec.scale as number;
    const offset = codec.offset as number;
    if (decoded instanceof Float64Array) {
      decoded.set(encoded);
      scaleDoubles(decoded, scale, offset);
    } else if (encoded instanceof Float32Array) {
      decoded.set(encoded);
      scaleFloats(decoded as Float32Array, Math.fround(scale), Math.fround(offset));
    } else scaleToFloats(encoded, decoded as Float32Array, scale, offset);
    return swapToOrder(bytesOf(decoded), dtype);
  },
};

/** Each loop sees one class of typed array: one that sees several is many times slower. */
function scaleDoubles(items: Float64Array, scale: number, offset: number): void {
  for (let i = 0; i < items.length; i++) items[i] = items[i]! / scale + offset;
}

function scaleFloats(items: Float32Array, scale: number, offset: number): void {
  for (let i = 0; i < items.length; i++) items[i] = Math.fround(items[i]! / scale) + offset;
}

/** Scales integers in double precision, block by block. */
function scaleToFloats(from: NumberView, to: Float32Array, scale: number, offset: number): void {
  const block = new Float64Array(Math.min(BLOCK_ITEMS, from.length));
  for (let begin = 0; begin < from.length; begin += BLOCK_ITEMS) {
    const end = begin + BLOCK_ITEMS;
    block.set(from.subarray(begin, end));
    scaleBlock(block, to.subarray(begin, end), scale, offset);
  }
}

function scaleBlock(from: Float64Array, to: Float32Array, scale: number, offset: number): void {
  for (let i = 0; i < to.length; i++) to[i] = from[i]! / scale + offset;
}
