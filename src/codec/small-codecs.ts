import type { JsonValue } from "../json/json-value.js";
import { parseDataType } from "../model/data-type.js";
import { fillItemToJson } from "../model/fill-value.js";
import { filterTypes, type NumericType } from "../zarr/plan/codec-rules.js";
import { variableLengthItem } from "../zarr/v3/v3-fill-value.js";
import { type Codec, corrupt } from "./codec.js";
import { sumUp, takeDifferences } from "./compute/running-sum.js";
import { convertItems } from "./convert-items.js";
import { allocateItems, bytesOf, copyNativeBytes, nativeBytes, swapToOrder, viewOf } from "./item-reader.js";
import { currentKernel } from "./kernel/kernel.js";
import { type KernelMemory, OWN_MEMORY } from "./kernel/kernel-memory.js";

/**
 * `bitround`, and `quantize` within one type, which drop bits when they first encode: neither decoding nor encoding decoded
 * items again has anything to do.
 */
export const bitround: Codec = { decode: (bytes) => bytes, encode: (bytes) => bytes };

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
    } else {
      const doubles = new Float64Array(encoded);
      scaleDoubles(doubles, scale, offset);
      decoded.set(doubles);
    }
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

/** `shuffle` of numcodecs: bytes of equal weight lie together. Lengths must be multiples of `elementsize`. */
export const shuffle: Codec = {
  decode: (bytes, { codec }, memory) => run("unshuffleBytes", bytes, codec.elementsize, memory),
  encode: (bytes, { codec }, memory) => run("shuffleBytes", bytes, codec.elementsize, memory),
};

function run(
  operation: "shuffleBytes" | "unshuffleBytes",
  bytes: Uint8Array,
  elementSize: unknown,
  memory: KernelMemory = OWN_MEMORY,
): Uint8Array {
  const itemSize = typeof elementSize === "number" ? elementSize : 4;
  if (itemSize <= 1) return bytes;
  if (bytes.length % itemSize !== 0) {
    throw corrupt(`shuffle: expected a multiple of ${itemSize} bytes, received ${bytes.length}`);
  }
  const target = memory.allocate(bytes.length);
  currentKernel()[operation](bytes, target, itemSize);
  return target;
}

/**
 * Items with padding between their fields, as compounds of HDF5 have it. Decoding takes the padding out, and reverses the bytes of
 * numbers of the other byte order.
 */
export const repack: Codec = {
  decode(bytes, { codec }) {
    const storedSize = Number(codec.itemSize);
    const pieces = (codec.pieces as readonly (readonly JsonValue[])[]).map(
      ([offset, byteLength, reversed]) => [Number(offset), Number(byteLength), Number(reversed)] as const,
    );
    const count = bytes.length / storedSize;
    if (!Number.isInteger(count)) {
      throw corrupt(`repack: expected items of ${storedSize} bytes, received ${bytes.length} bytes`);
    }
    const packed = new Uint8Array(count * pieces.reduce((sum, [, byteLength]) => sum + byteLength, 0));
    let to = 0;
    for (let item = 0; item < bytes.length; item += storedSize) {
      for (const [offset, byteLength, reversed] of pieces) {
        for (let from = item + offset; from < item + offset + byteLength; from += reversed) {
          for (let byte = reversed - 1; byte >= 0; byte--) packed[to++] = bytes[from + byte]!;
        }
      }
    }
    return packed;
  },
};

/** Half of a surrogate pair, which UTF-8 cannot say. */
const LONE_SURROGATE = /[\ud800-\udfff]/u;

/**
 * Texts of a fixed length as numpy has them, in UTF-32 or bytes. Decoding writes them as `vlen-utf8` and `vlen-bytes` of numcodecs do: the
 * number of items, then each with its length before it.
 */
export const fixedText: Codec = {
  decode(bytes, { codec }) {
    const type = parseDataType(codec.dtype!);
    const { itemSize } = type;
    if (bytes.length !== codec.byteLength)
      throw corrupt(`fixed-text: expected ${codec.byteLength} bytes, received ${bytes.length}`);
    // A character takes at most four bytes of UTF-8.
    const items = new Uint8Array(4 + 4 * (bytes.length / itemSize) + bytes.length);
    new DataView(items.buffer).setUint32(0, bytes.length / itemSize, true);
    let end = 4;
    for (let start = 0; start < bytes.length; start += itemSize) {
      const text = String(fillItemToJson(bytes.subarray(start, start + itemSize), type));
      if (LONE_SURROGATE.test(text)) throw corrupt("fixed-text: expected characters, received surrogates");
      const item = variableLengthItem(text, codec.filter!);
      items.set(item, end);
      end += item.length;
    }
    return items.subarray(0, end);
  },
};
