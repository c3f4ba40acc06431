import { dateOfProlepticGregorian } from "../cf/cf-time.js";
import { isJsonArray, type JsonValue } from "../json/json-value.js";
import { pythonFloatText, pythonString } from "../json/stringify-json.js";
import { type DataType, parseDataType } from "../model/data-type.js";
import { NOT_A_TIME, readHalf, writeHalf } from "../model/fill-value.js";

/**
 * Formats items as numpy prints them one by one: `1.5`, `nan`, `True`, `'abc'`, `2000-01-01T00:00:00`, `(1, 2.5)`.
 * @param bytes Whole items, one after the other.
 * @returns Undefined for objects, and for floats of more than 8 bytes.
 */
export function formatItems(bytes: Uint8Array, dataType: DataType): string[] | undefined {
  const format = formatterOf(dataType);
  return format && readEach(bytes, dataType, format);
}

/** Reads the items of a number type; undefined for other types. 64-bit integers are `bigint`s. */
export function readItemNumbers(bytes: Uint8Array, dataType: DataType): (number | bigint)[] | undefined {
  const read = numberReaderOf(dataType);
  return read && readEach(bytes, dataType, read);
}

/** Reads one item at an offset in bytes. */
type ItemReader<T> = (view: DataView, offset: number) => T;

function readEach<T>(bytes: Uint8Array, { itemSize }: DataType, read: ItemReader<T>): T[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const count = Math.floor(bytes.length / Math.max(1, itemSize));
  return Array.from({ length: count }, (_, index) => read(view, index * itemSize));
}

function formatterOf(dataType: DataType): ItemReader<string> | undefined {
  const { kind, itemSize, byteOrder, timeUnit = "generic" } = dataType;
  const isLittle = byteOrder !== ">";
  switch (kind) {
    case "b":
      return (view, offset) => (view.getUint8(offset) === 0 ? "False" : "True");
    case "i":
    case "u":
    case "f": {
      const read = numberReaderOf(dataType);
      const format = kind === "f" ? (value: number | bigint) => formatFloat(Number(value), itemSize) : String;
      return read && ((view, offset) => format(read(view, offset)));
    }
    case "c":
      return complexFormatterOf(dataType);
    case "S":
      return (view, offset) => pythonBytes(withoutPadding(bytesAt(view, offset, itemSize)));
    case "U":
      return (view, offset) => pythonString(textAt(view, offset, itemSize, isLittle));
    case "M":
    case "m": {
      const format = kind === "M" ? formatDatetime : formatTimedelta;
      return (view, offset) => format(view.getBigInt64(offset, isLittle), timeUnit);
    }
    case "V":
      if (isJsonArray(dataType.zarr)) return structFormatterOf(dataType.zarr);
      return (view, offset) => `b'${Array.from(bytesAt(view, offset, itemSize), hexEscape).join("")}'`;
    case "O":
      return undefined;
  }
}

const NUMBER_READERS: Readonly<
  Record<string, (view: DataView, offset: number, isLittle: boolean) => number | bigint>
> = {
  i1: (view, offset) => view.getInt8(offset),
  u1: (view, offset) => view.getUint8(offset),
  i2: (view, offset, isLittle) => view.getInt16(offset, isLittle),
  u2: (view, offset, isLittle) => view.getUint16(offset, isLittle),
  i4: (view, offset, isLittle) => view.getInt32(offset, isLittle),
  u4: (view, offset, isLittle) => view.getUint32(offset, isLittle),
  i8: (view, offset, isLittle) => view.getBigInt64(offset, isLittle),
  u8: (view, offset, isLittle) => view.getBigUint64(offset, isLittle),
  f2: (view, offset, isLittle) => readHalf(new DataView(view.buffer, view.byteOffset + offset, 2), isLittle),
  f4: (view, offset, isLittle) => view.getFloat32(offset, isLittle),
  f8: (view, offset, isLittle) => view.getFloat64(offset, isLittle),
};

function numberReaderOf(
  dataType: Pick<DataType, "kind" | "itemSize" | "byteOrder">,
): ItemReader<number | bigint> | undefined {
  const read = NUMBER_READERS[`${dataType.kind}${dataType.itemSize}`];
  const isLittle = dataType.byteOrder !== ">";
  return read && ((view, offset) => read(view, offset, isLittle));
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

const half = new DataView(new ArrayBuffer(2));

function roundToHalf(value: number): number {
  writeHalf(half, value, true);
  return readHalf(half, true);
}

/** Rounds to a number of digits, ties to even as numpy does; `toPrecision` rounds ties away from zero. */
function roundToDigits(value: number, digits: number): number {
  const [mantissa, exponent] = value.toExponential(60).split("e") as [string, string];
  const kept = mantissa.slice(0, mantissa.indexOf(".") + digits);
  const isTie = /^50*$/.test(mantissa.slice(kept.length).replace(".", ""));
  const isEven = /[02468]\.?$/.test(kept);
  return Number(isTie && isEven ? `${kept}e${exponent}` : value.toPrecision(digits));
}

/** Formats `(1+2j)`, with parts without `.0` as in Python. */
function complexFormatterOf({ itemSize, byteOrder }: DataType): ItemReader<string> | undefined {
  const partSize = itemSize / 2;
  const read = numberReaderOf({ kind: "f", itemSize: partSize, byteOrder });
  if (read === undefined) return undefined;
  const partText = (value: number | bigint) => formatFloat(Number(value), partSize).replace(/\.0$/, "");
  return (view, offset) => {
    const real = read(view, offset);
    const text = `${partText(read(view, offset + partSize))}j`;
    if (Object.is(real, 0)) return text;
    return `(${partText(real)}${text.startsWith("-") ? "" : "+"}${text})`;
  };
}

function structFormatterOf(fields: readonly JsonValue[]): ItemReader<string> | undefined {
  const formatters: ItemReader<string>[] = [];
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
  [length, ...inner]: readonly number[],
  itemSize: number,
  format: ItemReader<string>,
): string {
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
  return bytes.subarray(0, bytes.findLastIndex((byte) => byte !== 0) + 1);
}

/** Reads UCS-4. Values that are no code point become U+FFFD. */
function textAt(view: DataView, offset: number, itemSize: number, isLittle: boolean): string {
  const codes = Array.from({ length: itemSize / 4 }, (_, index) =>
    view.getUint32(offset + index * 4, isLittle),
  );
  while (codes.at(-1) === 0) codes.pop();
  return codes.map((code) => (code <= 0x10ffff ? String.fromCodePoint(code) : "\ufffd")).join("");
}

const NAMED_ESCAPES: Readonly<Record<number, string>> = { 9: "\\t", 10: "\\n", 13: "\\r", 92: "\\\\" };

/** Writes bytes as Python's `repr` does: `b'abc'`. */
function pythonBytes(bytes: Uint8Array): string {
  const quote = bytes.includes(39) && !bytes.includes(34) ? '"' : "'";
  const escaped = Array.from(bytes, (byte) => {
    const character = String.fromCharCode(byte);
    if (character === quote) return `\\${quote}`;
    return NAMED_ESCAPES[byte] ?? (byte >= 32 && byte < 127 ? character : hexEscape(byte));
  });
  return `b${quote}${escaped.join("")}${quote}`;
}

function hexEscape(byte: number): string {
  return `\\x${byte.toString(16).padStart(2, "0")}`;
}

/** Units of times that divide a day: name, units per day, and characters of `T12:34:56.789…` that are shown. */
const CLOCK_UNITS: Readonly<Record<string, readonly [name: string, perDay: bigint, shown: number]>> = {
  D: ["days", 1n, 0],
  h: ["hours", 24n, 3],
  m: ["minutes", 1_440n, 6],
  s: ["seconds", 86_400n, 9],
  ms: ["milliseconds", 86_400n * 10n ** 3n, 13],
  us: ["microseconds", 86_400n * 10n ** 6n, 16],
  ns: ["nanoseconds", 86_400n * 10n ** 9n, 19],
  ps: ["picoseconds", 86_400n * 10n ** 12n, 22],
  fs: ["femtoseconds", 86_400n * 10n ** 15n, 25],
  as: ["attoseconds", 86_400n * 10n ** 18n, 28],
};
const ATTOSECONDS = 10n ** 18n;

const CALENDAR_UNIT_NAMES: Readonly<Record<string, string>> = { Y: "years", M: "months", W: "weeks" };

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
    return `${yearText(Number(year) + 1970)}-${padded(counted - year * 12n + 1n, 2)}`;
  }
  if (base === "W") return dateText(counted * 7n);
  const clock = CLOCK_UNITS[base];
  if (clock === undefined) return String(value);
  const [, perDay, shown] = clock;
  const days = floorDivide(counted, perDay);
  const attoseconds = (counted - days * perDay) * ((86_400n * ATTOSECONDS) / perDay);
  return dateText(days) + clockText(attoseconds).slice(0, shown);
}

/** Formats a `timedelta64` as numpy does: `5 seconds`. */
function formatTimedelta(value: bigint, unit: string): string {
  if (value === NOT_A_TIME) return "NaT";
  const { base, count } = splitUnit(unit);
  const name = CLOCK_UNITS[base]?.[0] ?? CALENDAR_UNIT_NAMES[base];
  return name === undefined ? String(value) : `${value * count} ${name}`;
}

/** Splits a unit into its base and its count: `25us` is 25 of `us`. */
function splitUnit(unit: string): { readonly base: string; readonly count: bigint } {
  const base = unit.replace(/^\d+/, "");
  return { base, count: BigInt(unit.slice(0, unit.length - base.length) || "1") };
}

function dateText(days: bigint): string {
  const [year, month, day] = dateOfProlepticGregorian(Number(days));
  return `${yearText(year)}-${padded(month, 2)}-${padded(day, 2)}`;
}

function clockText(attoseconds: bigint): string {
  const seconds = attoseconds / ATTOSECONDS;
  const parts = [seconds / 3600n, (seconds / 60n) % 60n, seconds % 60n].map((part) => padded(part, 2));
  return `T${parts.join(":")}.${padded(attoseconds % ATTOSECONDS, 18)}`;
}

/** Writes a year of at least four characters, as numpy does. */
function yearText(year: number): string {
  return year < 0 ? `-${padded(-year, 3)}` : padded(year, 4);
}

function padded(value: number | bigint, digits: number): string {
  return String(value).padStart(digits, "0");
}

function floorDivide(value: bigint, divisor: bigint): bigint {
  const quotient = value / divisor;
  return value % divisor < 0n ? quotient - 1n : quotient;
}

const TEXT = new TextDecoder();

/** Formatters of an item of variable length, by the id of its filter. */
const VLEN_FORMATTERS: ReadonlyMap<string | undefined, (bytes: Uint8Array) => string> = new Map([
  ["vlen-utf8", (bytes: Uint8Array) => pythonString(TEXT.decode(bytes))],
  ["vlen-bytes", pythonBytes],
]);

/** Tells whether {@link formatVlenItems} can format items of this filter. */
export function isVlenFilter(id: string | undefined): id is string {
  return VLEN_FORMATTERS.has(id);
}

/**
 * Formats the first items of a chunk of numcodecs' `vlen-utf8` or `vlen-bytes`: a count, then each item after its length
 * (uint32, little-endian).
 * @param count Maximum of items.
 * @returns Undefined if the bytes end too early.
 */
export function formatVlenItems(id: string, bytes: Uint8Array, count: number): string[] | undefined {
  const format = VLEN_FORMATTERS.get(id);
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
