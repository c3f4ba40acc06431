import fc from "fast-check";
import t from "tap";
import { coastlineOf, encodeCoastline } from "../../scripts/explore/coastlines.js";
import { colourTable } from "../../src/colour/colour-scales.js";
import { decodeCoastline, linesInBox } from "../../src/explore/page/map/coastline.js";
import { paintFrame, parseColour, tableIndexOf } from "../../src/explore/page/map/frame-painter.js";
import {
  fitBox,
  type MapPlane,
  panBox,
  placeOfPoint,
  planePixels,
  pointOf,
  wholeBox,
  zoomBox,
} from "../../src/explore/page/map/plane-box.js";
import { ABOVE, BELOW, type Box, MISSING } from "../../src/explore/protocol.js";
import { effort } from "../support/effort.js";

t.test("lines come back as they were, to a hundredth of a degree", async (t) => {
  const point = fc.tuple(fc.integer({ min: -18_000, max: 18_000 }), fc.integer({ min: -9000, max: 9000 }));
  const line = fc.array(point, { minLength: 2, maxLength: 300 });
  fc.assert(
    fc.property(fc.array(line, { maxLength: 5 }), (lines) => {
      const degrees = lines.map((each) => each.map(([x, y]) => [x / 100, y / 100]));
      const read = decodeCoastline(encodeCoastline(degrees)).map(({ points }) => [...points]);
      return t.strictSame(
        read,
        degrees.map((each) => [...Float32Array.from(each.flat())]),
      );
    }),
    { numRuns: effort(200) },
  );
});

t.test("other bytes are no endless coastline", async (t) => {
  t.throws(() => decodeCoastline(Uint8Array.of(200)), /expected a coastline/);
});

t.test("Natural Earth's coast has its places, and no cuts along the edges of the map", async (t) => {
  const bytes = await coastlineOf("110m");
  t.ok(bytes.length > 10_000 && bytes.length < 20_000);
  const lines = decodeCoastline(bytes);
  for (const { points } of lines) {
    for (let index = 2; index < points.length; index += 2) {
      const [x1 = 0, y1 = 0, x2 = 0, y2 = 0] = points.subarray(index - 2, index + 2);
      t.notOk(
        (Math.abs(x1) > 179.985 && Math.abs(x2) > 179.985) || (y1 < -89.9 && y2 < -89.9),
        `${x1} ${y1}`,
      );
      t.ok(Math.abs(x1 - x2) < 180);
    }
  }
  const near = (x: number, y: number): boolean =>
    lines.some(({ points }) =>
      points.some(
        (value, index) => index % 2 === 0 && Math.hypot(value - x, (points[index + 1] as number) - y) < 1,
      ),
    );
  t.ok(near(18.4, -34.1), "the Cape of Good Hope");
  t.notOk(near(100, 60), "no coast in the middle of Siberia");
});

t.test("a box sees the lines in it, as often as the globe repeats", async (t) => {
  const lines = decodeCoastline(
    encodeCoastline([
      [
        [10, 10],
        [20, 20],
      ],
      [
        [-170, 0],
        [-160, 5],
      ],
    ]),
  );
  const shifts = (left: number, right: number, bottom = -90, top = 90): (number | undefined)[][] =>
    linesInBox(lines, { left, right, bottom, top }).map(({ points, shift }) => [
      lines.findIndex((line) => line.points === points),
      shift,
    ]);
  t.strictSame(shifts(-180, 180), [
    [0, 0],
    [1, 0],
  ]);
  t.strictSame(shifts(185, 195), [[1, 360]]);
  t.strictSame(shifts(0, 400), [
    [0, 0],
    [0, 360],
    [1, 360],
  ]);
  t.strictSame(shifts(0, 30, -5, 5), []);
});

const GROUND = {
  missing: [1, 1, 1, 255],
  missingStripe: [2, 2, 2, 255],
  unread: [3, 3, 3, 255],
  unreadCheck: [4, 4, 4, 255],
} as const;
const ALL = { left: 0, right: Number.POSITIVE_INFINITY, top: 0, bottom: Number.POSITIVE_INFINITY };

function paint(pixels: number[], width: number, inside = ALL) {
  const target = new Uint32Array(pixels.length);
  const contents = paintFrame(
    Uint8Array.from(pixels),
    width,
    colourTable("viridis"),
    GROUND,
    inside,
    target,
    4,
  );
  const bytes = new Uint8Array(target.buffer);
  return { contents, colours: pixels.map((_, index) => [...bytes.subarray(index * 4, index * 4 + 4)]) };
}

t.test(
  "bytes of the scale take its colours from end to end, and what is beyond has those of the ends",
  async (t) => {
    t.strictSame([1, 2, 253, 254].map(tableIndexOf), [0, 0, 255, 255]);
    t.equal(tableIndexOf(128), 128);
    t.strictSame([" #ff8001", "#fff"].map(parseColour), [
      [255, 128, 1, 255],
      [255, 255, 255, 255],
    ]);
    const { colours, contents } = paint([1, 2, 253, 254], 4);
    const table = colourTable("viridis");
    t.strictSame(colours[1], [...table.subarray(0, 3), 255]);
    t.strictSame(colours[2], [...table.subarray(255 * 3), 255]);
    t.strictSame([colours[0], colours[3]], [colours[1], colours[2]]);
    t.same(
      [BELOW, ABOVE, MISSING].map((byte) => contents.has(byte)),
      [true, true, false],
    );
  },
);

t.test(
  "missing cells are hatched, pixels without data checked, and outside of the grid there is nothing",
  async (t) => {
    const { colours, contents } = paint([0, 0, 0, 0, 255, 255, 255, 255], 8);
    t.strictSame(
      colours.map(([red]) => red),
      [2, 1, 1, 1, 3, 3, 3, 3],
    );
    t.same(
      [BELOW, ABOVE, MISSING].map((byte) => contents.has(byte)),
      [false, false, true],
    );
    const outside = paint([0, 0, 9, 0], 2, { left: 1, right: 2, top: 0, bottom: 1 });
    t.strictSame(
      outside.colours.map(([, , , opacity]) => opacity),
      [0, 255, 255, 0],
    );
    t.equal(paint([0], 1, { ...ALL, left: 1 }).contents.has(MISSING), false);
  },
);

type Side = MapPlane["x"];

function planeOf(x: Partial<Side>, y: Partial<Side>, aspect: MapPlane["aspect"] = "degrees"): MapPlane {
  const side: Side = { low: 0, high: 1, wraps: false, isReversed: false, cell: 1 };
  return { x: { ...side, ...x }, y: { ...side, ...y }, aspect, isCurved: false };
}

const GLOBE = planeOf({ low: -0.5, high: 359.5, wraps: true }, { low: -90, high: 90 });
const NORTH = planeOf({ low: 5, high: 30, cell: 0.25 }, { low: 55, high: 65, cell: 0.25 });
const SECTION = planeOf({ high: 2920 }, { low: 10, high: 1000, isReversed: true, cell: 50 }, "free");
const SIZE = { width: 1000, height: 500 };

t.test(
  "a global grid is shown from -180 to 180, and decreasing values with the greatest below",
  async (t) => {
    t.strictSame(fitBox(GLOBE, wholeBox(GLOBE), SIZE), { left: -180, right: 180, bottom: -90, top: 90 });
    t.strictSame(fitBox(SECTION, wholeBox(SECTION), SIZE), { left: 0, right: 2920, bottom: 1000, top: 10 });
  },
);

t.test("a degree of longitude is as long as it is at the latitude of the middle", async (t) => {
  const box = fitBox(NORTH, wholeBox(NORTH), SIZE);
  const [perX, perY] = [SIZE.width / (box.right - box.left), SIZE.height / (box.top - box.bottom)];
  t.ok(Math.abs(perX / perY - Math.cos(Math.PI / 3)) < 1e-9);
  t.ok(box.left <= 5 && box.right >= 30 && box.bottom <= 55 && box.top >= 65, "all is seen");
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
              ? zoomBox(plane, box, SIZE, each.factor, placeOfPoint(box, SIZE, each))
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
  const plane = planeOf({ low: 10, high: 90.26 }, { low: 20, high: 40 });
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
