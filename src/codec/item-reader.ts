import type { Packing } from "../cf/packing.js";
import { ZpublishError } from "../errors.js";
import type { DataType } from "../model/data-type.js";
import { readHalf, readLongDouble, writeHalf } from "../model/float-bits.js";

/** Reads the item at an offset of bytes as a value: unpacked, NaN if it is missing. */
export type ItemReader = (byteOffset: number) => number;

/**
 * Creates a reader of single numbers. 64-bit integers become the nearest doubles.
 * @param bytes Items in any alignment.
 * @throws ZpublishError `codec-failed` if items are no numbers and no booleans.
 */
export function createItemReader(bytes: Uint8Array, type: DataType, packing: Packing): ItemReader {
  const { scale, offset, isUnsigned } = packing;
  const isInteger = type.kind === "i" || type.kind === "u";
  const kind = isInteger && isUnsigned !== undefined ? (isUnsigned ? "u" : "i") : type.kind;
  const read = storedReader(bytes, type, kind);
  const asStored = kind === type.kind ? castTo(type) : reinterpretAs(kind, type);
  const missing = packing.missing.map(asStored);
  const [low, high] = [asStored(packing.validMin), asStored(packing.validMax)];
  const [first = Number.NaN, ...others] = missing;
  return (byteOffset) => {
    const stored = read(byteOffset);
    if (!(stored >= low && stored <= high) || stored === first) return Number.NaN;
    for (const other of others) if (stored === other) return Number.NaN;
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
