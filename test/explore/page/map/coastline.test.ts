import fc from "fast-check";
import t from "tap";
import { coastlineOf } from "../../../../scripts/write-coastlines.js";
import { decodeCoastline, encodeCoastline, linesInBox } from "../../../../src/explore/page/map/coastline.js";
import { effort } from "../../../support/effort.js";

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
  const shifts = (left: number, right: number, bottom = -90, top = 90): number[][] =>
    linesInBox(lines, { left, right, bottom, top }).map(({ line, shift }) => [lines.indexOf(line), shift]);
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
