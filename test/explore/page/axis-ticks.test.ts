import t from "tap";
import { CALENDARS, cfTimeFormatter } from "../../../src/cf/cf-time.js";
import { axisTicks, degreesText, degreeTicks, numberTicks } from "../../../src/explore/page/axis-ticks.js";
import { INDEX_AXIS } from "../../../src/explore/protocol.js";

const PLAIN = { isLatitude: false, isLongitude: false };

/** Returns ticks of cells that are counted. */
function dateTicks(
  texts: readonly string[],
  first: number,
  last: number,
  count: number,
  calendar = "standard",
) {
  return axisTicks(
    { ...PLAIN, length: texts.length },
    { ...INDEX_AXIS, texts, calendar },
    first,
    last,
    count,
  );
}

const labels = (ticks: readonly { readonly label: string }[]): string[] => ticks.map(({ label }) => label);

t.test("numbers have as many digits as tell them apart", async (t) => {
  t.strictSame(labels(numberTicks(248, 298, 5)), ["250", "260", "270", "280", "290"]);
  t.strictSame(labels(numberTicks(-0.1, 0.1, 4)), ["-0.10", "-0.05", "0.00", "0.05", "0.10"]);
  t.strictSame(labels(numberTicks(0, 20_000, 2)), ["0", "10,000", "20,000"]);
  t.strictSame(labels(numberTicks(1e-9, 3e-9, 2)), ["1e-9", "2e-9", "3e-9"]);
  t.strictSame(labels(numberTicks(1e10, 3e10, 2)), ["1e+10", "2e+10", "3e+10"]);
});

t.test("degrees have round steps and directions", async (t) => {
  const halves = ["180°", "135°W", "90°W", "45°W", "0°", "45°E", "90°E", "135°E", "180°"];
  t.strictSame(labels(degreeTicks(-180, 180, 8, "longitude")), halves);
  const turned = ["150°W", "120°W", "90°W", "60°W", "30°W"];
  t.strictSame(labels(degreeTicks(183, 347, 8, "longitude")), turned);
  t.strictSame(labels(degreeTicks(-100, 100, 4, "latitude")), ["90°S", "45°S", "0°", "45°N", "90°N"]);
  t.strictSame(labels(degreeTicks(10, 10.5, 3, "latitude")), ["10.0°N", "10.2°N", "10.4°N"]);
  t.equal(degreesText(359.9, "longitude", 1), "0.1°W");
  t.equal(degreesText(-0.001, "longitude", 2), "0°");
});

for (const calendar of Object.keys(CALENDARS)) {
  t.test(`dates of the calendar ${calendar} are labelled at years, months, days and hours`, async (t) => {
    const format = cfTimeFormatter({ units: "hours since 2000-01-01", calendar });
    const texts = Array.from({ length: 4 * 800 }, (_, step) => format?.(step * 6) as string);
    t.strictSame(labels(dateTicks(texts, 0, texts.length - 1, 5, calendar)), [
      "2000",
      "Jul",
      "2001",
      "Jul",
      "2002",
    ]);
    const months = dateTicks(texts, 0, 4 * 350, 12, calendar);
    t.strictSame(labels(months).slice(0, 3), ["2000", "Feb", "Mar"]);
    t.match(texts[months[1]?.value as number], /^2000-02-01T00/);
    t.strictSame(labels(dateTicks(texts, 1, 12, 5, calendar)), ["Jan 2", "Jan 3", "Jan 4"]);
    t.strictSame(labels(dateTicks(texts, 0, 3, 5, calendar)), ["Jan 1", "06:00", "12:00", "18:00"]);
  });
}

t.test("dates may descend, be few, or be single", async (t) => {
  const texts = ["2002-01-01T00:00:00", "2001-01-01T00:00:00", "2000-01-01T00:00:00"];
  t.strictSame(labels(dateTicks(texts, 0, 2, 5)), ["2002", "2001", "2000"]);
  t.strictSame(dateTicks(texts, 1, 1, 5), [{ value: 1, label: "2001-01-01 00:00" }]);
});

t.test("there are never many more ticks than asked for", async (t) => {
  const format = cfTimeFormatter({ units: "days since 1850-01-01", calendar: "noleap" });
  for (const length of [2, 10, 100, 1000, 60_000]) {
    const texts = Array.from({ length }, (_, step) => format?.(step) as string);
    for (const count of [2, 5, 12]) {
      const { length: found } = dateTicks(texts, 0, length - 1, count, "noleap");
      t.ok(found >= 1 && found <= count, `${found} of ${count} for ${length}`);
    }
  }
});

t.test("months tell their years if neither January nor the tick before does", async (t) => {
  const days = ["2000-06-16", "2000-07-16", "2000-08-16", "2001-06-16", "2001-07-16", "2001-08-16"];
  const texts = days.map((day) => `${day}T00:00:00`);
  t.strictSame(labels(dateTicks(texts, 0, 5, 9)), ["Jul", "Jun 2001", "Jul"]);
});

t.test("an axis has ticks by what it measures", async (t) => {
  const texts = ["2000-01-01T00:00:00", "2000-01-02T00:00:00", "2000-01-03T00:00:00"];
  const times = { ...INDEX_AXIS, texts, numbers: Float64Array.of(0, 24, 48), calendar: "standard" };
  t.strictSame(axisTicks({ ...PLAIN, length: 3 }, times, 12, 60, 5), [
    { value: 24, label: "Jan 2" },
    { value: 48, label: "Jan 3" },
  ]);
  t.strictSame(
    axisTicks({ ...PLAIN, length: 3 }, INDEX_AXIS, -0.5, 2.5, 5),
    [0, 1, 2].map((value) => ({ value, label: String(value) })),
  );
  const stations = { ...INDEX_AXIS, texts: ["Potsdam", "Kiel", "Jena"] };
  t.strictSame(labels(axisTicks({ ...PLAIN, length: 3 }, stations, -0.5, 2.5, 2)), ["Potsdam", "Jena"]);
});
