import t from "tap";
import { coastlineOf } from "../../scripts/explore/coastlines.js";
import type { GridProjection } from "../../src/cf/grid-mapping.js";
import { type MapProjection, mapProjectionOf, visibleDegrees } from "../../src/cf/projection.js";
import { createAxis } from "../../src/explore/axis.js";
import { decodeCoastline } from "../../src/explore/page/map/coastline.js";
import { graticuleOf } from "../../src/explore/page/map/graticule.js";
import { degreesAcross, projectedCoast, projectLine } from "../../src/explore/page/map/map-projection.js";
import { degreesOf, type MapPlane } from "../../src/explore/page/map/plane-box.js";
import { readoutOf } from "../../src/explore/page/map/probe-model.js";
import { mapPlaneOf, resolveView } from "../../src/explore/page/resolve-view.js";
import { type Box, EMPTY_VIEW, type VariableDescription } from "../../src/explore/protocol.js";
import { axisValues, describeVariable } from "../support/explore/stub-worker.js";

const of = (definition: string, scale = 1): MapProjection =>
  mapProjectionOf({
    definition: `${definition} +x_0=0 +y_0=0 +a=6371000 +b=6371000`,
    scale,
  }) as MapProjection;

const GEOS = of("+proj=geos +h=35786023 +lon_0=-75 +sweep=x", 35786023);
const ZONE = mapProjectionOf({
  definition: "+proj=tmerc +lat_0=45 +lon_0=9 +k_0=0.9996 +x_0=0 +y_0=0 +datum=WGS84",
  scale: 1,
}) as MapProjection;
const POLAR = of("+proj=stere +lat_0=90 +lat_ts=70 +lon_0=-45", 1000);

/** A plane around the origin. */
function planeOf(projection: MapProjection, halfWidth: number, halfHeight = halfWidth): MapPlane {
  const side = (half: number) => ({
    low: -half,
    high: half,
    cell: half / 100,
    wraps: false,
    isReversed: false,
  });
  return { x: side(halfWidth), y: side(halfHeight), aspect: "equal", isCurved: false, projection };
}

function boxOf({ x, y }: MapPlane) {
  return { left: x.low, right: x.high, bottom: y.low, top: y.high };
}

const PLANES: Readonly<Record<string, MapPlane>> = {
  "a disk seen from space": planeOf(GEOS, 0.152),
  "the Arctic": planeOf(POLAR, 5000),
  "a cone": planeOf(of("+proj=lcc +lat_1=33 +lat_2=45 +lat_0=39 +lon_0=-96"), 3e6),
  "the Pacific in Mercator": planeOf(of("+proj=merc +lon_0=180"), 2e7, 1e7),
  "a sinusoidal globe": planeOf(of("+proj=sinu +lon_0=90"), 2.0015e7, 1.0007e7),
  "a zone of UTM": planeOf(ZONE, 3e5),
  "half of the globe": planeOf(of("+proj=laea +lat_0=10 +lon_0=20"), 9e6),
  "a turned pole": planeOf(of("+proj=ob_tran +o_proj=longlat +o_lon_p=0 +o_lat_p=39.25 +lon_0=18"), 30),
};

t.test("coasts and graticule of any projection have no lines across the map", async (t) => {
  const coast = decodeCoastline(await coastlineOf("110m"));
  for (const [name, plane] of Object.entries(PLANES)) {
    const projection = plane.projection as MapProjection;
    const whole = boxOf(plane);
    for (const box of [whole, { ...whole, left: 3 * whole.left, right: 3 * whole.right }]) check(box);

    function check(box: Box): void {
      const coasts = projectedCoast(projection, plane, coast, box);
      t.ok(coasts.length > 0, `${name} has coasts`);
      const { lines } = graticuleOf(projection, box, { width: 800, height: 600 });
      t.ok(lines.length > 5, `${name} has a graticule`);
      for (const { points } of box === whole ? [...coasts, ...lines] : coasts) {
        for (let index = 0; index + 3 < points.length; index += 2) {
          const [x1, y1, x2, y2] = points.slice(index, index + 4) as unknown as [
            number,
            number,
            number,
            number,
          ];
          const isVisible = (x: number, y: number) =>
            x > box.left && x < box.right && y > box.bottom && y < box.top;
          if (!isVisible(x1, y1) && !isVisible(x2, y2)) continue;
          // The longest straight piece of the coarse coast has eight degrees.
          const share = Math.hypot(x2 - x1, y2 - y1) / (box.top - box.bottom);
          const degrees = degreesAcross(projection, box);
          if (share > Math.max(0.08, 16 / Math.max(1, degrees)))
            t.fail(`${name}: ${[x1, y1, x2, y2].map(Math.round)} is ${share} of the map`);
        }
      }
    }
  }
});

t.test("a canvas that is wider than the grid has coasts up to its edges", async (t) => {
  const coast = decodeCoastline(await coastlineOf("110m"));
  const plane = PLANES["the Arctic"] as MapPlane;
  for (const half of [5000, 9000]) {
    const box = { ...boxOf(plane), left: -half, right: half };
    const xs = projectedCoast(plane.projection!, plane, coast, box).flatMap(({ points }) =>
      Array.from(points).filter((_, index) => index % 2 === 0 && Math.abs(points[index + 1]!) < 5000),
    );
    t.ok(Math.min(...xs) < -0.7 * half, `coasts in the west of ${half}: ${Math.min(...xs)}`);
    t.ok(Math.max(...xs) > 0.7 * half, `coasts in the east of ${half}: ${Math.max(...xs)}`);
  }
});

t.test("coasts near the edge of the Earth are drawn however wide the canvas is", async (t) => {
  const coast = decodeCoastline(await coastlineOf("110m"));
  const [name, plane] = Object.entries(PLANES).find(([, { projection }]) => projection === GEOS)!;
  const box = boxOf(plane);
  const counts = [1, 1.5, 4].map((wide) => {
    const seen = { ...box, left: box.left * wide, right: box.right * wide };
    return projectedCoast(GEOS, plane, coast, seen).reduce((sum, { points }) => sum + points.length, 0);
  });
  t.ok(counts[0]! > 1000, `${name}: ${counts}`);
  t.equal(new Set(counts).size, 1, `${counts}`);
});

t.test("lines end at the limb, and are cut at the seam", async (t) => {
  const equator = Array.from({ length: 361 }, (_, index) => [index - 180, 0]).flat();
  const [limb, ...others] = projectLine(GEOS, equator);
  t.equal(others.length, 0);
  const { points = new Float64Array() } = limb ?? {};
  const ends = [points[0]!, points.at(-2)!];
  // The edge of the Earth is at asin(R / (R + h)).
  const edge = Math.asin(6371000 / (6371000 + 35786023));
  t.ok(
    ends.every((end, index) => Math.abs(end - (index === 0 ? -edge : edge)) < 1e-4),
    `${ends} at ±${edge}`,
  );
  const parallel = projectLine(of("+proj=sinu +lon_0=90"), equator);
  t.same(
    parallel.map(({ points }) => [points[0]! > 0, points.at(-2)! > 0]),
    [
      [true, true],
      [false, true],
    ],
    "in two pieces, about 90° W",
  );
  t.equal(GEOS.toPlane(105, 0), undefined, "the far side");
  t.equal(GEOS.toDegrees(0.152, 0.152), undefined, "space");
});

t.test("a map round a pole shows all longitudes, and labels each line once", async (t) => {
  const arctic = boxOf(PLANES["the Arctic"] as MapPlane);
  t.match(visibleDegrees(POLAR, arctic), { west: -180, east: 180, north: 90 });
  const { below, beside, inside } = graticuleOf(POLAR, arctic, { width: 600, height: 600 });
  t.ok(below.length >= 3 && below.every(({ label }) => /°[EW]?$/.test(label)), JSON.stringify(below));
  const labels = [...below, ...beside, ...inside].map(({ label }) => label);
  t.equal(new Set(labels).size, labels.length);
  t.ok(labels.includes("60°N") || labels.includes("75°N"), `${labels}`);
  const pacific = { left: -1e6, right: 1e6, bottom: -1e6, top: 1e6 };
  const seen = visibleDegrees(of("+proj=merc +lon_0=180"), pacific);
  t.ok(seen && seen.west > 170 && seen.east < 190 && seen.west < seen.east, JSON.stringify(seen));
});

t.test("the plane of a projected grid is its own, and the pointer tells degrees", async (t) => {
  const projection: GridProjection = {
    definition: "+proj=stere +lat_0=90 +lat_ts=70 +lon_0=-45 +a=6378273 +b=6356889.449 +x_0=0 +y_0=0",
    scale: 1000,
  };
  const [x, y] = [-3850, 5850].map((first, index) => ({
    values: axisValues(
      Array.from({ length: 4 }, (_, cell) => first + (index === 0 ? 25 : -25) * cell),
      { units: "km" },
    ),
  }));
  const axis = { isLatitude: false, isLongitude: false, length: 4 };
  const axes = [
    { ...axis, dim: "y", role: "Y" as const, coordinate: "y" },
    { ...axis, dim: "x", role: "X" as const, coordinate: "x" },
  ];
  const variable = describeVariable("ice", {
    dims: ["y", "x"],
    shape: [4, 4],
    axes,
    plane: { y: 0, x: 1 },
    projection,
    units: undefined,
  });
  const planeOfView = (part: Partial<VariableDescription>, view = EMPTY_VIEW) => {
    const resolved = resolveView(view, { ...variable, ...part }, ({ dim }) => {
      const { values } = dim === "y" ? y! : x!;
      return { values, places: createAxis(4, values) };
    })!;
    return { resolved, plane: mapPlaneOf(resolved, resolved.axes!, () => ({})) };
  };
  const { plane, resolved } = planeOfView({});
  t.match(plane, { aspect: "equal", y: { isReversed: false, low: 5762.5, high: 5862.5 } });
  // pyproj: (-3850, 5850) km of EPSG:3411 is 168.350° E, 30.981° N.
  const degrees = degreesOf(plane, { x: -3850, y: 5850 });
  t.ok(degrees && Math.abs(degrees.longitude - 168.35) < 0.02, JSON.stringify(degrees));
  const answer = { kind: "value", cell: [0, 0], x: -3850, y: 5850, value: 1, text: "1" } as const;
  t.equal(readoutOf(resolved, answer, plane).place, "30.98°N 168.35°E y 5850 x -3850");
  t.equal(planeOfView({}, { ...EMPTY_VIEW, asImage: true }).plane.projection, undefined);
  t.equal(planeOfView({}, { ...EMPTY_VIEW, x: "y", y: "x" }).plane.projection, undefined, "swapped axes");
  const unknown = planeOfView({ projection: { definition: "+proj=nothing", scale: 1 } }).plane;
  t.match(unknown, { projection: undefined, aspect: "equal" });
});
