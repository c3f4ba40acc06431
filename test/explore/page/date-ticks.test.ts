import fc from "fast-check";
import t from "tap";
import { CALENDARS, type Calendar, cfTimeFormatter } from "../../../src/cf/cf-time.js";
import { dateTicks, daysOfIso } from "../../../src/explore/page/axis-ticks.js";

const STANDARD = CALENDARS.standard as Calendar;

function labels(begin: string, end: string, count: number, name = "standard"): string[] {
  const calendar = CALENDARS[name] as Calendar;
  return dateTicks(calendar, daysOfIso(begin, calendar), daysOfIso(end, calendar), count).map(
    ({ label }) => label,
  );
}

t.test("ticks are at round years, months, days and hours", async (t) => {
  t.strictSame(labels("1900-06-01", "2013-01-01", 6), ["1920", "1940", "1960", "1980", "2000"]);
  t.strictSame(labels("2013-01-01", "2014-12-31", 6), ["Jan\n2013", "Jul", "Jan\n2014", "Jul"]);
  t.strictSame(labels("2013-02-20", "2013-03-10", 8), ["Feb 21\n2013", "Feb 26", "Mar 1", "Mar 6"]);
  t.strictSame(labels("2013-01-01T18:00:00", "2013-01-02T12:00:00", 4), [
    "18:00\n2013-01-01",
    "00:00\n2013-01-02",
    "06:00",
    "12:00",
  ]);
  t.strictSame(labels("2013-01-01T00:00:00", "2013-01-01T00:00:01", 3), ["00:00:00\n2013-01-01", "00:00:01"]);
});

t.test("each calendar has its own months", async (t) => {
  t.strictSame(labels("2001-02-27", "2001-03-02", 5, "360_day"), [
    "Feb 27\n2001",
    "Feb 28",
    "Feb 29",
    "Feb 30",
    "Mar 1",
    "Mar 2",
  ]);
  t.strictSame(labels("2004-02-28", "2004-03-02", 3, "noleap"), ["Feb 28\n2004", "Mar 1", "Mar 2"]);
});

t.test("ISO dates of every calendar become days that differ as the numbers do", async (t) => {
  fc.assert(
    fc.property(
      fc.constantFrom(...Object.keys(CALENDARS)),
      fc.double({ min: -200_000, max: 900_000, noNaN: true }),
      (name, hours) => {
        const format = cfTimeFormatter({ units: "hours since 1900-01-01", calendar: name });
        const calendar = CALENDARS[name] as Calendar;
        const days = daysOfIso(format?.(hours) ?? "", calendar) - daysOfIso("1900-01-01T00:00:00", calendar);
        return Math.abs(days - hours / 24) < 1e-7;
      },
    ),
  );
  t.equal(daysOfIso("2013-01-02", STANDARD) - daysOfIso("2013-01-01T12:00:00", STANDARD), 0.5);
  t.ok(Number.isNaN(daysOfIso("NaT", STANDARD)));
});

t.test("ticks lie within the axis, ascend, and are about as many as asked for", async () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...Object.keys(CALENDARS)),
      fc.double({ min: -800_000, max: 800_000, noNaN: true }),
      fc.double({ min: -6, max: 6, noNaN: true }),
      fc.integer({ min: 2, max: 12 }),
      (name, low, power, count) => {
        const high = low + 10 ** power;
        const ticks = dateTicks(CALENDARS[name] as Calendar, low, high, count);
        const positions = ticks.map(({ value }) => value);
        return (
          ticks.length <= count + 3 &&
          positions.every(
            (each, index) => each >= low && each <= high && !(each <= (positions[index - 1] ?? low - 1)),
          )
        );
      },
    ),
  );
});
