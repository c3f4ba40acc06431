import { dateOfProlepticGregorian } from "../../cf/cf-time.js";

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
 * @param unit As in {@link "../../model/data-type.js".DataType.timeUnit}.
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
export function formatTimedelta(value: bigint, unit: string): string {
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
