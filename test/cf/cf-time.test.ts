import { spawnSync } from "node:child_process";
import t from "tap";
import { CALENDARS, cfTimeFormatter } from "../../src/cf/cf-time.js";
import { PYTHON } from "../support/clients/require-client.js";

const SCRIPT = `
import json, sys
import cftime
answers = []
for units, calendar, value in json.load(sys.stdin):
    answers.append(cftime.num2date(value, units, calendar, has_year_zero=True).isoformat())
json.dump(answers, sys.stdout)
`;

const probe = spawnSync(PYTHON, ["-c", "import cftime"]);
const skip = probe.status === 0 ? false : "skipped, because cftime is not there";

t.test("dates are those of cftime, in every calendar", { skip }, async (t) => {
  const cases: [string, string, number][] = [];
  for (const calendar of Object.keys(CALENDARS)) {
    for (const units of [
      "days since 1970-01-01",
      "hours since 1900-01-01 00:00:00.0",
      "seconds since 2000-02-28T12:30:15Z",
      "minutes since 1582-10-01 06:00",
      "days since 0001-01-01 00:00:00",
      "milliseconds since 1999-12-30 23:59:59 +01:30",
    ]) {
      for (const value of [
        0, 1, 59, 60, 365, 366, 1461, 36_524, 100_000, 577_735, 577_736, -1, -400, 10_000_000,
      ]) {
        if (value > 1e6 && /^days/.test(units)) continue;
        cases.push([units, calendar, value]);
      }
    }
  }
  const run = spawnSync(PYTHON, ["-c", SCRIPT], { input: JSON.stringify(cases), encoding: "utf8" });
  t.equal(run.status, 0, run.stderr);
  const answers = JSON.parse(run.stdout) as string[];
  for (const [index, [units, calendar, value]] of cases.entries()) {
    const ours = cfTimeFormatter({ units, calendar })?.(value);
    const theirs = (answers[index] as string).replace(/(\.\d+?)0+$/, "$1");
    if (ours !== theirs) t.equal(ours, theirs, `${value} ${units}, ${calendar}`);
  }
  t.pass(`${cases.length} dates`);
});

t.test("dates become days and the same dates again over centuries", async (t) => {
  for (const [name, calendar] of Object.entries(CALENDARS)) {
    let wrong = 0;
    let previous = "";
    for (let days = -800_000; days < 800_000; days += 13) {
      const date = calendar.dateOf(days);
      if (calendar.daysOf(date) !== days || String(date) === previous) wrong++;
      previous = String(date);
    }
    t.equal(wrong, 0, name);
  }
});

t.test("fractions are times of day, missing values NaT", async (t) => {
  const format = cfTimeFormatter({ units: "days since 1800-01-01", _FillValue: -999, missing_value: 1e20 });
  t.equal(format?.(73_000.1), "1999-11-14T02:24:00");
  t.equal(format?.(0.5), "1800-01-01T12:00:00");
  t.equal(format?.(73_000n), "1999-11-14T00:00:00");
  for (const missing of [-999, -999n, 1e20, Number.NaN, Number.POSITIVE_INFINITY])
    t.equal(format?.(missing), "NaT");
  t.equal(cfTimeFormatter({ units: "seconds since 1970-01-01" })?.(1.25), "1970-01-01T00:00:01.25");
  t.equal(cfTimeFormatter({ units: "days since 1970-01-01" })?.(2n ** 62n), String(2n ** 62n), "no date");
});

t.test("attributes that describe no CF time have no formatter", async (t) => {
  for (const attrs of [
    {},
    { units: "K" },
    { units: "days" },
    { units: "months since 2000-01-01" },
    { units: "days since 2000-13-01" },
    { units: "days since 2001-02-29" },
    { units: "days since yesterday" },
    { units: "constructor since 2000-01-01" },
    { units: "days since 2000-01-01", calendar: "lunar" },
    { units: "days since 2000-01-01", calendar: 7 },
    { units: "days since 2000-01-01", scale_factor: 2 },
    { units: 5 },
  ]) {
    t.equal(cfTimeFormatter(attrs), undefined, JSON.stringify(attrs));
  }
  t.ok(cfTimeFormatter({ units: "days since 2000-02-29", calendar: "gregorian" }));
  t.notOk(cfTimeFormatter({ units: "days since 2000-02-29", calendar: "noleap" }));
  t.ok(cfTimeFormatter({ units: "days since 2000-02-30", calendar: "360_day" }));
});
