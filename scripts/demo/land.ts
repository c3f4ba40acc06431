import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { feature } from "topojson-client";
import type { GeometryCollection, Topology } from "topojson-specification";

/** Outlines of all land by Natural Earth (public domain), as closed lines of longitude, from 180 west, and latitude. */
const OUTLINES = readOutlines();

/** The outline of Antarctica goes around the pole, so that further south there is land and no outline. */
const LAST_OUTLINE = -84.5;

/** Tells for places along a parallel if they are on land. @param lons Degrees east, of any turn. */
export function landAlong(lat: number, lons: readonly number[]): boolean[] {
  if (lat < LAST_OUTLINE) return lons.map(() => true);
  const crossings = OUTLINES.flatMap((outline) =>
    outline.flatMap(([x2 = 0, y2 = 0], index) => {
      const [x1 = 0, y1 = 0] = outline[index - 1] ?? [x2, y2];
      return y1 > lat === y2 > lat ? [] : [x1 + ((lat - y1) / (y2 - y1)) * (x2 - x1)];
    }),
  );
  return lons.map((lon) => {
    const east = ((((lon + 180) % 360) + 360) % 360) - 180;
    return crossings.filter((crossing) => crossing < east).length % 2 === 1;
  });
}

function readOutlines(): readonly (readonly number[])[][] {
  const file = createRequire(import.meta.url).resolve("world-atlas/land-110m.json");
  const topology = JSON.parse(readFileSync(file, "utf8")) as Topology<{ land: GeometryCollection }>;
  return feature(topology, topology.objects.land).features.flatMap(({ geometry }) =>
    geometry.type === "MultiPolygon" ? geometry.coordinates.flat() : [],
  );
}
