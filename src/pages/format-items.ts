import { dateOfProlepticGregorian } from "../cf/cf-time.js";
import { isJsonArray, type JsonValue } from "../json/json-value.js";
import { pythonFloatText, pythonString } from "../json/stringify-json.js";
import { type DataType, parseDataType } from "../model/data-type.js";

/** numpy's "not a time": the smallest 64-bit integer. */
const NOT_A_TIME = -(2n ** 63n);

interface ClockUnit {
  /** Units per day. */
  readonly perDay: bigint;
  readonly name: string;
  /** Parts of `HH:MM:SS` that are shown. */
  readonly clockParts: number;
  /** Digits of a fraction of a second that are shown. */
  readonly fractionDigits: number;
}

const SECONDS_PER_DAY = 86_400n;

const CLOCK_UNITS: Readonly<Record<string, ClockUnit>> = {
  D: { perDay: 1n, name: "days", clockParts: 0, fractionDigits: 0 },
  h: { perDay: 24n, name: "hours", clockParts: 1, fractionDigits: 0 },
  m: { perDay: 1440n, name: "minutes", clockParts: 2, fractionDigits: 0 },
  s: { perDay: SECONDS_PER_DAY, name: "seconds", clockParts: 3, fractionDigits: 0 },
  ms: fraction("milliseconds", 3),
  us: fraction("microseconds", 6),
  ns: fraction("nanoseconds", 9),
  ps: fraction("picoseconds", 12),
  fs: fraction("femtoseconds", 15),
  as: fraction("attoseconds", 18),
};

const CALENDAR_UNIT_NAMES: Readonly<Record<string, string>> = { Y: "years", M: "months", W: "weeks" };

function fraction(name: string, fractionDigits: number): ClockUnit {
  return { perDay: SECONDS_PER_DAY * 10n ** BigInt(fractionDigits), name, clockParts: 3, fractionDigits };
}

/**
 * Formats a `datetime64` as numpy does, as precise as its unit: `2000`, `2000-01`, `2000-01-01`, `2000-01-01T12`, ….
 * @param unit As in {@link "../model/data-type.js".DataType.timeUnit}.
 */
export function formatDatetime(value: bigint, unit: string): string {
  if (value === NOT_A_TIME) return "NaT";
  const { base, count } = splitUnit(unit);
  const counted = value * count;
  if (base === "Y") return yearText(Number(counted) + 1970);
  if (base === "M") {
    const year = floorDivide(counted, 12n);
    return `${yearText(Number(year) + 1970)}-${pad(counted - year * 12n, 2, 1n)}`;
  }
  if (base === "W") return dateText(counted * 7n);
  const clock = CLOCK_UNITS[base];
  if (clock === undefined) return String(value);
  const days = floorDivide(counted, clock.perDay);
  return dateText(days) + clockText(counted - days * clock.perDay, clock);
}

/** Formats a `timedelta64` as numpy does: `5 seconds`. */
function formatTimedelta(value: bigint, unit: string): string {
  if (value === NOT_A_TIME) return "NaT";
  const { base, count } = splitUnit(unit);
  const name = CLOCK_UNITS[base]?.name ?? CALENDAR_UNIT_NAMES[base];
  return name === undefined ? String(value) : `${value * count} ${name}`;
}

/** Splits a unit into its base and its count: `25us` is 25 of `us`. */
function splitUnit(unit: string): { readonly base: string; readonly count: bigint } {
  const [, digits, base] = /^(\d*)(.*)$/.exec(unit) as unknown as [string, string, string];
  return { base: base.replace("μ", "u").replace("µ", "u"), count: BigInt(digits || "1") };
}

function dateText(days: bigint): string {
  const [year, month, day] = dateOfProlepticGregorian(Number(days));
  return `${yearText(year)}-${pad(month, 2)}-${pad(day, 2)}`;
}

function clockText(ticks: bigint, { perDay, clockParts, fractionDigits }: ClockUnit): string {
  if (clockParts === 0) return "";
  const ticksPerSecond = perDay / SECONDS_PER_DAY;
  const seconds = clockParts === 3 ? ticks / ticksPerSecond : ticks * (SECONDS_PER_DAY / perDay);
  const parts = [seconds / 3600n, (seconds / 60n) % 60n, seconds % 60n].slice(0, clockParts);
  const text = `T${parts.map((part) => pad(part, 2)).join(":")}`;
  return fractionDigits === 0 ? text : `${text}.${pad(ticks % ticksPerSecond, fractionDigits)}`;
}

/** Writes a year of at least four characters, as numpy does. */
function yearText(year: number): string {
  const digits = String(Math.abs(year)).padStart(year < 0 ? 3 : 4, "0");
  return year < 0 ? `-${digits}` : digits;
}

function pad(value: number | bigint, digits: number, add = 0n): string {
  return String(BigInt(value) + add).padStart(digits, "0");
}

function floorDivide(value: bigint, divisor: bigint): bigint {
  const quotient = value / divisor;
  return value % divisor < 0n ? quotient - 1n : quotient;
}

const NAMED_ESCAPES: Readonly<Record<number, string>> = { 9: "\\t", 10: "\\n", 13: "\\r", 92: "\\\\" };

/** Writes bytes as Python's `repr` does: `b'abc'`. */
function pythonBytes(bytes: Uint8Array): string {
  const quote = bytes.includes(39) && !bytes.includes(34) ? '"' : "'";
  let text = `b${quote}`;
  for (const byte of bytes) {
    const character = String.fromCharCode(byte);
    const named = NAMED_ESCAPES[byte];
    if (character === quote) text += `\\${quote}`;
    else if (named !== undefined) text += named;
    else if (byte >= 32 && byte < 127) text += character;
    else text += `\\x${byte.toString(16).padStart(2, "0")}`;
  }
  return text + quote;
}

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

const TEXT = new TextDecoder();

/** Formatters of an item's bytes, by the filter's id. */
const FORMATTERS: Readonly<Record<string, (bytes: Uint8Array) => string>> = {
  "vlen-utf8": (bytes) => pythonString(TEXT.decode(bytes)),
  "vlen-bytes": pythonBytes,
};

/** Tells whether {@link formatVlenItems} can format items of this filter. */
export function isVlenFilter(id: string | undefined): id is string {
  return id !== undefined && Object.hasOwn(FORMATTERS, id);
}

/**
 * Formats the first items of a chunk of numcodecs' `vlen-utf8` or `vlen-bytes`: a count, then each item after its length
 * (uint32, little-endian).
 * @param count Maximum of items.
 * @returns Undefined if the bytes end too early.
 */
export function formatVlenItems(id: string, bytes: Uint8Array, count: number): string[] | undefined {
  const format = FORMATTERS[id];
  if (format === undefined || bytes.length < 4) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const items = Math.min(count, view.getUint32(0, true));
  const texts: string[] = [];
  let position = 4;
  for (let index = 0; index < items; index++) {
    if (position + 4 > bytes.length) return undefined;
    const end = position + 4 + view.getUint32(position, true);
    if (end > bytes.length) return undefined;
    texts.push(format(bytes.subarray(position + 4, end)));
    position = end;
  }
  return texts;
}
