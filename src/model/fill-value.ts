import { ZpublishError } from "../errors.js";
import { isJsonArray, type JsonValue, toBigInt, toNumber } from "../json/json-value.js";
import { describeJson, pythonFloat } from "../json/stringify-json.js";
import type { DataType } from "./data-type.js";

/** Writes a half-precision float, rounded to nearest even; infinite if the number is too large. */
export function writeHalf(view: DataView, value: number, littleEndian: boolean): void {
  view.setUint16(0, halfBits(value), littleEndian);
}

/** Reads a half-precision float. */
export function readHalf(view: DataView, littleEndian: boolean): number {
  const bits = view.getUint16(0, littleEndian);
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

let halves: Float64Array | undefined;

/** Returns all half-precision floats, by their bits: `Float16Array` is younger than many engines. */
export function halfNumbers(): Float64Array {
  const view = new DataView(new ArrayBuffer(2));
  halves ??= Float64Array.from({ length: 65_536 }, (_, bits) => {
    view.setUint16(0, bits);
    return readHalf(view, false);
  });
  return halves;
}

function halfBits(value: number): number {
  if (Number.isNaN(value)) return 0x7e00;
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const magnitude = Math.abs(value);
  // 65520 is halfway between the largest finite half and the next power of two.
  if (magnitude >= 65520) return sign | 0x7c00;
  const exponent = Math.max(-14, Math.min(15, binaryExponent(magnitude)));
  // In units of the last place. If it rounds up to 2048, it carries into the exponent by itself.
  const units = roundHalfToEven(magnitude / 2 ** (exponent - 10));
  return sign | ((exponent + 14) * 1024 + units);
}

function roundHalfToEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}

/** `e` such that 2^e ≤ magnitude < 2^(e+1), exactly. */
function binaryExponent(magnitude: number): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, magnitude);
  return ((view.getUint16(0) >> 4) & 0x7ff) - 1023;
}

/** Exponent bias of the x87 format. A double has 1023. */
const extendedBias = 16383;

/** Writes a number as the long double of x86-64: 80 bits with an explicit leading bit, padded to 16 bytes. */
function writeLongDouble(item: Uint8Array, value: number, littleEndian: boolean): void {
  const view = new DataView(new ArrayBuffer(16));
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const magnitude = Math.abs(value);
  if (Number.isNaN(value)) {
    view.setBigUint64(0, 0xc000000000000000n, true);
    view.setUint16(8, 0x7fff, true);
  } else if (magnitude === Number.POSITIVE_INFINITY) {
    view.setBigUint64(0, 0x8000000000000000n, true);
    view.setUint16(8, sign | 0x7fff, true);
  } else if (magnitude === 0) {
    view.setUint16(8, sign, true);
  } else {
    // A subnormal double is normal here: scaled up first, its digits are all kept.
    const scale = magnitude < 2 ** -1022 ? 64 : 0;
    const scaled = magnitude * 2 ** scale;
    const exponent = binaryExponent(scaled);
    const mantissa = BigInt((scaled / 2 ** exponent) * 2 ** 52) << 11n;
    view.setBigUint64(0, mantissa, true);
    view.setUint16(8, sign | (exponent - scale + extendedBias), true);
  }
  const bytes = new Uint8Array(view.buffer);
  item.set(littleEndian ? bytes : bytes.reverse());
}

/** Reads a long double of x86-64 as the nearest double. */
export function readLongDouble(item: Uint8Array, littleEndian: boolean): number {
  const bytes = littleEndian ? item.slice() : item.slice().reverse();
  const view = new DataView(bytes.buffer, bytes.byteOffset, 16);
  const mantissa = view.getBigUint64(0, true);
  const head = view.getUint16(8, true);
  const sign = head & 0x8000 ? -1 : 1;
  const exponent = (head & 0x7fff) - extendedBias;
  if (exponent === 0x7fff - extendedBias) {
    return mantissa << 1n === 1n << 64n ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  }
  if (mantissa === 0n) return sign * 0;
  // In two steps: 2^exponent alone may be out of a double's range even if the product is not.
  const half = Math.trunc(exponent / 2);
  return sign * (Number(mantissa) / 2 ** 63) * 2 ** half * 2 ** (exponent - half);
}

/** A fill value in both of its forms. */
interface FillValue {
  /** One item in the type's byte order, owned by the caller; null for `null`, and for every object type. */
  readonly item: Uint8Array | null;
  /** As zarr-python writes it into `.zarray`. */
  readonly json: JsonValue;
}

/** NaT, the smallest 64-bit integer. */
export const NOT_A_TIME = -(2n ** 63n);

const namedFloats: Readonly<Record<string, number>> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  "-Infinity": Number.NEGATIVE_INFINITY,
};

/**
 * Parses the `fill_value` of a v2 `.zarray`. Accepts what zarr-python accepts and other writers write: integral floats
 * for integers, 0 and 1 for bool, a number for complex, 0 for strings and structured types.
 * @throws ZpublishError `invalid-metadata` if the value does not fit the type: nothing is wrapped or cut.
 */
export function parseFillValue(value: JsonValue, type: DataType): FillValue {
  // Only the object codec knows what the fill value of an object type means.
  if (value === null || type.kind === "O") return { item: null, json: value };
  const item = encodeFillItem(value, type);
  return { item, json: fillItemToJson(item, type) };
}

/**
 * Encodes one item from JSON as in a v2 `fill_value`.
 * @throws ZpublishError `invalid-metadata`
 */
export function encodeFillItem(value: JsonValue, type: DataType): Uint8Array {
  const item = new Uint8Array(type.itemSize);
  switch (type.kind) {
    case "b":
      item[0] = parseBool(value, type);
      return item;
    case "i":
    case "u":
    case "M":
    case "m":
      writeInteger(item, parseInteger(value, type), type.byteOrder);
      return item;
    case "f":
      writeFloat(item, parseFloatValue(value, type), type);
      return item;
    case "c":
      writeComplex(item, value, type);
      return item;
    case "U":
      writeText(item, value, type);
      return item;
    case "S":
    case "V":
      writeBytes(item, value, type);
      return item;
    default:
      throw mismatch("no fill value", value, type);
  }
}

/** Writes one item as zarr-python writes it as a fill value. The opposite of {@link encodeFillItem}. */
export function fillItemToJson(item: Uint8Array, type: DataType): JsonValue {
  switch (type.kind) {
    case "b":
      return item[0] !== 0;
    case "i":
    case "u":
    case "M":
    case "m":
      return readInteger(item, type);
    case "f":
      return pythonFloat(readFloat(item, type));
    case "c": {
      const half = item.length / 2;
      return [
        pythonFloat(readFloat(item.subarray(0, half), type)),
        pythonFloat(readFloat(item.subarray(half), type)),
      ];
    }
    case "U":
      return readText(item, type);
    case "S": {
      // numpy strips trailing zeros from bytes.
      let end = item.length;
      while (end > 0 && item[end - 1] === 0) end--;
      return Buffer.from(item.subarray(0, end)).toString("base64");
    }
    default:
      return Buffer.from(item).toString("base64");
  }
}

/**
 * Decodes standard base64; undefined if the text is something else. (Buffer accepts any text and skips other characters.)
 */
export function decodeBase64(text: string): Uint8Array | undefined {
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? new Uint8Array(bytes) : undefined;
}

/** Reads a JSON number, or the name of one that JSON has no literal for; undefined if the value is neither. */
export function floatOf(value: JsonValue): number | undefined {
  if (typeof value === "string") return Object.hasOwn(namedFloats, value) ? namedFloats[value] : undefined;
  return toNumber(value);
}

function parseBool(value: JsonValue, type: DataType): number {
  if (typeof value === "boolean") return value ? 1 : 0;
  const number = toNumber(value);
  if (number !== 0 && number !== 1) throw mismatch("true or false", value, type);
  return number;
}

function parseInteger(value: JsonValue, type: DataType): bigint {
  const isTime = type.kind === "M" || type.kind === "m";
  if (isTime && value === "NaT") return NOT_A_TIME;
  const integer = typeof value === "boolean" ? BigInt(value) : toBigInt(value);
  if (integer === undefined) throw mismatch(isTime ? 'an integer or "NaT"' : "an integer", value, type);
  const bits = BigInt(type.itemSize * 8);
  const least = type.kind === "u" ? 0n : -(1n << (bits - 1n));
  const most = type.kind === "u" ? (1n << bits) - 1n : (1n << (bits - 1n)) - 1n;
  if (integer < least || integer > most) throw mismatch(`an integer from ${least} to ${most}`, value, type);
  return integer;
}

function parseFloatValue(value: JsonValue, type: DataType): number {
  const number = floatOf(value);
  if (number === undefined) throw mismatch('a number, "NaN", "Infinity" or "-Infinity"', value, type);
  return number;
}

function writeInteger(item: Uint8Array, integer: bigint, byteOrder: DataType["byteOrder"]): void {
  let rest = BigInt.asUintN(item.length * 8, integer);
  for (let i = 0; i < item.length; i++) {
    item[byteOrder === ">" ? item.length - 1 - i : i] = Number(rest & 0xffn);
    rest >>= 8n;
  }
}

function readInteger(item: Uint8Array, type: DataType): JsonValue {
  let unsigned = 0n;
  for (let i = 0; i < item.length; i++) {
    unsigned = (unsigned << 8n) | BigInt(item[type.byteOrder === ">" ? i : item.length - 1 - i]!);
  }
  const integer = type.kind === "u" ? unsigned : BigInt.asIntN(item.length * 8, unsigned);
  const number = Number(integer);
  return Number.isSafeInteger(number) ? number : integer;
}

/** Writes a float as wide as `item`. Rounds as numpy does, but throws if a finite number would become infinite. */
function writeFloat(item: Uint8Array, value: number, type: DataType): void {
  const view = new DataView(item.buffer, item.byteOffset, item.byteLength);
  const little = type.byteOrder !== ">";
  if (item.length === 8) view.setFloat64(0, value, little);
  else if (item.length === 4) view.setFloat32(0, value, little);
  else if (item.length === 2) writeHalf(view, value, little);
  else writeLongDouble(item, value, little);
  if (Number.isFinite(value) && !Number.isFinite(readFloat(item, type))) {
    throw mismatch(`a number in the range of a ${item.length}-byte float`, value, type);
  }
}

function readFloat(item: Uint8Array, type: DataType): number {
  const view = new DataView(item.buffer, item.byteOffset, item.byteLength);
  const little = type.byteOrder !== ">";
  if (item.length === 8) return view.getFloat64(0, little);
  if (item.length === 4) return view.getFloat32(0, little);
  return item.length === 2 ? readHalf(view, little) : readLongDouble(item, little);
}

function writeComplex(item: Uint8Array, value: JsonValue, type: DataType): void {
  const parts = isJsonArray(value) ? value : [value, 0];
  if (parts.length !== 2) throw mismatch("[real, imaginary]", value, type);
  const half = item.length / 2;
  writeFloat(item.subarray(0, half), parseFloatValue(parts[0] as JsonValue, type), type);
  writeFloat(item.subarray(half), parseFloatValue(parts[1] as JsonValue, type), type);
}

function writeText(item: Uint8Array, value: JsonValue, type: DataType): void {
  if (toNumber(value) === 0) return;
  if (typeof value !== "string") throw mismatch("a string", value, type);
  const characters = Array.from(value);
  if (characters.length * 4 > item.length) {
    throw mismatch(`a string of at most ${item.length / 4} characters`, value, type);
  }
  const view = new DataView(item.buffer);
  for (let i = 0; i < characters.length; i++) {
    view.setUint32(i * 4, (characters[i] as string).codePointAt(0) as number, type.byteOrder !== ">");
  }
}

function readText(item: Uint8Array, type: DataType): string {
  const view = new DataView(item.buffer, item.byteOffset, item.byteLength);
  let text = "";
  for (let offset = 0; offset < item.length; offset += 4) {
    text += String.fromCodePoint(view.getUint32(offset, type.byteOrder !== ">"));
  }
  return text.replace(/\0+$/, "");
}

function writeBytes(item: Uint8Array, value: JsonValue, type: DataType): void {
  if (toNumber(value) === 0) return;
  const bytes = typeof value === "string" ? decodeBase64(value) : undefined;
  if (bytes === undefined) throw mismatch("base64", value, type);
  // zarr-python strips trailing zeros from `S`; a structured or void item is always whole.
  const fits = type.kind === "S" ? bytes.length <= item.length : bytes.length === item.length;
  if (!fits) {
    const bound = type.kind === "S" ? "at most " : "";
    throw mismatch(`base64 of ${bound}${item.length} bytes`, value, type);
  }
  item.set(bytes);
}

function mismatch(expected: string, received: JsonValue, type: DataType): ZpublishError {
  return new ZpublishError(
    "invalid-metadata",
    `expected fill_value of dtype ${type.numpyStr} to be ${expected}, received ${describeJson(received)}`,
  );
}
