import t from "tap";
import { type Axis, cellAxis, createAxis } from "../../../../src/explore/axis.js";
import { shortPlace } from "../../../../src/explore/page/map/camera.js";
import type { Plane, PlaneAxis } from "../../../../src/explore/page/map/plane-box.js";

t.test("a place is written with as many digits as tell cells apart", async (t) => {
  const x = axisOf([1.25, 3.75, 6.25, 8.75], { isLongitude: true });
  const y = axisOf([50, 50.333333333, 50.666666667]);
  t.same(shortPlace({ x: 4.20435953220436, y: 50.4012345 }, planeOf(2.5, 1 / 3), shown(x, y), false), {
    x: 3.75,
    y: 50.33,
  });
  t.equal(
    shortPlace({ x: -353.9, y: 50 }, planeOf(2.5, 1), shown(x, y), false).x,
    -353.75,
    "on the same turn",
  );
  t.equal(shortPlace({ x: 100.123456, y: 50 }, planeOf(2.5, 1), shown(x, y), false).x, 100.1, "outside");
  const cells = shown(cellAxis(10), cellAxis(10));
  t.same(shortPlace({ x: 3.3, y: 7.7 }, planeOf(1, 1), cells, false), { x: 3, y: 8 });
  t.same(shortPlace({ x: 2.3, y: 0.7 }, planeOf(1, 1), shown(x, y), true), { x: 2, y: 1 });
  const curved = { ...planeOf(0.25, 0.25), isCurved: true };
  t.same(shortPlace({ x: 12.345678, y: -7.654321 }, curved, cells, false), { x: 12.346, y: -7.654 });
});

t.test("a place stays in its cell, however short that is beside the others", async (t) => {
  const edges = [0, 1e-6, 2e-6, 3e-6, 1000];
  const x = axisOf(edges);
  for (const [index, centre] of edges.entries())
    t.equal(shortPlace({ x: centre, y: 0 }, planeOf(250, 1), shown(x, x), false).x, centre, `${index}`);
});

function shown(x: Axis, y: Axis) {
  return { axes: { x: 1, y: 0 }, places: [y, x] };
}

function axisOf(numbers: readonly number[], traits = {}): Axis {
  const values = { texts: undefined, bounds: undefined, units: undefined, calendar: undefined };
  return createAxis(numbers.length, { ...values, numbers: Float64Array.from(numbers) }, traits);
}

function planeOf(wide: number, high: number): Plane {
  const axis = (cell: number): PlaneAxis => ({ low: 0, high: 1, wraps: false, isReversed: false, cell });
  return { x: axis(wide), y: axis(high), aspect: "free", isCurved: false };
}
