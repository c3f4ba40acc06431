import { isJsonArray, type JsonValue } from "../../json/json-value.js";
import { pythonFloatText, pythonString } from "../../json/stringify-json.js";
import { type DataType, parseDataType } from "../../model/data-type.js";
import { formatDatetime, formatTimedelta } from "./format-numpy-time.js";
import { pythonBytes } from "./python-bytes.js";

/** Formats one item. @param offset Offset of the item's first byte. */
type ItemFormatter = (view: DataView, offset: number) => string;

/**
 * Formats items as numpy prints them one by one: `1.5`, `nan`, `True`, `'abc'`, `2000-01-01T00:00:00`, `(1, 2.5)`.
 * @param bytes Whole items, one after the other.
 * @returns Undefined for objects, and for floats of more than 8 bytes.
 */
export function formatItems(bytes: Uint8Array, dataType: DataType): string[] | undefined {
  const format = formatterOf(dataType);
  if (format === undefined) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const count = Math.floor(bytes.length / Math.max(1, dataType.itemSize));
  return Array.from({ length: count }, (_, index) => format(view, index * dataType.itemSize));
}

/** Reads the items of a number type; undefined for other types. 64-bit integers are `bigint`s. */
export function readNumbers(bytes: Uint8Array, dataType: DataType): (number | bigint)[] | undefined {
  const read = numberReaderOf(dataType);
  if (read === undefined) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: Math.floor(bytes.length / dataType.itemSize) }, (_, index) =>
    read(view, index * dataType.itemSize),
  );
}

function formatterOf(dataType: DataType): ItemFormatter | undefined {
  const { kind, itemSize, timeUnit = "generic" } = dataType;
  switch (kind) {
    case "b":
      return (view, offset) => (view.getUint8(offset) === 0 ? "False" : "True");
    case "i":
    case "u": {
      const read = numberReaderOf(dataType);
      return read && ((view, offset) => String(read(view, offset)));
    }
    case "f": {
      const read = numberReaderOf(dataType);
      return read && ((view, offset) => formatFloat(read(view, offset) as number, itemSize));
    }
    case "c":
      return complexFormatterOf(dataType);
    case "S":
      return (view, offset) => pythonBytes(withoutPadding(bytesAt(view, offset, itemSize)));
    case "U":
      return (view, offset) => pythonString(textAt(view, offset, dataType));
    case "M":
    case "m": {
      const format = kind === "M" ? formatDatetime : formatTimedelta;
      const isLittle = dataType.byteOrder !== ">";
      return (view, offset) => format(view.getBigInt64(offset, isLittle), timeUnit);
    }
    case "V":
      return isJsonArray(dataType.zarr)
        ? structFormatterOf(dataType.zarr)
        : (view, offset) => rawBytes(bytesAt(view, offset, itemSize));
    case "O":
      return undefined;
  }
}

type NumberReader = (view: DataView, offset: number) => number | bigint;

function numberReaderOf({ kind, itemSize, byteOrder }: DataType): NumberReader | undefined {
  const isLittle = byteOrder !== ">";
  switch (`${kind}${itemSize}`) {
    case "i1":
      return (view, offset) => view.getInt8(offset);
    case "u1":
      return (view, offset) => view.getUint8(offset);
    case "i2":
      return (view, offset) => view.getInt16(offset, isLittle);
    case "u2":
      return (view, offset) => view.getUint16(offset, isLittle);
    case "i4":
      return (view, offset) => view.getInt32(offset, isLittle);
    case "u4":
      return (view, offset) => view.getUint32(offset, isLittle);
    case "i8":
      return (view, offset) => view.getBigInt64(offset, isLittle);
    case "u8":
      return (view, offset) => view.getBigUint64(offset, isLittle);
    case "f2":
      return (view, offset) => halfToNumber(view.getUint16(offset, isLittle));
    case "f4":
      return (view, offset) => view.getFloat32(offset, isLittle);
    case "f8":
      return (view, offset) => view.getFloat64(offset, isLittle);
    default:
      return undefined;
  }
}

/** Converts IEEE 754 half precision, which DataView cannot read before Node.js 24. */
function halfToNumber(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >>> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1024 + fraction) * 2 ** (exponent - 25);
}

/** Rounds a number to half precision, ties to even. Precise enough to find the shortest digits. */
function roundToHalf(value: number): number {
  const exponent = Math.max(-14, Math.floor(Math.log2(Math.abs(value))));
  const step = 2 ** (exponent - 10);
  const steps = Math.round(value / step);
  const isOddTie = Math.abs(value / step - steps) === 0.5 && steps % 2 !== 0;
  return (isOddTie ? steps - 1 : steps) * step;
}

/** Writes the shortest decimal that reads back as the same float of that size, as Python and numpy do. */
function formatFloat(value: number, itemSize: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (itemSize === 8 || value === 0) return pythonFloatText(value);
  const round = itemSize === 4 ? Math.fround : roundToHalf;
  for (let digits = 1; digits < 10; digits++) {
    const shorter = roundToDigits(value, digits);
    if (round(shorter) === value) return pythonFloatText(shorter);
  }
  return pythonFloatText(value);
}

/** Rounds to a number of digits, ties to even as numpy does; `toPrecision` rounds ties away from zero. */
function roundToDigits(value: number, digits: number): number {
  const [mantissa, exponent] = value.toExponential(60).split("e") as [string, string];
  const kept = mantissa.slice(0, mantissa.indexOf(".") + digits);
  const isTie = /^50*$/.test(mantissa.slice(kept.length).replace(".", ""));
  const isEven = /[02468]\.?$/.test(kept);
  return Number(isTie && isEven ? `${kept}e${exponent}` : value.toPrecision(digits));
}

function complexFormatterOf({ itemSize, byteOrder }: DataType): ItemFormatter | undefined {
  const partSize = itemSize / 2;
  const read = numberReaderOf({ kind: "f", itemSize: partSize, byteOrder } as DataType);
  if (read === undefined) return undefined;
  return (view, offset) => {
    const real = read(view, offset) as number;
    const imaginary = read(view, offset + partSize) as number;
    const text = `${complexPart(imaginary, partSize)}j`;
    if (Object.is(real, 0)) return text;
    return `(${complexPart(real, partSize)}${text.startsWith("-") ? "" : "+"}${text})`;
  };
}

/** Writes a part of a complex number without `.0`, as Python does. */
function complexPart(value: number, itemSize: number): string {
  return formatFloat(value, itemSize).replace(/\.0$/, "");
}

function structFormatterOf(fields: readonly JsonValue[]): ItemFormatter | undefined {
  const formatters: ItemFormatter[] = [];
  let byteOffset = 0;
  for (const field of fields) {
    const [, zarr, shape] = field as readonly [string, JsonValue, JsonValue?];
    const type = parseDataType(zarr);
    const format = formatterOf(type);
    if (format === undefined) return undefined;
    const lengths = isJsonArray(shape) ? shape.map(Number) : [];
    const begin = byteOffset;
    formatters.push((view, offset) => formatSubarray(view, offset + begin, lengths, type.itemSize, format));
    byteOffset += lengths.reduce((product, length) => product * length, type.itemSize);
  }
  return (view, offset) => {
    const texts = formatters.map((format) => format(view, offset));
    return `(${texts.join(", ")}${texts.length === 1 ? "," : ""})`;
  };
}

function formatSubarray(
  view: DataView,
  offset: number,
  shape: readonly number[],
  itemSize: number,
  format: ItemFormatter,
): string {
  const [length, ...inner] = shape;
  if (length === undefined) return format(view, offset);
  const step = inner.reduce((product, innerLength) => product * innerLength, itemSize);
  const texts = Array.from({ length }, (_, index) =>
    formatSubarray(view, offset + index * step, inner, itemSize, format),
  );
  return `[${texts.join(", ")}]`;
}

function bytesAt(view: DataView, offset: number, byteLength: number): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset + offset, byteLength);
}

/** Removes trailing zeros: numpy pads fixed-length items with them, and cannot tell them from zeros of a value. */
function withoutPadding(bytes: Uint8Array): Uint8Array {
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end--;
  return bytes.subarray(0, end);
}

function rawBytes(bytes: Uint8Array): string {
  return `b'${[...bytes].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")}'`;
}

/** Reads UCS-4 of either byte order. Values that are no code point become U+FFFD. */
function textAt(view: DataView, offset: number, { itemSize, byteOrder }: DataType): string {
  const codePoints = Array.from({ length: itemSize / 4 }, (_, index) =>
    view.getUint32(offset + index * 4, byteOrder !== ">"),
  );
  while (codePoints.at(-1) === 0) codePoints.pop();
  return codePoints.map((code) => (code <= 0x10ffff ? String.fromCodePoint(code) : "\ufffd")).join("");
}
