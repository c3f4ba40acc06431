import { ZpublishError } from "../errors.js";
import type { DataType } from "../model/data-type.js";
import { readHalf, readLongDouble, writeHalf } from "../model/fill-value.js";

/** Items of a small array: numbers, integers and times of 64 bits as bigint, or texts. */
export type Items = Float64Array | BigInt64Array | BigUint64Array | readonly string[];

/** One of {@link Items}. Those of one array can be compared with `<`. */
export type Item = number | bigint | string;

/**
 * Reads items in C order.
 * @param values In the type and its byte order; those of a variable-length type as vlen-utf8 writes one chunk.
 * @throws ZpublishError `invalid-metadata` if items of the type are neither numbers nor texts
 */
export function readItems(values: Uint8Array, type: DataType): Items {
  const { kind, itemSize } = type;
  const little = type.byteOrder !== ">";
  const view = new DataView(values.buffer, values.byteOffset, values.byteLength);
  if (kind === "O") return readVariable(values, view);
  const count = itemSize === 0 ? 0 : values.length / itemSize;
  if (kind === "S") return Array.from({ length: count }, (_, i) => readBytes(values, i * itemSize, itemSize));
  if (kind === "U") return Array.from({ length: count }, (_, i) => readText(view, i * itemSize, type));
  if (itemSize === 8 && kind !== "f" && kind !== "c") {
    const items = kind === "u" ? new BigUint64Array(count) : new BigInt64Array(count);
    for (let i = 0; i < count; i++) {
      items[i] = kind === "u" ? view.getBigUint64(i * 8, little) : view.getBigInt64(i * 8, little);
    }
    return items;
  }
  const read = numberReader(view, type);
  const items = new Float64Array(count);
  for (let i = 0; i < count; i++) items[i] = read(i * itemSize, little);
  return items;
}

/** Writes items of any number type, or texts of kind `U` and `S`. The opposite of {@link readItems}. */
export function writeItems(items: ArrayLike<Item>, type: DataType): Uint8Array {
  const { kind, itemSize } = type;
  const little = type.byteOrder !== ">";
  const bytes = new Uint8Array(items.length * itemSize);
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < items.length; i++) {
    const item = items[i] as Item;
    const at = i * itemSize;
    if (kind === "S") bytes.set(Buffer.from(String(item)).subarray(0, itemSize), at);
    else if (kind === "U") writeText(view, at, String(item), little);
    else if (kind === "f") writeFloat(view, at, Number(item), type);
    else if (itemSize === 8) view.setBigUint64(at, BigInt.asUintN(64, BigInt(item)), little);
    else if (itemSize === 4) view.setUint32(at, Number(item) >>> 0, little);
    else if (itemSize === 2) view.setUint16(at, Number(item), little);
    else view.setUint8(at, Number(item));
  }
  return bytes;
}

type NumberReader = (at: number, little: boolean) => number;

function numberReader(view: DataView, type: DataType): NumberReader {
  switch (`${type.kind}${type.itemSize}`) {
    case "b1":
    case "u1":
      return (at) => view.getUint8(at);
    case "i1":
      return (at) => view.getInt8(at);
    case "u2":
      return (at, little) => view.getUint16(at, little);
    case "i2":
      return (at, little) => view.getInt16(at, little);
    case "u4":
      return (at, little) => view.getUint32(at, little);
    case "i4":
      return (at, little) => view.getInt32(at, little);
    case "f2":
      return (at, little) => readHalf(new DataView(view.buffer, view.byteOffset + at, 2), little);
    case "f4":
      return (at, little) => view.getFloat32(at, little);
    case "f8":
      return (at, little) => view.getFloat64(at, little);
    case "f16":
      return (at, little) => readLongDouble(new Uint8Array(view.buffer, view.byteOffset + at, 16), little);
    default:
      throw new ZpublishError(
        "invalid-metadata",
        `expected numbers, times or texts, received items of type ${type.numpyStr}`,
      );
  }
}

function writeFloat(view: DataView, at: number, value: number, { itemSize, byteOrder }: DataType): void {
  const little = byteOrder !== ">";
  if (itemSize === 8) view.setFloat64(at, value, little);
  else if (itemSize === 4) view.setFloat32(at, value, little);
  else writeHalf(new DataView(view.buffer, at, 2), value, little);
}

function readVariable(values: Uint8Array, view: DataView): string[] {
  const texts: string[] = [];
  for (let at = 4; at + 4 <= values.length; ) {
    const length = view.getUint32(at, true);
    texts.push(Buffer.from(values.subarray(at + 4, at + 4 + length)).toString());
    at += 4 + length;
  }
  return texts;
}

function readBytes(values: Uint8Array, at: number, length: number): string {
  let end = at + length;
  // numpy strips trailing zeros.
  while (end > at && values[end - 1] === 0) end--;
  return Buffer.from(values.subarray(at, end)).toString();
}

function readText(view: DataView, at: number, { itemSize, byteOrder }: DataType): string {
  let text = "";
  for (let offset = 0; offset < itemSize; offset += 4) {
    text += String.fromCodePoint(view.getUint32(at + offset, byteOrder !== ">"));
  }
  return text.replace(/\0+$/, "");
}

function writeText(view: DataView, at: number, text: string, little: boolean): void {
  let offset = at;
  for (const character of text) {
    view.setUint32(offset, character.codePointAt(0) as number, little);
    offset += 4;
  }
}
