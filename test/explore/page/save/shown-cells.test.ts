import fc from "fast-check";
import t from "tap";
import { cellAxis, createAxis, indexAt } from "../../../../src/explore/axis.js";
import {
  pictureVariable,
  seriesVariable,
  visibleCells,
} from "../../../../src/explore/page/save/shown-cells.js";
import type { AxisValues, VariableDescription } from "../../../../src/explore/protocol.js";
import { parseDataType } from "../../../../src/model/data-type.js";

function valuesOf(numbers: readonly number[], part: Partial<AxisValues> = {}): AxisValues {
  return {
    numbers: Float64Array.from(numbers),
    texts: undefined,
    bounds: undefined,
    units: undefined,
    calendar: undefined,
    ...part,
  };
}

function series(first: number, step: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => first + step * index);
}

const LATITUDES = series(75, -2.5, 25);
const LONGITUDES = series(0, 10, 36);

t.test("a cell is visible if a part of it is", async (t) => {
  const axis = createAxis(25, valuesOf(LATITUDES));
  t.same(visibleCells(axis, 39, 71), [[2, 15]]);
  t.same(visibleCells(axis, 71, 39), [[2, 15]], "in a reversed box too");
  t.same(visibleCells(axis, 68.75, 71.25), [[2, 3]], "an edge is no part");
  t.equal(visibleCells(axis, 0, 90), "all");
  t.same(visibleCells(cellAxis(9), -0.5, 3.2), [[0, 4]]);
  t.same(visibleCells(axis, 80, 85), [[0, 0]], "no cell is visible outside of the data");
});

t.test("longitudes repeat, and a box across the seam shows two runs", async (t) => {
  const axis = createAxis(36, valuesOf(LONGITUDES), { isLongitude: true });
  t.same(visibleCells(axis, -30, 20), [
    [33, 36],
    [0, 3],
  ]);
  t.equal(visibleCells(axis, -180, 180), "all");
  t.same(visibleCells(axis, 366, 384), [[1, 3]]);
  fc.assert(
    fc.property(
      fc.double({ min: -700, max: 700, noNaN: true }),
      fc.double({ min: 1, max: 340, noNaN: true }),
      fc.double({ min: 0.01, max: 0.99, noNaN: true }),
      (left, width, part) => {
        const visible = visibleCells(axis, left, left + width);
        const index = indexAt(axis, left + width * part);
        return (
          visible === "all" ||
          (typeof visible === "object" && visible.some(([begin, end]) => index >= begin && index < end))
        );
      },
    ),
  );
});

const AIR: VariableDescription = {
  path: "model/air",
  name: "air",
  dims: ["time", "lat", "lon"],
  shape: [2, 25, 36],
  chunkShape: [1, 25, 36],
  dataType: parseDataType("<i2"),
  attrs: {},
  packing: { missing: [-1], validMin: -9, validMax: 9, scale: 2, offset: 0, isUnsigned: undefined },
  title: "air",
  units: "K",
  isCoordinate: false,
  isCategorical: false,
  form: "image",
  axes: [
    {
      dim: "time",
      length: 2,
      role: "T",
      coordinate: "model/time",
      isLatitude: false,
      isLongitude: false,
    },
    { dim: "lat", length: 25, role: "Y", coordinate: "model/lat", isLatitude: true, isLongitude: false },
    { dim: "lon", length: 36, role: "X", coordinate: "lon", isLatitude: false, isLongitude: true },
  ],
  plane: { y: 1, x: 2 },
  curvilinear: undefined,
  levels: [],
  problem: undefined,
};

const DATES = ["2013-01-01T00:00:00", "2013-01-01T06:00:00"];
const VALUES = [
  valuesOf([0, 6], { texts: DATES, calendar: "standard" }),
  valuesOf(LATITUDES),
  valuesOf(LONGITUDES),
];
const BOX = { left: 15, right: 45, bottom: 40, top: 60 };

t.test("code reads the visible cells at the step that is shown", async (t) => {
  const { axes, packing } = pictureVariable({
    variable: AIR,
    axes: { x: 2, y: 1 },
    at: [1, 0, 0],
    values: VALUES,
    box: BOX,
    inCells: false,
  });
  t.same(
    axes.map(({ part }) => part),
    [1, [[6, 15]], [[2, 5]]],
  );
  t.same(packing, { missing: [-1], scale: 2, offset: 0 });
  t.same(axes[0]?.coordinate, { dates: DATES });
  t.equal(axes[2]?.coordinate, undefined, "xarray knows no coordinate of another group");
});

t.test("code reads a whole curvilinear grid, and cells of its image", async (t) => {
  const picture = {
    variable: { ...AIR, curvilinear: { latitude: "a", longitude: "b" } },
    axes: { x: 2, y: 1 },
    at: [0, 0, 0],
    values: VALUES,
    box: { left: 1, right: 3, bottom: 5, top: 1 },
  };
  const partsOf = (inCells: boolean) => pictureVariable({ ...picture, inCells }).axes.map(({ part }) => part);
  t.same(partsOf(false), [0, "all", "all"]);
  t.same(partsOf(true), [0, [[1, 6]], [[1, 4]]]);
});

t.test("dates that numpy does not hold, durations and texts are selected by index", async (t) => {
  const coordinateOf = (values: AxisValues) =>
    seriesVariable(AIR, [values], [0, 0, 0], 1).axes[0]?.coordinate;
  t.ok(coordinateOf(valuesOf([0, 6], { texts: DATES, calendar: "proleptic_gregorian" })));
  t.notOk(coordinateOf(valuesOf([0, 6], { texts: DATES, calendar: "noleap" })));
  t.notOk(
    coordinateOf(valuesOf([0, 6], { texts: ["0850-01-01T00:00:00", DATES[0]!], calendar: "standard" })),
  );
  t.notOk(coordinateOf(valuesOf([0, 6], { units: "hours" })));
  t.ok(coordinateOf(valuesOf([0, 6], { units: "m" })));
  t.notOk(coordinateOf(valuesOf([0, 0])), "equal values");
  t.notOk(coordinateOf({ ...valuesOf([]), numbers: undefined, texts: ["a", "b"] }));
});

t.test("code of a series reads one axis whole", async (t) => {
  const { axes } = seriesVariable(AIR, VALUES, [1, 3, 4], 0);
  t.same(
    axes.map(({ part }) => part),
    ["all", 3, 4],
  );
});
