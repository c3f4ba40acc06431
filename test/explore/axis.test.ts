import fc from "fast-check";
import t from "tap";
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
import type { AxisValues } from "../../src/explore/protocol.js";

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
  return {
    numbers: Float64Array.from(numbers),
    texts: undefined,
    bounds: bounds && Float64Array.from(bounds),
    units: undefined,
    calendar: undefined,
  };
}

function range(first: number, step: number, length: number): number[] {
  return Array.from({ length }, (_, index) => first + index * step);
}
