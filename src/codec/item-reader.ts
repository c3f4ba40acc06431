import type { Packing } from "../cf/packing.js";
import { ZpublishError } from "../errors.js";
import type { DataType } from "../model/data-type.js";
import { readHalf, readLongDouble, writeHalf } from "../model/fill-value.js";
import { type NumericType, parseNumericType } from "../zarr/plan/codec-rules.js";
import { corrupt } from "./codec.js";
import { type KernelMemory, OWN_MEMORY } from "./kernel/wasm-memory.js";

/** A typed array of numbers; 64-bit integers are taken as words, see {@link wordsOf}. */
export type NumberView =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array;

const VIEWS = {
  i1: Int8Array,
  u1: Uint8Array,
  i2: Int16Array,
  u2: Uint16Array,
  i4: Int32Array,
  u4: Uint32Array,
  f4: Float32Array,
  f8: Float64Array,
} as const;

const IS_LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** Index of the lower word of a 64-bit integer. */
export const LOW_WORD = IS_LITTLE_ENDIAN ? 0 : 1;
/** Index of the higher one. */
export const HIGH_WORD = 1 - LOW_WORD;

/** The type that 64-bit integers are handled as. */
export const WORD: NumericType = Object.freeze({
  kind: "i",
  itemSize: 4,
  isBigEndian: !IS_LITTLE_ENDIAN,
  name: "i4",
});

/** Whether a type is a 64-bit integer, which is handled as two words: `bigint`s are slow. */
export function isWide(type: NumericType): boolean {
  return type.itemSize === 8 && type.kind !== "f";
}

/**
 * Returns items in this machine's byte order, aligned for views: `bytes` itself if it is both.
 * @throws ZpublishError `corrupt-chunk` if the bytes are not a whole number of items.
 */
export function nativeBytes(bytes: Uint8Array, type: NumericType, memory?: KernelMemory): Uint8Array {
  if (!isNative(bytes, type)) return copyNativeBytes(bytes, type, memory);
  checkWhole(bytes, type);
  return bytes;
}

/** Tells whether items are in this machine's byte order, and aligned for views. */
function isNative(bytes: Uint8Array, type: NumericType): boolean {
  return bytes.byteOffset % type.itemSize === 0 && !swaps(type);
}

/** As {@link nativeBytes}, in a copy that the caller may change. */
export function copyNativeBytes(
  bytes: Uint8Array,
  type: NumericType,
  memory: KernelMemory = OWN_MEMORY,
): Uint8Array {
  checkWhole(bytes, type);
  const copy = memory.allocate(bytes.length);
  copy.set(bytes);
  return swapToOrder(copy, type);
}

/** Swaps items in place if their type's byte order is not this machine's; the same call swaps them back. */
export function swapToOrder(bytes: Uint8Array, type: NumericType): Uint8Array {
  if (!swaps(type)) return bytes;
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (type.itemSize === 2) buffer.swap16();
  else if (type.itemSize === 4) buffer.swap32();
  else buffer.swap64();
  return bytes;
}

/** The items of {@link nativeBytes}; not for 64-bit integers. */
export function viewOf(bytes: Uint8Array, type: NumericType): NumberView {
  const View = VIEWS[`${type.kind}${type.itemSize}` as keyof typeof VIEWS];
  return new View(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.length / type.itemSize);
}

/** Allocates `count` items; {@link bytesOf} gives their bytes. */
export function allocateItems(count: number, type: NumericType, memory?: KernelMemory): NumberView {
  return viewOf((memory ?? OWN_MEMORY).allocate(count * type.itemSize), type);
}

/** The bytes under a view. */
export function bytesOf(items: NumberView): Uint8Array {
  return new Uint8Array(items.buffer, items.byteOffset, items.byteLength);
}

/** The words of 64-bit integers: two for each, the lower at {@link LOW_WORD}. */
export function wordsOf(bytes: Uint8Array): Int32Array {
  return new Int32Array(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.length / 4);
}

function checkWhole(bytes: Uint8Array, type: NumericType): void {
  if (bytes.length % type.itemSize === 0) return;
  throw corrupt(`expected items of ${type.itemSize} bytes, received ${bytes.length} bytes`);
}

function swaps(type: NumericType): boolean {
  return type.itemSize > 1 && type.isBigEndian === IS_LITTLE_ENDIAN;
}

/** Reads the item at an offset of bytes as a value: unpacked, NaN if it is missing. */
export type ItemReader = (byteOffset: number) => number;

/** Reads the items at `begin + places[i]`, counted in items, as an {@link ItemReader} does. */
export type ItemsReader = (begin: number, places: Uint32Array, values: Float64Array) => void;

/**
 * Creates a reader of single numbers. 64-bit integers become the nearest doubles.
 * @param bytes Items in any alignment.
 * @throws ZpublishError `codec-failed` if items are no numbers and no booleans.
 */
export function createItemReader(bytes: Uint8Array, type: DataType, packing: Packing): ItemReader {
  const read = storedReader(bytes, type, numberKind(type, packing));
  const unpack = createUnpacker(type, packing);
  return (byteOffset) => unpack(read(byteOffset));
}

/** Creates a reader of many numbers, which takes less time for each. @throws As {@link createItemReader}. */
export function createItemsReader(bytes: Uint8Array, type: DataType, packing: Packing): ItemsReader {
  const { byteOrder, itemSize } = type;
  const kind = numberKind(type, packing);
  const unpack = createUnpacker(type, packing);
  const viewed = parseNumericType(`${byteOrder}${kind}${itemSize}`);
  if (viewed === undefined || isWide(viewed) || !isNative(bytes, viewed)) {
    const read = storedReader(bytes, type, kind);
    return (begin, places, values) => {
      for (let i = 0; i < values.length; i++) values[i] = unpack(read((begin + places[i]!) * itemSize));
    };
  }
  const items = viewOf(bytes, viewed);
  return (begin, places, values) => {
    for (let i = 0; i < values.length; i++) values[i] = unpack(items[begin + places[i]!]!);
  };
}

/** Returns the kind of the numbers that items mean. */
function numberKind({ kind }: DataType, { isUnsigned }: Packing): DataType["kind"] {
  const isInteger = kind === "i" || kind === "u";
  return isInteger && isUnsigned !== undefined ? (isUnsigned ? "u" : "i") : kind;
}

/** Creates a function from a stored number to the value that it means. */
function createUnpacker(type: DataType, packing: Packing): (stored: number) => number {
  const { scale, offset } = packing;
  const kind = numberKind(type, packing);
  const asStored = kind === type.kind ? castTo(type) : reinterpretAs(kind, type);
  const [low, high] = [asStored(packing.validMin), asStored(packing.validMax)];
  // NaN is missing anyway, and equals nothing.
  const [first = Number.NaN, ...others] = packing.missing.map(asStored).filter((each) => !Number.isNaN(each));
  const isEverything = low === Number.NEGATIVE_INFINITY && high === Number.POSITIVE_INFINITY;
  if (isEverything && Number.isNaN(first) && scale === 1 && offset === 0) return (stored) => stored;
  return (stored) => {
    if (!(stored >= low && stored <= high) || stored === first) return Number.NaN;
    for (let i = 0; i < others.length; i++) if (stored === others[i]) return Number.NaN;
    return stored * scale + offset;
  };
}

function storedReader(bytes: Uint8Array, type: DataType, kind: DataType["kind"]): ItemReader {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const little = type.byteOrder !== ">";
  // Two words are read much faster than a bigint.
  const [low, high] = little ? [0, 4] : [4, 0];
  const half = new DataView(new ArrayBuffer(2));
  switch (`${kind}${type.itemSize}`) {
    case "b1":
      return (at) => (view.getUint8(at) === 0 ? 0 : 1);
    case "i1":
      return (at) => view.getInt8(at);
    case "u1":
      return (at) => view.getUint8(at);
    case "i2":
      return (at) => view.getInt16(at, little);
    case "u2":
      return (at) => view.getUint16(at, little);
    case "i4":
      return (at) => view.getInt32(at, little);
    case "u4":
      return (at) => view.getUint32(at, little);
    case "i8":
      return (at) => view.getInt32(at + high, little) * 2 ** 32 + view.getUint32(at + low, little);
    case "u8":
      return (at) => view.getUint32(at + high, little) * 2 ** 32 + view.getUint32(at + low, little);
    case "f2":
      return (at) => {
        half.setUint16(0, view.getUint16(at, little));
        return readHalf(half, false);
      };
    case "f4":
      return (at) => view.getFloat32(at, little);
    case "f8":
      return (at) => view.getFloat64(at, little);
    case "f16":
      return (at) => readLongDouble(bytes.subarray(at, at + 16), little);
    default:
      throw new ZpublishError("codec-failed", `expected items that are numbers, received ${type.numpyName}`);
  }
}

/** Returns a function that rounds a number of an attribute to the item's type, so that equal texts are equal numbers. */
function castTo({ kind, itemSize }: DataType): (value: number) => number {
  if (kind === "f" && itemSize === 4) return Math.fround;
  if (kind !== "f" || itemSize !== 2) return (value) => value;
  const half = new DataView(new ArrayBuffer(2));
  return (value) => {
    writeHalf(half, value, false);
    return readHalf(half, false);
  };
}

/** Returns a function for attributes of integers with `_Unsigned`: they have the stored type, and mean the other one. */
function reinterpretAs(kind: DataType["kind"], { itemSize }: DataType): (value: number) => number {
  const range = 2 ** (8 * itemSize);
  if (kind === "u") return (value) => (value < 0 && value >= -range / 2 ? value + range : value);
  return (value) => (value >= range / 2 && value < range ? value - range : value);
}
