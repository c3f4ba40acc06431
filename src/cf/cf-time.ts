import { type JsonObject, toNumber } from "../json/json-value.js";
import { CALENDARS, type Calendar, type CalendarDate } from "./calendar.js";

/** Formats a number of a CF time variable as an ISO date, or `NaT`. */
export type CfTimeFormatter = (value: number | bigint) => string;

const NANOSECONDS_PER_DAY = 86_400_000_000_000n;

/** Nanoseconds by UDUNITS' name of a unit. Months and years have no fixed length, so their times stay numbers. */
const UNITS: Readonly<Record<string, bigint>> = Object.freeze({
  ...named(NANOSECONDS_PER_DAY * 7n, ["week", "weeks"]),
  ...named(NANOSECONDS_PER_DAY, ["day", "days", "d"]),
  ...named(3_600_000_000_000n, ["hour", "hours", "hr", "hrs", "h"]),
  ...named(60_000_000_000n, ["minute", "minutes", "min", "mins"]),
  ...named(1_000_000_000n, ["second", "seconds", "sec", "secs", "s"]),
  ...named(1_000_000n, ["millisecond", "milliseconds", "millisec", "millisecs", "msec", "msecs", "ms"]),
  ...named(1000n, ["microsecond", "microseconds", "microsec", "microsecs", "us"]),
  ...named(1n, ["nanosecond", "nanoseconds", "nanosec", "nanosecs", "ns"]),
});

const SINCE = /^\s*([a-z]+)\s+since\s+(.+?)\s*$/i;
const REFERENCE =
  /^([+-]?\d{1,6})-(\d{1,2})-(\d{1,2})(?:(?:\s+|T)(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,9})\d*)?)?)?)?\s*(Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?)?$/i;

/** Largest number of days that is formatted as a date; further ones are not meant as dates. */
const MAX_DAYS = 1e9;

/** A number line of times, as `units` and `calendar` of a variable tell it. */
export interface CfTimeScale {
  /** Nanoseconds of a unit. */
  readonly unit: bigint;
  /** Nanoseconds of 0 since day 0 of the calendar, which is 1970-01-01 for the calendars of history. */
  readonly reference: bigint;
  readonly calendar: Calendar;
  /** Text of the reference, as it is behind "since". */
  readonly since: string;
}

/**
 * Reads the number line of a time variable from its attributes `units` ("hours since 1900-01-01") and `calendar`, by the CF conventions
 * (section 4.4). Undefined if they describe no time, or a packed one.
 */
export function cfTimeScale(attrs: JsonObject): CfTimeScale | undefined {
  const { units, calendar = "standard" } = attrs;
  if (typeof units !== "string" || typeof calendar !== "string") return undefined;
  if (attrs.scale_factor !== undefined || attrs.add_offset !== undefined) return undefined;
  const name = calendar.toLowerCase();
  const counted = Object.hasOwn(CALENDARS, name) ? CALENDARS[name] : undefined;
  const match = SINCE.exec(units);
  if (counted === undefined || match === null) return undefined;
  const [, unitText = "", since = ""] = match;
  const unitName = unitText.toLowerCase();
  const unit = Object.hasOwn(UNITS, unitName) ? UNITS[unitName] : undefined;
  const reference = parseReference(since, counted);
  if (unit === undefined || reference === undefined) return undefined;
  return { unit, reference, calendar: counted, since };
}

/** Returns nanoseconds since day 0 of the calendar. Floats are rounded to their precision. */
export function cfTimeOf(value: number | bigint, { unit, reference }: CfTimeScale): bigint {
  return reference + (typeof value === "bigint" ? value * unit : durationOf(value, unit));
}

/** Creates the formatter of a time variable. Undefined if its attributes describe no time, or a packed one. */
export function cfTimeFormatter(attrs: JsonObject): CfTimeFormatter | undefined {
  const scale = cfTimeScale(attrs);
  if (scale === undefined) return undefined;
  const missing = [attrs._FillValue, attrs.missing_value].map(toNumber);
  return (value) => {
    if (missing.includes(Number(value)) || !Number.isFinite(Number(value))) return "NaT";
    return isoText(cfTimeOf(value, scale), scale.calendar) ?? String(value);
  };
}

/** Returns nanoseconds since the calendar's day 0; undefined if the text is no date of the calendar. */
function parseReference(text: string, calendar: Calendar): bigint | undefined {
  const match = REFERENCE.exec(text);
  if (match === null) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map((part) => Number(part ?? 0)) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const date: CalendarDate = [year, month, day];
  if (month < 1 || month > 12 || hour > 24 || minute > 59 || second > 60) return undefined;
  const days = calendar.daysOf(date);
  // A day that the calendar does not have is converted to another.
  if (calendar.dateOf(days).some((part, index) => part !== date[index])) return undefined;
  const fraction = BigInt((match[7] ?? "").padEnd(9, "0"));
  const seconds = hour * 3600 + minute * 60 + second - zoneSeconds(match[8]);
  return BigInt(days) * NANOSECONDS_PER_DAY + BigInt(seconds) * 1_000_000_000n + fraction;
}

function zoneSeconds(zone: string | undefined): number {
  const match = /^([+-])(\d{1,2}):?(\d{2})?$/.exec(zone ?? "");
  if (match === null) return 0;
  const seconds = Number(match[2]) * 3600 + Number(match[3] ?? 0) * 60;
  return match[1] === "-" ? -seconds : seconds;
}

/**
 * Returns the nanoseconds of a number of units, rounded to the precision of a float: a tenth of a day is exactly
 * 02:24:00.
 */
function durationOf(value: number, unit: bigint): bigint {
  const whole = Math.trunc(value);
  const exact = BigInt(whole) * unit;
  const rest = (value - whole) * Number(unit);
  const blur = Math.abs(value) * 2 ** -51 * Number(unit);
  const step = blur < 500 ? 1000 : blur < 500_000 ? 1_000_000 : 1_000_000_000;
  return value === whole ? exact : exact + BigInt(Math.round(rest / step)) * BigInt(step);
}

function isoText(time: bigint, calendar: Calendar): string | undefined {
  const remainder = time % NANOSECONDS_PER_DAY;
  const ofDay = remainder < 0n ? remainder + NANOSECONDS_PER_DAY : remainder;
  const days = Number((time - ofDay) / NANOSECONDS_PER_DAY);
  if (Math.abs(days) > MAX_DAYS) return undefined;
  const [year, month, day] = calendar.dateOf(days);
  const seconds = Number(ofDay / 1_000_000_000n);
  const fraction = String(ofDay % 1_000_000_000n)
    .padStart(9, "0")
    .replace(/0+$/, "");
  const sign = year < 0 ? "-" : "";
  const date = `${sign}${pad(Math.abs(year), 4)}-${pad(month, 2)}-${pad(day, 2)}`;
  const clock = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
    .map((part) => pad(part, 2))
    .join(":");
  return `${date}T${clock}${fraction === "" ? "" : `.${fraction}`}`;
}

function pad(value: number, digits: number): string {
  return String(value).padStart(digits, "0");
}

function named(nanoseconds: bigint, names: readonly string[]): Record<string, bigint> {
  return Object.fromEntries(names.map((name) => [name, nanoseconds]));
}
