import fc from "fast-check";
import t from "tap";
import { CALENDARS, type Calendar, cfTimeFormatter } from "../../src/cf/cf-time.js";
import {
  type Axis,
  cellAxis,
  centreOf,
  createAxis,
  dataExtent,
  edgesOf,
  indexAt,
  stepNearest,
} from "../../src/explore/axis.js";
import {
  axisTicks,
  dateTicks as dateTicksBetween,
  daysOfIso,
  degreesText,
  degreeTicks,
  fittingTicks,
  numberTicks,
  powerTicks,
  stepText,
} from "../../src/explore/page/axis-ticks.js";
import { type AxisValues, INDEX_AXIS } from "../../src/explore/protocol.js";
import { axisValues } from "../support/explore/stub-worker.js";

const LONGITUDE = { isLongitude: true };

t.test("cells of any ordered axis are found by their centres and between their edges", async () => {
  const gaps = fc.array(fc.double({ min: 1e-3, max: 1e3, noNaN: true }), { minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(
      gaps,
      fc.double({ min: -1e4, max: 1e4, noNaN: true }),
      fc.boolean(),
      (steps, first, isDown) => {
        let place = first;
        const centres = [place, ...steps.map((gap) => (place += isDown ? -gap : gap))];
        const axis = createAxis(centres.length, valuesOf(centres));
        return (
          axis.isDescending === isDown &&
          centres.every((centre, index) => {
            const [begin, end] = edgesOf(axis, index);
            const inside = (share: number) => indexAt(axis, begin + (end - begin) * share) === index;
            return indexAt(axis, centre) === index && inside(0.01) && inside(0.99);
          })
        );
      },
    ),
  );
});

t.test("nothing is found outside of an axis", async () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 50 }),
      fc.double({ min: 1e-9, max: 1e6, noNaN: true }),
      (length, beyond) => {
        const axes = [
          cellAxis(length),
          createAxis(length, valuesOf(Array.from({ length }, (_, index) => 10 - index))),
        ];
        return axes.every((axis) => {
          const [least, greatest] = dataExtent(axis);
          const past = Math.max(beyond, 1e-9 * Math.abs(greatest) + 1e-9);
          return indexAt(axis, least - past) === -1 && indexAt(axis, greatest + past) === -1;
        });
      },
    ),
  );
});

t.test("a longitude is found wherever it is counted from", async () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 4, max: 720 }),
      fc.double({ min: -180, max: 180, noNaN: true }),
      fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
      fc.integer({ min: -2, max: 2 }),
      fc.boolean(),
      (length, first, share, turns, isDown) => {
        const step = 360 / length;
        const centres = Array.from({ length }, (_, index) => first + (isDown ? -1 : 1) * index * step);
        const axis = createAxis(length, valuesOf(centres), LONGITUDE);
        const index = Math.floor(share * length);
        return axis.isClosed && indexAt(axis, centres[index]! + turns * 360) === index;
      },
    ),
  );
});

t.test(
  "every longitude has a cell if the grid goes round, and those of a region only within it",
  async (t) => {
    for (const first of [0, -180, -177.5, 2.5, 180]) {
      const axis = createAxis(72, valuesOf(range(first, 5, 72)), LONGITUDE);
      for (let longitude = -360; longitude <= 720; longitude += 0.37) {
        const index = indexAt(axis, longitude);
        const distance = Math.abs(((centreOf(axis, index) - longitude + 540) % 360) - 180);
        if (!(distance <= 2.5 + 1e-9) && !(distance >= 357.5 - 1e-9))
          t.fail(`${first}: ${longitude} in ${index}`);
      }
    }
    const region = createAxis(5, valuesOf(range(170, 5, 5)), LONGITUDE);
    t.notOk(region.isClosed);
    t.equal(indexAt(region, -175), 3, "across 180°");
    t.equal(indexAt(region, 185), 3);
    t.equal(indexAt(region, 160), -1);
    t.same(dataExtent(region), [167.5, 192.5], "in one piece");
  },
);

t.test(
  "the gap of a grid that goes round is closed, and a repeated column makes no second turn",
  async (t) => {
    // The last cell ends at 359.9: 0.1 short of the first one.
    const short = createAxis(36, valuesOf(range(5, 9.9971, 36)), LONGITUDE);
    t.ok(short.isClosed);
    t.ok(indexAt(short, 359.95) === 35 || indexAt(short, 359.95) === 0);
    const cyclic = createAxis(73, valuesOf(range(0, 5, 73)), LONGITUDE);
    t.ok(cyclic.isClosed);
    t.equal(indexAt(cyclic, -1), 0, "0 and 360 are both there");
    t.equal(indexAt(cyclic, 357), 71);
    t.equal(indexAt(cyclic, 1), 0);
    const open = createAxis(35, valuesOf(range(0, 10, 35)), LONGITUDE);
    t.notOk(open.isClosed, "a missing cell is a gap");
    t.equal(indexAt(open, 350), -1);
  },
);

t.test("edges", async (t) => {
  const edges = (axis: Axis) => axis.edges && [...axis.edges];
  t.same(
    edges(createAxis(3, valuesOf([0, 1, 4]))),
    [-0.5, 0.5, 2.5, 5.5],
    "midpoints; outer cells are symmetric",
  );
  t.same(edges(createAxis(1, valuesOf([7]))), [6.5, 7.5]);
  t.same(edges(createAxis(2, valuesOf([0, 10], [-1, 2, 2, 20]))), [-1, 2, 20], "bounds");
  t.same(edges(createAxis(2, valuesOf([10, 0], [2, 20, -1, 2]))), [20, 2, -1], "bounds of descending cells");
  t.same(edges(createAxis(2, valuesOf([0, 10], [-1, 2, 3, 20]))), [-5, 5, 15], "bounds with gaps are left");
  t.same(
    edges(createAxis(2, valuesOf([0, 10], [1, 2, 2, 20]))),
    [-5, 5, 15],
    "bounds without their centre, too",
  );
  const poles = createAxis(3, valuesOf([90, 0, -90]), { isLatitude: true });
  t.same(edges(poles), [90, 45, -45, -90], "no cell reaches beyond a pole");
  t.equal(indexAt(poles, 90), 0);
  t.equal(indexAt(poles, -90), 2);
});

t.test("axes without order count cells", async (t) => {
  for (const values of [[1, 1, 1], [1, 3, 2], [1, Number.NaN, 3], [0, 1], []]) {
    const axis = createAxis(3, valuesOf(values));
    t.equal(axis.edges, undefined, `${values}`);
    t.equal(indexAt(axis, 2), 2);
    t.same(dataExtent(axis), [-0.5, 2.5]);
  }
  t.equal(indexAt(cellAxis(0), 0), -1);
  t.equal(indexAt(cellAxis(3), Number.NaN), -1);
  t.equal(indexAt(cellAxis(3), -0.5), 0);
  t.equal(indexAt(cellAxis(3), 2.5), 2, "the last edge is the last cell's");
});

t.test("longitudes that begin again at Greenwich or at the date line go on", async (t) => {
  const greenwich = createAxis(
    4,
    valuesOf([350, 355, 0, 5], [347.5, 352.5, 352.5, 357.5, 357.5, 2.5, 2.5, 7.5]),
    LONGITUDE,
  );
  t.same(dataExtent(greenwich), [347.5, 367.5]);
  t.equal(greenwich.step, 5);
  t.same(
    [-10, 359, 1, 5, 180].map((place) => indexAt(greenwich, place)),
    [0, 2, 2, 3, -1],
  );
  const dateLine = createAxis(4, valuesOf([170, 175, -180, -175]), LONGITUDE);
  t.same(
    [170, 180, -180, -175, 0].map((place) => indexAt(dateLine, place)),
    [0, 2, 2, 3, -1],
  );
  const globe = createAxis(360, valuesOf([...range(180, 1, 180), ...range(0, 1, 180)]), LONGITUDE);
  t.ok(globe.isClosed);
  t.same(
    [-180, -1, 0, 179].map((place) => indexAt(globe, place)),
    [0, 179, 180, 359],
  );
  t.equal(createAxis(4, valuesOf([350, 355, 0, 5])).edges, undefined, "other coordinates do not");
  t.equal(
    createAxis(4, valuesOf([10, 80, 20, 5]), LONGITUDE).edges,
    undefined,
    "unless they are in no order",
  );
});

t.test("a step is found by number, by text, and by the beginning of a date", async (t) => {
  const texts = ["2013-01-01T00:00:00", "2013-01-01T06:00:00", "2013-01-02T00:00:00"];
  const values = { ...valuesOf([0, 6, 24]), texts };
  t.equal(stepNearest(values, 7), 1);
  t.equal(stepNearest(values, 1e9), 2);
  t.equal(stepNearest(values, "2013-01-01T06"), 1);
  t.equal(stepNearest(values, "2013-01-02"), 2);
  t.equal(stepNearest(values, "2013-01-01T05:00:00"), 0, "the last one before");
  t.equal(stepNearest(values, "2000"), 0);
  t.equal(stepNearest(valuesOf([1, 2]), "x"), undefined);
  t.equal(stepNearest({ ...valuesOf([]), texts: [] }, "x"), undefined);
  t.equal(stepNearest(valuesOf([Number.NaN]), 1), undefined);
});

function valuesOf(numbers: readonly number[], bounds?: readonly number[]): AxisValues {
  return axisValues(numbers, { bounds: bounds && Float64Array.from(bounds) });
}

function range(first: number, step: number, length: number): number[] {
  return Array.from({ length }, (_, index) => first + index * step);
}

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
  t.strictSame(labels(numberTicks(1e-9, 3e-9, 2)), ["1×10⁻⁹", "2×10⁻⁹", "3×10⁻⁹"]);
  t.strictSame(labels(numberTicks(1e10, 3e10, 2)), ["1×10¹⁰", "2×10¹⁰", "3×10¹⁰"]);
});

t.test("long numbers have a power of ten, unless that is longer", async (t) => {
  t.strictSame(labels(numberTicks(0, 4e-5, 4)), ["0", "1×10⁻⁵", "2×10⁻⁵", "3×10⁻⁵", "4×10⁻⁵"]);
  t.strictSame(labels(numberTicks(0, 3e6, 3)), ["0", "1×10⁶", "2×10⁶", "3×10⁶"]);
  t.strictSame(labels(numberTicks(0.002, 0.018, 3)), ["0.005", "0.010", "0.015"]);
  t.strictSame(labels(numberTicks(101_300, 101_300.4, 2)), ["101,300.0", "101,300.2", "101,300.4"]);
  t.strictSame(labels(powerTicks(1e-6, 1000, 4)), ["10⁻⁶", "0.001", "1", "1000"]);
  t.strictSame(labels(powerTicks(2e-7, 8e-7, 4)), ["2×10⁻⁷", "4×10⁻⁷", "8×10⁻⁷"]);
});

t.test("metres and pascals are shown in the unit that people use", async (t) => {
  const axis = (units: string, ...numbers: number[]) => ({
    ...INDEX_AXIS,
    numbers: Float64Array.from(numbers),
    units,
  });
  const northing = axis("m", 5_300_000, 5_420_000);
  t.strictSame(axisTicks({ ...PLAIN, length: 2 }, northing, 5_300_000, 5_420_000, 2), [
    { value: 5_300_000, label: "5,300" },
    { value: 5_350_000, label: "5,350" },
    { value: 5_400_000, label: "5,400" },
  ]);
  for (const [values, text] of [
    [northing, "5300 km"],
    [axis("m", 10, 5000), "10 m"],
    [axis("m", 0, 4e-6), "0 µm"],
    [axis("Pa", 85_000, 20_000), "850 hPa"],
    [axis("degree_Celsius", -2), "-2 °C"],
    [axis("degrees", 285), "285°"],
    [axis("kg kg-1", 1.5e-8), "1.5×10⁻⁸ kg kg⁻¹"],
  ] as const)
    t.equal(stepText(values, 0), text);
  t.equal(stepText(axis("degrees_north", -40.5), 0, { isLatitude: true, isLongitude: false }), "40.5°S");
});

t.test("ticks whose labels would overlap are left out", async (t) => {
  const spanOf = ({ value, label }: { value: number; label: string }) =>
    [value, value + 5 * label.length] as const;
  const fitting = (low: number, high: number) =>
    labels(fittingTicks(9, (count) => numberTicks(low, high, count), spanOf));
  t.strictSame(fitting(0, 100), ["0", "20", "40", "60", "80", "100"]);
  t.strictSame(fitting(0, 60), ["0", "20", "40", "60"]);
  t.strictSame(fitting(1000, 1030), ["1,000"], "one remains");
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

const STANDARD = CALENDARS.standard as Calendar;

function dateLabels(begin: string, end: string, count: number, name = "standard"): string[] {
  const calendar = CALENDARS[name] as Calendar;
  return dateTicksBetween(calendar, daysOfIso(begin, calendar), daysOfIso(end, calendar), count).map(
    ({ label }) => label,
  );
}

t.test("ticks are at round years, months, days and hours", async (t) => {
  t.strictSame(dateLabels("1900-06-01", "2013-01-01", 6), ["1920", "1940", "1960", "1980", "2000"]);
  t.strictSame(dateLabels("2013-01-01", "2014-12-31", 6), ["Jan\n2013", "Jul", "Jan\n2014", "Jul"]);
  t.strictSame(dateLabels("2013-02-20", "2013-03-10", 8), ["Feb 21\n2013", "Feb 26", "Mar 1", "Mar 6"]);
  t.strictSame(dateLabels("2013-01-01T18:00:00", "2013-01-02T12:00:00", 4), [
    "18:00\n2013-01-01",
    "00:00\n2013-01-02",
    "06:00",
    "12:00",
  ]);
  t.strictSame(dateLabels("2013-01-01T00:00:00", "2013-01-01T00:00:01", 3), [
    "00:00:00\n2013-01-01",
    "00:00:01",
  ]);
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
        const ticks = dateTicksBetween(CALENDARS[name] as Calendar, low, high, count);
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
