import type { Calendar, CalendarDate } from "../../cf/cf-time.js";

/** A labelled place on a time axis. */
export interface DateTick {
  /** Days since day 0 of the calendar. */
  readonly value: number;
  /** One or two lines: the second is the date or year that begins there. */
  readonly label: string;
}

const ISO = /^(-?\d+)-(\d\d)-(\d\d)(?:T(\d\d):(\d\d):(\d\d(?:\.\d+)?))?$/;
const SECONDS_PER_DAY = 86_400;

/** Returns the days since day 0 of the calendar, with their fraction, of an ISO date; NaN if the text is none. */
export function daysOfIso(text: string, calendar: Calendar): number {
  const match = ISO.exec(text);
  if (match === null) return Number.NaN;
  const [year, month, day, hour, minute, second] = match.slice(1).map((part) => Number(part ?? 0)) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  return calendar.daysOf([year, month, day]) + (hour * 3600 + minute * 60 + second) / SECONDS_PER_DAY;
}

/** Distance of ticks: a number of years, months, days or seconds, and how many days that is about. */
export type Step = readonly [unit: "year" | "month" | "day" | "second", count: number, days: number];

const STEPS: readonly Step[] = [
  ...[
    0.001, 0.01, 0.1, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200,
  ].map((count): Step => ["second", count, count / SECONDS_PER_DAY]),
  ...[1, 2, 5, 10].map((count): Step => ["day", count, count]),
  ...[1, 2, 3, 6].map((count): Step => ["month", count, count * 30.4]),
  ...[1, 2, 5].map((count): Step => ["year", count, count * 365]),
];

/** Times at equal distances. */
export interface RoundTimes {
  readonly step: Step;
  /** Days since day 0 of the calendar. */
  readonly positions: readonly number[];
}

/**
 * Returns round times of a calendar.
 * @param low Days since day 0 of the calendar, as `high`.
 * @param maxCount About how many there may be.
 */
export function roundTimes(calendar: Calendar, low: number, high: number, maxCount: number): RoundTimes {
  const least = (high - low) / Math.max(1, maxCount);
  const step = STEPS.find(([, , days]) => days >= least) ?? yearStep(least / 365);
  if (!(high > low) || !Number.isFinite(high - low)) return { step, positions: [] };
  const positions = positionsOf(calendar, step, low, high).filter((each) => each >= low && each <= high);
  return { step, positions };
}

/** Returns ticks at round times of a calendar; see {@link roundTimes}. */
export function dateTicks(calendar: Calendar, low: number, high: number, maxCount: number): DateTick[] {
  const { step, positions } = roundTimes(calendar, low, high, maxCount);
  return positions.map((value, index) => ({
    value,
    label: labelOf(calendar, step, value, positions[index - 1]).join("\n"),
  }));
}

function yearStep(years: number): Step {
  const power = 10 ** Math.floor(Math.log10(years));
  const count = ([1, 2, 5, 10].find((factor) => factor * power >= years) ?? 10) * power;
  return ["year", count, count * 365];
}

function positionsOf(calendar: Calendar, [unit, count]: Step, low: number, high: number): number[] {
  if (unit === "second") {
    const first = Math.ceil((low * SECONDS_PER_DAY) / count);
    const last = Math.floor((high * SECONDS_PER_DAY) / count);
    return range(first, last).map((index) => (index * count) / SECONDS_PER_DAY);
  }
  const [firstYear, firstMonth] = calendar.dateOf(Math.floor(low));
  const [lastYear, lastMonth] = calendar.dateOf(Math.ceil(high));
  if (unit === "year") {
    const years = range(Math.floor(firstYear / count), Math.ceil(lastYear / count));
    return years.map((index) => calendar.daysOf([index * count, 1, 1]));
  }
  const monthCount = unit === "month" ? count : 1;
  const months = range(
    Math.floor((firstYear * 12 + firstMonth - 1) / monthCount),
    Math.ceil((lastYear * 12 + lastMonth - 1) / monthCount),
  ).map((index) => index * monthCount);
  if (unit === "month") return months.map((month) => monthStart(calendar, month));
  return months.flatMap((month) => {
    const begin = monthStart(calendar, month);
    // No tick just before the first of the next month.
    const end = monthStart(calendar, month + 1) - count / 2;
    return range(0, Math.ceil((end - begin) / count) - 1).map((index) => begin + index * count);
  });
}

function monthStart(calendar: Calendar, month: number): number {
  return calendar.daysOf([Math.floor(month / 12), (((month % 12) + 12) % 12) + 1, 1]);
}

/** Returns `06:00`, `Mar 5`, `Mar` or `2013`; then the date or year if the tick before has another one, or there is none. */
function labelOf(
  calendar: Calendar,
  [unit, count]: Step,
  position: number,
  before: number | undefined,
): [own: string, begun?: string] {
  const [date, seconds] = split(calendar, position);
  const [year, month, day] = date;
  if (unit === "year") return [String(year)];
  const previous = before === undefined ? undefined : split(calendar, before)[0];
  if (unit === "second") {
    const isSame = previous?.every((part, index) => part === date[index]) === true;
    return isSame ? [clockText(seconds, count)] : [clockText(seconds, count), dateText(date)];
  }
  const monthName = MONTHS[month - 1] ?? String(month);
  const own = unit === "month" ? monthName : `${monthName} ${day}`;
  return previous?.[0] === year ? [own] : [own, String(year)];
}

/** Returns a label of one line: the date instead of its midnight, the year instead of January, and `Dec 2001` after another year. */
export function shortLabel(
  calendar: Calendar,
  step: Step,
  position: number,
  before: number | undefined,
): string {
  const [[year, month, day], seconds] = split(calendar, position);
  const [own, begun] = labelOf(calendar, step, position, before);
  if (step[0] === "second") return Math.round(seconds * 1000) === 0 ? `${MONTHS[month - 1]} ${day}` : own;
  if (step[0] !== "month") return own;
  if (month === 1) return String(year);
  return before === undefined || begun === undefined ? own : `${own} ${begun}`;
}

const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

/** Returns the date, and the seconds of the day rounded to milliseconds. */
function split(calendar: Calendar, position: number): [CalendarDate, number] {
  // A float of days is no exact second: the last microsecond of a day is the next day's first.
  const milliseconds = Math.round(position * SECONDS_PER_DAY * 1000);
  const day = Math.floor(milliseconds / SECONDS_PER_DAY / 1000);
  return [calendar.dateOf(day), milliseconds / 1000 - day * SECONDS_PER_DAY];
}

function clockText(seconds: number, step: number): string {
  const whole = Math.floor(seconds + 1e-6);
  const clock = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60].map(twoDigits).join(":");
  if (step >= 60) return clock;
  const fraction = step >= 1 ? "" : (seconds - whole).toFixed(3).slice(1).replace(/0+$/, "");
  return `${clock}:${twoDigits(whole % 60)}${fraction === "." ? "" : fraction}`;
}

function dateText([year, month, day]: CalendarDate): string {
  const sign = year < 0 ? "-" : "";
  return `${sign}${String(Math.abs(year)).padStart(4, "0")}-${twoDigits(month)}-${twoDigits(day)}`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}

/** Whole numbers from `first` to `last`. */
function range(first: number, last: number): number[] {
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
}
