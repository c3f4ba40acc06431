import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { feature } from "topojson-client";
import type { GeometryCollection, Topology } from "topojson-specification";

type Place = readonly number[];

/** Outlines of all land by Natural Earth (public domain), as closed lines of longitude and latitude. */
const OUTLINES = readOutlines();

/** Tells for places along a parallel if they are on land. @param lons Degrees east, of any turn. */
export function landAlong(lat: number, lons: readonly number[]): boolean[] {
  const crossings = OUTLINES.flatMap((outline) =>
    outline.flatMap(([x2 = 0, y2 = 0], index) => {
      const [x1 = 0, y1 = 0] = outline.at(index - 1) ?? [];
      return y1 > lat === y2 > lat ? [] : [x1 + ((lat - y1) / (y2 - y1)) * (x2 - x1)];
    }),
  );
  return lons.map((lon) => {
    const east = ((((lon + 180) % 360) + 360) % 360) - 180;
    return [east - 360, east, east + 360].some(
      (place) => crossings.filter((crossing) => crossing < place).length % 2 === 1,
    );
  });
}

function readOutlines(): Place[][] {
  const file = createRequire(import.meta.url).resolve("world-atlas/land-110m.json");
  const topology = JSON.parse(readFileSync(file, "utf8")) as Topology<{ land: GeometryCollection }>;
  return feature(topology, topology.objects.land).features.flatMap(({ geometry }) =>
    geometry.type === "MultiPolygon" ? geometry.coordinates.flat().map(unwrap) : [],
  );
}

/** Continues an outline beyond 180 degrees instead of a jump. The outline of Antarctica, around the pole, is closed along the pole. */
function unwrap(outline: readonly Place[]): Place[] {
  let before = outline[0]?.[0] ?? 0;
  const places = outline.map(([lon = 0, lat = 0]): Place => {
    before += ((((lon - before + 180) % 360) + 360) % 360) - 180;
    return [before, lat];
  });
  const first = places[0]?.[0] ?? 0;
  if (Math.abs(before - first) > 180) places.push([before, -90], [first, -90]);
  const middle = places.reduce((sum, [lon = 0]) => sum + lon, 0) / places.length;
  const turns = Math.round(middle / 360) * 360;
  return places.map(([lon = 0, lat = 0]) => [lon - turns, lat]);
}
