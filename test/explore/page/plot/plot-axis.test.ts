import t from "tap";
import {
  cellAt,
  createPlotAxis,
  plotValues,
  zoomedAbout,
} from "../../../../src/explore/page/plot/plot-axis.js";
import type { AxisDescription, AxisValues } from "../../../../src/explore/protocol.js";

function description(dim: string, length: number, role?: AxisDescription["role"]): AxisDescription {
  return { dim, length, role, coordinate: dim, isLatitude: false, isLongitude: false };
}

function values(part: Partial<AxisValues>): AxisValues {
  return {
    numbers: undefined,
    texts: undefined,
    bounds: undefined,
    units: undefined,
    calendar: undefined,
    ...part,
  };
}

t.test("a descending axis is plotted in ascending order, with its values", async (t) => {
  const axis = createPlotAxis(
    description("lat", 3, "Y"),
    values({ numbers: Float64Array.of(75, 72.5, 70), units: "degrees_north" }),
  );
  t.equal(axis.label, "lat [degrees_north]");
  t.strictSame([...axis.positions], [70, 72.5, 75]);
  t.strictSame(plotValues(axis, [1, Number.NaN, 3], false), [3, null, 1]);
  t.equal(cellAt(axis, 0), 2);
  t.notOk(axis.isVertical);
});

t.test("times are days of their calendar", async (t) => {
  const axis = createPlotAxis(
    description("time", 2, "T"),
    values({
      numbers: Float64Array.of(0, 720),
      texts: ["2001-02-30T00:00:00", "2001-03-30T00:00:00"],
      calendar: "360_day",
    }),
  );
  t.equal((axis.positions[1] as number) - (axis.positions[0] as number), 30);
  t.equal(axis.label, "time");
  t.ok(axis.calendar);
});

t.test("heights are upright; depths and pressures point down", async (t) => {
  const numbers = Float64Array.of(1, 2);
  const depth = createPlotAxis(description("depth", 2, "Z"), values({ numbers, units: "m" }), {
    positive: "down",
  });
  t.strictSame([depth.isVertical, depth.isDownward], [true, true]);
  const height = createPlotAxis(description("height", 2, "Z"), values({ numbers, units: "m" }));
  t.strictSame([height.isVertical, height.isDownward], [true, false]);
  t.ok(createPlotAxis(description("plev", 2, "Z"), values({ numbers, units: "hPa" })).isDownward);
  const up = createPlotAxis(description("plev", 2, "Z"), values({ numbers, units: "hPa" }), {
    positive: "up",
  });
  t.notOk(up.isDownward);
});

t.test("values without order, with gaps, or as texts are plotted by index", async (t) => {
  for (const numbers of [Float64Array.of(1, 3, 2), Float64Array.of(1, Number.NaN, 2)])
    t.strictSame([...createPlotAxis(description("x", 3), values({ numbers })).positions], [0, 1, 2]);
  const named = createPlotAxis(description("x", 2), values({ texts: ["a", "b"] }));
  t.strictSame(named.names, ["a", "b"]);
  t.strictSame([...named.positions], [0, 1]);
});

t.test("values that have no logarithm are gaps", async (t) => {
  const axis = createPlotAxis(description("x", 4), values({}));
  t.strictSame(plotValues(axis, [1, 0, -1, Number.POSITIVE_INFINITY], true), [1, null, null, null]);
  t.strictSame(plotValues(axis, [1, 0, -1], false), [1, 0, -1, null], "what is not read yet is a gap");
});

t.test("an axis is enlarged about the value that is read, and within its ends", async (t) => {
  const positions = Float64Array.of(0, 2, 4, 10);
  t.same(zoomedAbout(positions, undefined, undefined, 0.5), { low: 2.5, high: 7.5 });
  t.same(zoomedAbout(positions, undefined, 2, 0.5), { low: 1.5, high: 6.5 });
  t.same(zoomedAbout(positions, { low: 0, high: 5 }, 3, 0.5), { low: 7.5, high: 10 });
  t.equal(zoomedAbout(positions, { low: 0, high: 5 }, 0, 2), undefined, "all of it");
});
