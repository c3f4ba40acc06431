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
export function dateOfProlepticGregorian(days: number): CalendarDate {
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
