import fc from "fast-check";
import t from "tap";
import {
  fitBox,
  type Plane,
  panBox,
  placeAt,
  planePixels,
  pointOf,
  wholeBox,
  zoomBox,
} from "../../../../src/explore/page/map/plane-box.js";
import type { Box } from "../../../../src/explore/protocol.js";
import { effort } from "../../../support/effort.js";

const GLOBE: Plane = {
  x: { low: -0.5, high: 359.5, wraps: true, isReversed: false, cell: 1 },
  y: { low: -90, high: 90, wraps: false, isReversed: false, cell: 1 },
  aspect: "degrees",
  isCurved: false,
};
const NORTH: Plane = {
  x: { low: 5, high: 30, wraps: false, isReversed: false, cell: 0.25 },
  y: { low: 55, high: 65, wraps: false, isReversed: false, cell: 0.25 },
  aspect: "degrees",
  isCurved: false,
};
const SECTION: Plane = {
  x: { low: 0, high: 2920, wraps: false, isReversed: false, cell: 1 },
  y: { low: 10, high: 1000, wraps: false, isReversed: true, cell: 50 },
  aspect: "free",
  isCurved: false,
};
const SIZE = { width: 1000, height: 500 };

t.test("a global grid is shown from -180 to 180, whatever its longitudes are", async (t) => {
  t.strictSame(fitBox(GLOBE, wholeBox(GLOBE), SIZE), { left: -180, right: 180, bottom: -90, top: 90 });
});

t.test("a degree of longitude is as long as it is at the latitude of the middle", async (t) => {
  const box = fitBox(NORTH, wholeBox(NORTH), SIZE);
  const [perX, perY] = [SIZE.width / (box.right - box.left), SIZE.height / (box.top - box.bottom)];
  t.ok(Math.abs(perX / perY - Math.cos(Math.PI / 3)) < 1e-9);
  t.ok(box.left <= 5 && box.right >= 30 && box.bottom <= 55 && box.top >= 65, "all is seen");
});

t.test("an axis whose values decrease upwards has the greatest at the bottom", async (t) => {
  t.strictSame(fitBox(SECTION, wholeBox(SECTION), SIZE), { left: 0, right: 2920, bottom: 1000, top: 10 });
});

t.test(
  "zooming keeps the place under the pointer, and ends at some cells and at the whole plane",
  async (t) => {
    const whole = fitBox(SECTION, wholeBox(SECTION), SIZE);
    const place = { x: 500, y: 700 };
    const zoomed = zoomBox(SECTION, whole, SIZE, 0.5, place);
    const [before, after] = [pointOf(whole, SIZE, place), pointOf(zoomed, SIZE, place)];
    t.ok(Math.hypot(before.x - after.x, before.y - after.y) < 1e-6);
    t.ok(zoomed.bottom > zoomed.top, "the direction stays");
    let box: Box = wholeBox(GLOBE);
    for (let count = 0; count < 50; count++) box = zoomBox(GLOBE, box, SIZE, 0.5, { x: 10, y: 50 });
    t.ok(Math.abs(box.top - box.bottom - 3) < 1e-9, "three cells");
    for (let count = 0; count < 50; count++) box = zoomBox(GLOBE, box, SIZE, 2, { x: 10, y: 50 });
    t.ok(box.top - box.bottom <= 225 + 1e-9, "not much more than the globe");
  },
);

t.test(
  "the proportions of a map stay right however it is moved, and its middle stays on the plane",
  async (t) => {
    const move = fc.oneof(
      fc.record({
        factor: fc.double({ min: 0.2, max: 5, noNaN: true }),
        x: fc.integer({ min: 0, max: 1000 }),
        y: fc.integer({ min: 0, max: 500 }),
      }),
      fc.record({
        right: fc.double({ min: -1, max: 1, noNaN: true }),
        up: fc.double({ min: -1, max: 1, noNaN: true }),
      }),
    );
    fc.assert(
      fc.property(fc.constantFrom(GLOBE, NORTH), fc.array(move, { maxLength: 30 }), (plane, moves) => {
        let box = fitBox(plane, wholeBox(plane), SIZE);
        for (const each of moves) {
          box =
            "factor" in each
              ? zoomBox(plane, box, SIZE, each.factor, placeAt(box, SIZE, each))
              : panBox(plane, box, SIZE, each.right, each.up);
          const refitted = fitBox(plane, box, SIZE);
          t.ok(Math.abs(refitted.left - box.left) < 1e-6 && Math.abs(refitted.top - box.top) < 1e-6);
          const middle = (box.bottom + box.top) / 2;
          t.ok(middle >= plane.y.low - 1e-9 && middle <= plane.y.high + 1e-9);
          t.ok(Math.abs((box.left + box.right) / 2) <= 180 + 1e-9);
        }
      }),
      { numRuns: effort(200) },
    );
  },
);

t.test("pixels of the plane are those whose middles lie on it", async (t) => {
  const box = { left: 0, right: 100, bottom: 0, top: 50 };
  const plane: Plane = {
    ...NORTH,
    x: { ...NORTH.x, low: 10, high: 90.26 },
    y: { ...NORTH.y, low: 20, high: 40 },
  };
  t.strictSame(planePixels(plane, box, { width: 1000, height: 500 }), {
    left: 100,
    right: 903,
    top: 100,
    bottom: 300,
  });
  t.strictSame(planePixels({ ...plane, x: GLOBE.x }, box, SIZE).left, 0, "a globe has no edge");
  // The middles of the first and the last row with data are at the poles.
  for (const rounding of [-1e-12, 0, 1e-12]) {
    const around = { left: -180, right: 180, bottom: -105 + rounding, top: 105 + rounding };
    const { top, bottom } = planePixels(GLOBE, around, { width: 360, height: 7 });
    t.strictSame([top, bottom], [1, 6]);
  }
});
