import { readFileSync } from "node:fs";

/** Outlines of all land, as `landOutlines` of `scripts/explore/coastlines.ts` makes them; the build of the explorer writes the file. */
const OUTLINES = JSON.parse(readFileSync(new URL("land.json", import.meta.url), "utf8")) as number[][][];

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
