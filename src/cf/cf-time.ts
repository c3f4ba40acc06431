import { type JsonObject, toNumber } from "../json/json-value.js";
import type { DataType } from "../model/data-type.js";

/** Year, month from 1, day from 1. Years are astronomical: there is a year 0. */
export type CalendarDate = readonly [year: number, month: number, day: number];

/** Conversion between dates and numbers of days. Each calendar has its own day 0, the same one for both directions. */
export interface Calendar {
  readonly daysOf: (date: CalendarDate) => number;
  readonly dateOf: (days: number) => CalendarDate;
}

/** Days before each month of a year of 365 days. */
const MONTH_STARTS = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];

/** First day of the Gregorian calendar, 1582-10-15, in days since 1970-01-01. */
const GREGORIAN_BEGIN = -141427;
const DAYS_PER_ERA = 146_097;

/** Returns days since 1970-01-01, after Howard Hinnant's `days_from_civil`: years begin in March. */
function daysOfProlepticGregorian([year, month, day]: CalendarDate): number {
  const shifted = month <= 2 ? year - 1 : year;
  const era = Math.floor(shifted / 400);
  const yearOfEra = shifted - era * 400;
  const leapDays = Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100);
  return era * DAYS_PER_ERA + yearOfEra * 365 + leapDays + dayOfMarchYear(month, day) - 719_468;
}

/** Returns the date of a number of days since 1970-01-01. */
function dateOfProlepticGregorian(days: number): CalendarDate {
  const shifted = days + 719_468;
  const era = Math.floor(shifted / DAYS_PER_ERA);
  const day = shifted - era * DAYS_PER_ERA;
  const year = Math.floor(
    (day - Math.floor(day / 1460) + Math.floor(day / 36_524) - Math.floor(day / 146_096)) / 365,
  );
  const dayOfYear = day - (365 * year + Math.floor(year / 4) - Math.floor(year / 100));
  return dateInMarchYear(year + era * 400, dayOfYear);
}

/** Returns days since 1970-01-01 of the Gregorian calendar, so that both calendars have the same day 0. */
function daysOfJulian([year, month, day]: CalendarDate): number {
  const shifted = month <= 2 ? year - 1 : year;
  return shifted * 365 + Math.floor(shifted / 4) + dayOfMarchYear(month, day) - 719_470;
}

function dateOfJulian(days: number): CalendarDate {
  const shifted = days + 719_470;
  const era = Math.floor(shifted / 1461);
  const day = shifted - era * 1461;
  const year = Math.min(3, Math.floor(day / 365));
  return dateInMarchYear(era * 4 + year, day - year * 365);
}

function dayOfMarchYear(month: number, day: number): number {
  return Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
}

function dateInMarchYear(year: number, dayOfYear: number): CalendarDate {
  const marchMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const day = dayOfYear - Math.floor((153 * marchMonth + 2) / 5) + 1;
  const month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9;
  return [month <= 2 ? year + 1 : year, month, day];
}

/** Creates a calendar whose years are all alike. */
function fixedCalendar(monthStarts: readonly number[]): Calendar {
  const daysPerYear = monthStarts[12]!;
  return {
    daysOf: ([year, month, day]) => year * daysPerYear + monthStarts[month - 1]! + day - 1,
    dateOf(days) {
      const year = Math.floor(days / daysPerYear);
      const dayOfYear = days - year * daysPerYear;
      let month = 1;
      while (monthStarts[month]! <= dayOfYear) month++;
      return [year, month, dayOfYear - monthStarts[month - 1]! + 1];
    },
  };
}

const PROLEPTIC_GREGORIAN: Calendar = {
  daysOf: daysOfProlepticGregorian,
  dateOf: dateOfProlepticGregorian,
};

/** The standard calendar: Julian until 1582-10-04, Gregorian from the next day on, which is 1582-10-15. */
const STANDARD: Calendar = {
  daysOf(date) {
    const [year, month, day] = date;
    const isGregorian = year * 10_000 + month * 100 + day >= 15_821_015;
    return isGregorian ? daysOfProlepticGregorian(date) : daysOfJulian(date);
  },
  dateOf: (days) => (days >= GREGORIAN_BEGIN ? dateOfProlepticGregorian(days) : dateOfJulian(days)),
};

const NO_LEAP = fixedCalendar(MONTH_STARTS);
const ALL_LEAP = fixedCalendar(MONTH_STARTS.map((start, month) => (month < 2 ? start : start + 1)));
const THIRTY_DAYS = fixedCalendar(Array.from({ length: 13 }, (_, month) => month * 30));

/**
 * Tells whether times in two calendars, counted since their day 0, are the same dates: in one calendar, or if the least of them is behind
 * the Julian days of the standard one.
 */
export function isSameCalendar(a: Calendar, b: Calendar, leastDays: number): boolean {
  const isHistory = (calendar: Calendar) => calendar === STANDARD || calendar === PROLEPTIC_GREGORIAN;
  return a === b || (isHistory(a) && isHistory(b) && leastDays >= GREGORIAN_BEGIN);
}

/** The calendars of the CF conventions (section 4.4.1) by their names. */
export const CALENDARS: Readonly<Record<string, Calendar>> = Object.freeze({
  standard: STANDARD,
  gregorian: STANDARD,
  proleptic_gregorian: PROLEPTIC_GREGORIAN,
  julian: { daysOf: daysOfJulian, dateOf: dateOfJulian },
  noleap: NO_LEAP,
  "365_day": NO_LEAP,
  all_leap: ALL_LEAP,
  "366_day": ALL_LEAP,
  "360_day": THIRTY_DAYS,
});

/** Formats a number of a CF time variable as an ISO date, or `NaT`. */
type CfTimeFormatter = (value: number | bigint) => string;

const NANOSECONDS_PER_DAY = 86_400_000_000_000n;

/** Nanoseconds by UDUNITS' name of a unit. */
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

/** Days of months and years in calendars where all have one length. Elsewhere, times in these units stay numbers. */
const CALENDAR_UNITS = new Map<string, bigint>([
  ["month 360_day", 30n],
  ["common_year noleap", 365n],
  ["common_year 365_day", 365n],
]);

const SINCE = /^\s*([a-z_]+)\s+since\s+(.+?)\s*$/i;
/** A date, with as many parts as are written, and a time zone. */
const DATE_TEXT =
  /^([+-]?\d{1,6})(?:-(\d{1,2})(?:-(\d{1,2})(?:(?:\s+|T)(\d{1,2})(?::?(\d{1,2})(?::?(\d{1,2})(?:\.(\d{0,9})\d*)?)?)?)?)?)?\s*(Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?)?$/i;

/** Largest number of days that is formatted as a date; further ones are not meant as dates. */
const MAX_DAYS = 1e9;

/** A number line of times, as `units` and `calendar` of a variable tell it. */
export interface CfTimeScale {
  /** Nanoseconds of a unit. */
  readonly unit: bigint;
  /** Nanoseconds of 0 since day 0 of the calendar, which is 1970-01-01 for the calendars of history. */
  readonly reference: bigint;
  readonly calendar: Calendar;
  /** Text of the reference, as written after "since". */
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
  const days = CALENDAR_UNITS.get(`${unitName.replace(/s$/, "")} ${name}`);
  const unit = Object.hasOwn(UNITS, unitName) ? UNITS[unitName] : days && days * NANOSECONDS_PER_DAY;
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

const NOT_A_TIME = -(2n ** 63n);

/** Formats a `datetime64` of numpy as ISO text: `NaT` if it is none, and the number with its unit if CF has no such unit. */
export function datetimeText(stored: bigint, timeUnit: string): string {
  if (stored === NOT_A_TIME) return "NaT";
  const { count, unit } = datetimeUnit(timeUnit);
  if (unit === "Y") return String(1970n + stored * count);
  if (unit === "M") {
    const [year, month] = dateOfMonth(stored * count);
    return `${year}-${pad(month, 2)}`;
  }
  const scale = datetimeScale(timeUnit);
  return (
    (scale && isoText(cfTimeOf(scale.countOf(stored), scale), scale.calendar)) ??
    `${stored} ${timeUnit}`.trim()
  );
}

/** A number line of `datetime64`. */
interface DatetimeScale extends CfTimeScale {
  /** Its units as CF writes them. */
  readonly units: string;
  /** Returns the number of these units that a stored number means, of months and years to their first day. */
  readonly countOf: (stored: bigint) => bigint;
}

/** Returns the number line of numpy's `datetime64`; undefined if CF has no such unit. */
export function datetimeScale(timeUnit: string): DatetimeScale | undefined {
  const { count, unit } = datetimeUnit(timeUnit);
  const isLong = unit === "Y" || unit === "M";
  const name = isLong ? "days" : unit === "W" ? "weeks" : unit === "m" ? "minutes" : unit;
  const units = `${name} since 1970-01-01`;
  const scale = cfTimeScale({ units, calendar: "proleptic_gregorian" });
  const months = unit === "Y" ? 12n * count : count;
  const countOf = (stored: bigint) =>
    isLong ? BigInt(daysOfProlepticGregorian(dateOfMonth(stored * months))) : stored * count;
  return scale && { ...scale, units, countOf };
}

/** Names of units of CF, by numpy's. */
const CF_UNITS: Readonly<Record<string, string>> = {
  ...{ D: "days", h: "hours", m: "minutes", s: "seconds" },
  ...{ ms: "milliseconds", us: "microseconds", ns: "nanoseconds" },
};

/** Returns attributes with which integers are the times of a `datetime64` or `timedelta64`; undefined if CF has no such unit, or for other types. */
export function cfTimeAttributes({ kind, timeUnit }: DataType): JsonObject | undefined {
  const unit = CF_UNITS[timeUnit ?? ""];
  if ((kind !== "M" && kind !== "m") || unit === undefined) return undefined;
  const units = kind === "M" ? `${unit} since 1970-01-01` : unit;
  return {
    ...(kind === "M" ? { units, calendar: "proleptic_gregorian" } : { units }),
    // Nanoseconds with a fill value are doubles to xarray, which knows NaT among them without one.
    ...(timeUnit === "ns" ? {} : { _FillValue: NOT_A_TIME }),
  };
}

/** Reads `25us`. */
function datetimeUnit(timeUnit: string): { readonly count: bigint; readonly unit: string } {
  const [, count = "", unit = ""] = /^(\d*)(\w+)$/.exec(timeUnit) ?? [];
  return { count: BigInt(count || 1), unit };
}

/** Returns the first day of a month that is counted since 1970-01. */
function dateOfMonth(months: bigint): CalendarDate {
  const month = Number(((months % 12n) + 12n) % 12n);
  return [1970 + Number((months - BigInt(month)) / 12n), month + 1, 1];
}

/** Returns nanoseconds since the calendar's day 0; undefined if the text is no date of the calendar. */
function parseReference(text: string, calendar: Calendar): bigint | undefined {
  const read = readDate(text, calendar);
  return read && read.count >= 3 ? read.begin : undefined;
}

/** A span of time. Nanoseconds since day 0 of a calendar. */
export interface TimePeriod {
  readonly begin: bigint;
  /** First nanosecond after it. */
  readonly end: bigint;
}

/** Nanoseconds of the last part of a date that is written: of a day, hour, minute, second. */
const PART_LENGTHS = [NANOSECONDS_PER_DAY, 3_600_000_000_000n, 60_000_000_000n, 1_000_000_000n];

/**
 * Returns what a text of ISO 8601 names: `2020`, `2020-01`, `2020-01-01T06:00Z` are a year, a month and a minute, digits of a second are
 * milli-, micro- or nanoseconds. Texts without a time zone are in UTC, as CF's times are. Undefined if the text is no date of the calendar.
 */
export function timePeriod(text: string, calendar: Calendar): TimePeriod | undefined {
  const extended = text.trim().replace(/^(\d{4})(\d\d)(\d\d)(?=T|$)/i, "$1-$2-$3");
  const read = /^[+-]?\d{4}/.test(extended) ? readDate(extended, calendar) : undefined;
  if (read === undefined) return undefined;
  const { date, count, digits, begin } = read;
  const [year, month] = date;
  if (count <= 2) {
    const next: CalendarDate = count === 1 || month === 12 ? [year + 1, 1, 1] : [year, month + 1, 1];
    const days = calendar.daysOf(next) - calendar.daysOf(date);
    return { begin, end: begin + BigInt(days) * NANOSECONDS_PER_DAY };
  }
  const fraction = digits === 0 ? undefined : 1000n ** BigInt(3 - Math.ceil(digits / 3));
  return { begin, end: begin + (fraction ?? PART_LENGTHS[count - 3]!) };
}

function readDate(text: string, calendar: Calendar) {
  const match = DATE_TEXT.exec(text);
  if (match === null) return undefined;
  const parts = match.slice(1, 7);
  const numberOf = (part: number) => Number(parts[part] ?? (part === 1 || part === 2 ? 1 : 0));
  const date: CalendarDate = [numberOf(0), numberOf(1), numberOf(2)];
  const [hour, minute, second] = [numberOf(3), numberOf(4), numberOf(5)];
  if (date[1] < 1 || date[1] > 12 || hour > 24 || minute > 59 || second > 60) return undefined;
  const days = calendar.daysOf(date);
  // A day that the calendar does not have is converted to another.
  if (calendar.dateOf(days).some((part, index) => part !== date[index])) return undefined;
  const fraction = match[7] ?? "";
  const seconds = hour * 3600 + minute * 60 + second - zoneSeconds(match[8]);
  const begin =
    BigInt(days) * NANOSECONDS_PER_DAY + BigInt(seconds) * 1_000_000_000n + BigInt(fraction.padEnd(9, "0"));
  return { date, count: parts.filter((part) => part !== undefined).length, digits: fraction.length, begin };
}

function zoneSeconds(zone: string | undefined): number {
  const match = /^([+-])(\d{1,2}):?(\d{2})?$/.exec(zone ?? "");
  if (match === null) return 0;
  const seconds = Number(match[2]) * 3600 + Number(match[3] ?? 0) * 60;
  return match[1] === "-" ? -seconds : seconds;
}

/** Returns the nanoseconds of a number of units, rounded to the precision of a float: a tenth of a day is exactly 02:24:00. */
function durationOf(value: number, unit: bigint): bigint {
  const whole = Math.trunc(value);
  const exact = BigInt(whole) * unit;
  const rest = (value - whole) * Number(unit);
  const blur = Math.abs(value) * 2 ** -51 * Number(unit);
  const step = blur < 500 ? 1000 : blur < 500_000 ? 1_000_000 : 1_000_000_000;
  return value === whole ? exact : exact + BigInt(Math.round(rest / step)) * BigInt(step);
}

/** Writes nanoseconds since day 0 of a calendar as ISO text; undefined beyond some million years. */
export function isoText(time: bigint, calendar: Calendar): string | undefined {
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
