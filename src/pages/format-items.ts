import { cfTimeFormatter, datetimeText } from "../cf/cf-time.js";
import type { CfDecoding } from "../cf/decoded-type.js";
import type { JsonObject, JsonValue } from "../json/json-value.js";
import { pythonFloatText, pythonString, shortestFloat } from "../json/stringify-json.js";
import type { DataType } from "../model/data-type.js";
import { halfNumbers, NOT_A_TIME } from "../model/fill-value.js";

/** Reads one item at an offset in bytes. */
type ItemReader<T> = (view: DataView, offset: number) => T;

/**
 * Formats items as Python writes numbers and texts: `1.5`, `nan`, `True`, `'abc'`; times as ISO dates. Undefined for objects, records,
 * raw bytes, complex numbers, and floats of more than 8 bytes.
 */
export function formatItems(bytes: Uint8Array, dataType: DataType): string[] | undefined {
  const format = formatterOf(dataType);
  return format && readEach(bytes, dataType, format);
}

function readEach<T>(bytes: Uint8Array, { itemSize }: DataType, read: ItemReader<T>): T[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const count = Math.floor(bytes.length / Math.max(1, itemSize));
  return Array.from({ length: count }, (_, index) => read(view, index * itemSize));
}

function formatterOf(dataType: DataType): ItemReader<string> | undefined {
  const { kind, itemSize, byteOrder, timeUnit = "" } = dataType;
  const isLittle = byteOrder !== ">";
  const read = numberReaderOf(dataType);
  switch (kind) {
    case "b":
      return (view, offset) => (view.getUint8(offset) === 0 ? "False" : "True");
    case "i":
    case "u":
      return read && ((view, offset) => String(read(view, offset)));
    case "f":
      return read && ((view, offset) => floatText(Number(read(view, offset)), itemSize));
    case "S":
      return (view, offset) => bytesText(new Uint8Array(view.buffer, view.byteOffset + offset, itemSize));
    case "U":
      return (view, offset) => pythonString(textAt(view, offset, itemSize, isLittle));
    case "M":
      return (view, offset) => datetimeText(view.getBigInt64(offset, isLittle), timeUnit);
    case "m":
      return (view, offset) => {
        const value = view.getBigInt64(offset, isLittle);
        return value === NOT_A_TIME ? "NaT" : `${value} ${timeUnit}`.trim();
      };
    default:
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
  f2: (view, offset, isLittle) => halfNumbers()[view.getUint16(offset, isLittle)]!,
  f4: (view, offset, isLittle) => view.getFloat32(offset, isLittle),
  f8: (view, offset, isLittle) => view.getFloat64(offset, isLittle),
};

function numberReaderOf({ kind, itemSize, byteOrder }: DataType): ItemReader<number | bigint> | undefined {
  const read = NUMBER_READERS[`${kind}${itemSize}`];
  return read && ((view, offset) => read(view, offset, byteOrder !== ">"));
}

/** Formats decoded numbers as the values that they mean: missing ones as `nan`, times as dates. */
export function formatDecoded(
  values: readonly (number | bigint)[],
  { dtype, time, itemSize }: CfDecoding,
  { units, calendar = "standard" }: JsonObject,
): string[] {
  if (time === "duration") return durationTexts(values.map(Number), units);
  if (time === "date") return values.map(cfTimeFormatter({ units: units ?? null, calendar }) ?? String);
  if (dtype === "bool") return values.map((value) => (Number(value) === 0 ? "False" : "True"));
  return dtype.includes("int")
    ? values.map(String)
    : values.map((value) => floatText(Number(value), itemSize));
}

const DAY_SECONDS = 86_400;
const UNIT_SECONDS: Readonly<Record<string, number>> = {
  ...{ days: DAY_SECONDS, hours: 3_600, minutes: 60, seconds: 1 },
  ...{ milliseconds: 1e-3, microseconds: 1e-6, nanoseconds: 1e-9 },
};

/** Writes durations as days if all are whole, as a clock if all are less than a day, else as both: `1 days 06:00:00`. */
function durationTexts(values: readonly number[], units: JsonValue | undefined): string[] {
  const seconds = values.map((value) => value * (UNIT_SECONDS[String(units)] ?? 1));
  const known = seconds.filter((each) => Number.isFinite(each));
  const hasDays = known.some((each) => each < 0 || each >= DAY_SECONDS);
  const hasClock = known.some((each) => each % DAY_SECONDS !== 0);
  return seconds.map((each) => {
    if (!Number.isFinite(each)) return "NaT";
    const days = Math.floor(each / DAY_SECONDS);
    const parts = [
      ...(hasDays ? [`${days} days`] : []),
      ...(hasClock || !hasDays ? [clockText(each - days * DAY_SECONDS)] : []),
    ];
    return parts.join(days < 0 ? " +" : " ");
  });
}

function clockText(seconds: number): string {
  const [whole = "", digits = ""] = seconds.toFixed(9).split(".");
  const fraction = digits.replace(/0+$/, "");
  const count = Number(whole);
  const clock = [Math.floor(count / 3_600), Math.floor(count / 60) % 60, count % 60];
  const text = clock.map((part) => String(part).padStart(2, "0")).join(":");
  return fraction === "" ? text : `${text}.${fraction}`;
}

function floatText(value: number, itemSize: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  return pythonFloatText(shortestFloat(value, itemSize));
}

/** Writes bytes as Latin-1 text without the zeros that pad them: `b'abc'`. */
function bytesText(bytes: Uint8Array): string {
  const end = bytes.findLastIndex((byte) => byte !== 0) + 1;
  return `b${pythonString(Buffer.from(bytes.buffer, bytes.byteOffset, end).toString("latin1"))}`;
}

/** Reads UCS-4. Values that are no code point become U+FFFD. */
function textAt(view: DataView, offset: number, itemSize: number, isLittle: boolean): string {
  const codes = Array.from({ length: itemSize / 4 }, (_, index) =>
    view.getUint32(offset + index * 4, isLittle),
  );
  while (codes.at(-1) === 0) codes.pop();
  return codes.map((code) => (code <= 0x10ffff ? String.fromCodePoint(code) : "\ufffd")).join("");
}
