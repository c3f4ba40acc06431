import t from "tap";
import { ZpublishError } from "../../src/errors.js";
import type { JsonObject } from "../../src/json/json-value.js";
import { parseDataType } from "../../src/model/data-type.js";
import { NOT_A_TIME } from "../../src/model/fill-value.js";
import { formatExtent, formatPeriod, readCoverage } from "../../src/pages/coverage.js";
import type { Values } from "../../src/values/values.js";
import { type FakeVariable, fakeSnapshot } from "../support/datasets/fake-snapshot.js";

const LATITUDE = { units: "degrees_north" };
const LONGITUDE = { units: "degrees_east" };
const DAYS = { units: "days since 2023-01-01" };

/** A coordinate with its values. */
interface Given extends Partial<FakeVariable> {
  readonly numbers?: readonly number[];
}

/** Reads these values; times of numpy as integers. */
function readerOf(given: Readonly<Record<string, Given>>): Pick<Values, "read"> {
  return {
    async read(_snapshot, { variable: { name, dataType } }) {
      const { numbers = [] } = given[name]!;
      const isTime = dataType.kind === "M";
      const values = isTime ? BigInt64Array.from(numbers, BigInt) : Float64Array.from(numbers);
      const type = isTime ? dataType : parseDataType("<f8");
      return { shape: [numbers.length], dataType: type, bytes: new Uint8Array(values.buffer), values };
    },
  };
}

/** Returns period and extent as a page shows them. */
async function textsOf(given: Readonly<Record<string, Given>>, attrs: JsonObject = {}) {
  const variables = Object.fromEntries(
    Object.entries(given).map(([name, { numbers = [], dims = [name], ...variable }]) => [
      name,
      { coordinate: true, dims, shape: dims.map(() => numbers.length), ...variable },
    ]),
  );
  const { period, extent } = await readCoverage(fakeSnapshot("x", { attrs, variables }), readerOf(given));
  return [period && formatPeriod(period), extent && formatExtent(extent)];
}

const GRID = (latitudes: readonly number[], longitudes: readonly number[]) => ({
  lat: { attrs: LATITUDE, numbers: latitudes },
  lon: { attrs: LONGITUDE, numbers: longitudes },
});

t.test("the extent is that of the coordinates, whichever way they are counted", async (t) => {
  const every = (step: number, from: number, count: number) =>
    Array.from({ length: count }, (_, index) => from + index * step);
  for (const [longitudes, expected] of [
    [[5, 6, 12], "5°E to 12°E"],
    [[-10.25, -9, 0], "10.25°W to 0°"],
    [every(2.5, 0, 144), "all longitudes"],
    [every(10, -180, 36), "all longitudes"],
    [every(0.25, -179.875, 1440), "all longitudes"],
    [every(2.5, 200, 53), "160°W to 30°W"],
    [every(1, 170, 21), "170°E to 170°W"],
    [[350, 355, 0, 5], "10°W to 5°E"],
    [every(1, 0, 181), "0° to 180°E"],
    [[7], "7°E"],
    [[Number.NaN, 7, 8.5], "7°E to 8.5°E"],
  ] as const)
    t.same(await textsOf(GRID([53, 45], longitudes)), [undefined, `${expected}, 45°N to 53°N`], expected);
  t.same(await textsOf(GRID([-90, 90], [0, 1])), [undefined, "0° to 1°E, 90°S to 90°N"]);
  t.same(await textsOf(GRID([-9e36, 90], [0, 1])), [undefined, undefined], "no latitudes");
  t.same(
    await textsOf({ lat: { attrs: LATITUDE, numbers: [1, 2] } }),
    [undefined, undefined],
    "no longitudes",
  );
  const dims = ["y", "x"];
  const curvilinear = {
    ...{ XLAT: { dims, attrs: LATITUDE, numbers: [40, 41, 42, 43] } },
    ...{ XLONG: { dims, attrs: LONGITUDE, numbers: [7, 9, 6, 8] } },
  };
  t.same(await textsOf(curvilinear), [undefined, "6°E to 9°E, 40°N to 43°N"]);
});

t.test("the period is that of the time axis, else of other times", async (t) => {
  for (const [given, expected] of [
    [{ time: { attrs: DAYS, numbers: [0, 30] } }, "2023-01-01 to 2023-01-31"],
    [{ time: { attrs: DAYS, numbers: [30, 0] } }, "2023-01-01 to 2023-01-31"],
    [{ time: { attrs: DAYS, numbers: [0.5] } }, "2023-01-01 12:00"],
    [{ time: { attrs: DAYS, numbers: [0, 0.75] } }, "2023-01-01 00:00 to 2023-01-01 18:00"],
    [{ t: { attrs: { ...DAYS, calendar: "360_day" }, numbers: [0, 59] } }, "2023-01-01 to 2023-02-30"],
    [{ time: { type: parseDataType("<M8[D]"), numbers: [18_263, 18_262] } }, "2020-01-01 to 2020-01-02"],
    [{ time: { type: parseDataType("<M8[ns]"), numbers: [1.5778368e18, Number(NOT_A_TIME)] } }, "2020-01-01"],
    [{ run: { dims: [], attrs: DAYS, numbers: [1] }, time: { attrs: DAYS, numbers: [3] } }, "2023-01-04"],
    [{ run: { dims: [], attrs: DAYS, numbers: [1] } }, "2023-01-02"],
    [{ time: { attrs: { units: "days" }, numbers: [1] } }, undefined],
    [{ time: { attrs: DAYS, numbers: [] } }, undefined],
  ] as const)
    t.same(await textsOf(given), [expected, undefined], expected ?? "no times");
});

t.test("a calendar that is not the usual one is named", async (t) => {
  for (const calendar of [undefined, "Gregorian", "360_day"] as const) {
    const time = { dims: ["time"], shape: [2], attrs: { ...DAYS, ...(calendar && { calendar }) } };
    const snapshot = fakeSnapshot("x", { variables: { time } });
    const values = readerOf({ time: { numbers: [0, 30] } });
    t.equal((await readCoverage(snapshot, values)).calendar, calendar === "360_day" ? calendar : undefined);
  }
});

t.test("without coordinates, attributes tell period and extent", async (t) => {
  const extent = {
    ...{ geospatial_lon_min: "-5.5", geospatial_lon_max: 355, geospatial_lat_min: 10 },
    geospatial_lat_max: 20,
  };
  const period = { time_coverage_start: "2020-01-01T00:00:00Z", time_coverage_end: "2020-12-31" };
  t.same(await textsOf({}, { ...extent, ...period }), [
    "2020-01-01 to 2020-12-31",
    "all longitudes, 10°N to 20°N",
  ]);
  t.same(await textsOf({}, { ...extent, geospatial_lon_max: "none" }), [undefined, undefined]);
  const known = { ...GRID([1, 2], [3, 4]), time: { attrs: DAYS, numbers: [0] } };
  t.same(await textsOf(known, { ...extent, ...period }), ["2023-01-01", "3°E to 4°E, 1°N to 2°N"]);
});

t.test("a coordinate that cannot be read fails the reading", async (t) => {
  const snapshot = fakeSnapshot("x", { variables: { time: { dims: ["time"], shape: [1], attrs: DAYS } } });
  const read = async () => {
    throw new ZpublishError("source-unreadable", "gone");
  };
  await t.rejects(readCoverage(snapshot, { read }), { code: "source-unreadable" });
});

t.test("little of a long coordinate is read, and none in a codec that nothing knows", async (t) => {
  const boxes: unknown[] = [];
  const values = readerOf({
    ...{ time: { numbers: [0, 400_000] }, lat: { numbers: [1, 2] }, lon: { numbers: [3, 4] } },
  });
  const read: Values["read"] = (snapshot, array, box, options) => {
    boxes.push(box);
    return values.read(snapshot, array, box, options);
  };
  const dims = ["time", "y", "x"];
  const place = { dims, shape: [9, 1, 2], coordinate: true };
  const variables = {
    time: { dims: ["time"], shape: [400_001], attrs: { units: "minutes since 2023-01-01" } },
    ...{ lat: { ...place, attrs: LATITUDE }, lon: { ...place, attrs: LONGITUDE } },
  };
  const { period, extent } = await readCoverage(fakeSnapshot("x", { variables }), { read });
  t.same([period?.[1], extent?.east], ["2023-10-05T18:40:00", 4]);
  const whole = (count: number) => ({ begin: 0, count, step: 1 });
  const first = [whole(1), whole(1), whole(2)];
  t.same(boxes, [[{ begin: 0, count: 2, step: 400_000 }], first, first]);
  const fail = async () => {
    throw new ZpublishError("unsupported", "mystery");
  };
  t.same(await readCoverage(fakeSnapshot("x", { variables }), { read: fail }), {
    ...{ period: undefined, calendar: undefined, extent: undefined },
  });
});
