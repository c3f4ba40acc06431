import { cfTimeFormatter, datetimeText } from "../cf/cf-time.js";
import type { CfDecoding } from "../cf/decoded-type.js";
import { itemValues } from "../codec/items/item-values.js";
import type { JsonObject, JsonValue } from "../json/json-value.js";
import { pythonFloatText, pythonString, shortestFloat } from "../json/stringify-json.js";
import type { DataType } from "../model/data-type.js";
import { NOT_A_TIME } from "../model/fill-value.js";

/**
 * Formats items as Python writes numbers and texts: `1.5`, `nan`, `True`, `'abc'`; times as ISO dates. Undefined for objects, records,
 * raw bytes, complex numbers, and floats of more than 8 bytes.
 */
export function formatItems(bytes: Uint8Array, dataType: DataType): string[] | undefined {
  const { kind, itemSize, timeUnit = "" } = dataType;
  if (kind === "S")
    return Array.from({ length: Math.floor(bytes.length / Math.max(1, itemSize)) }, (_, index) =>
      bytesText(bytes.subarray(index * itemSize, (index + 1) * itemSize)),
    );
  const format = (value: number | bigint | string): string => {
    if (typeof value === "string") return pythonString(value);
    if (kind === "b") return value === 0 ? "False" : "True";
    if (kind === "f") return floatText(Number(value), itemSize);
    if (kind === "M") return datetimeText(BigInt(value), timeUnit);
    if (kind !== "m") return String(value);
    return value === NOT_A_TIME ? "NaT" : `${value} ${timeUnit}`.trim();
  };
  const values = itemValues(bytes, dataType);
  return values && Array.from<number | bigint | string, string>(values, format);
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
