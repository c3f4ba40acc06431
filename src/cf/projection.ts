import proj4 from "proj4";
import type { GridProjection } from "./grid-mapping.js";

/** A place on the Earth, in degrees. */
export type Degrees = Readonly<Record<"longitude" | "latitude", number>>;
/** A place in the plane of a projection. */
export type Place = Readonly<Record<"x" | "y", number>>;
type Box = Readonly<Record<"left" | "right" | "bottom" | "top", number>>;
/** Degrees; east is greater than 180 if the date line is crossed. */
type DegreesExtent = Readonly<Record<"west" | "east" | "south" | "north", number>>;

/** Places of a map's plane in degrees, and the reverse. */
export interface MapProjection {
  /** Returns undefined for a place that the projection does not show, such as the far side of the Earth, or that lies beside a box. */
  readonly toPlane: (longitude: number, latitude: number, within?: Box) => Place | undefined;
  /** Returns undefined for a place of the plane that is not on the Earth. */
  readonly toDegrees: (x: number, y: number) => Degrees | undefined;
}

const known = new Map<string, MapProjection | undefined>();

/** Creates a projection, each once; undefined if proj4 does not know it. */
export function mapProjectionOf({ definition, scale }: GridProjection): MapProjection | undefined {
  const key = `${scale} ${definition}`;
  if (!known.has(key)) known.set(key, createProjection(definition, scale));
  return known.get(key);
}

/** Degrees and parts of the plane's unit by which a place may differ after both ways. */
const ROUND_TRIP = 1e-4;

function createProjection(definition: string, scale: number): MapProjection | undefined {
  let converter: Record<"forward" | "inverse", (place: [number, number]) => [number, number]>;
  try {
    converter = proj4(definition);
  } catch {
    return undefined;
  }
  const convert = (way: "forward" | "inverse", first: number, second: number) => {
    try {
      const [one, other] = converter[way]([first, second]);
      return Number.isFinite(one) && Number.isFinite(other) ? ([one, other] as const) : undefined;
    } catch {
      // proj4 throws for places that a projection does not have.
      return undefined;
    }
  };
  return {
    toPlane(longitude, latitude, within) {
      const found = convert("forward", longitude, latitude);
      if (found === undefined) return undefined;
      const place = { x: found[0] / scale, y: found[1] / scale };
      const back = within === undefined || isInBox(place, within) ? convert("inverse", ...found) : undefined;
      if (back === undefined) return undefined;
      const turn = (back[0] - longitude) / 360;
      // All meridians meet at a pole.
      const east = (turn - Math.round(turn)) * 360 * Math.cos((latitude * Math.PI) / 180);
      if (Math.abs(back[1] - latitude) > ROUND_TRIP || Math.abs(east) > ROUND_TRIP) return undefined;
      return place;
    },
    toDegrees(x, y) {
      const found = convert("inverse", x * scale, y * scale);
      if (found === undefined || Math.abs(found[1]) > 90) return undefined;
      const back = convert("forward", ...found);
      if (back === undefined) return undefined;
      const distance = Math.hypot(back[0] - x * scale, back[1] - y * scale);
      if (distance > ROUND_TRIP * Math.max(1, Math.hypot(x, y) * scale)) return undefined;
      return { longitude: found[0] - 360 * Math.round(found[0] / 360), latitude: found[1] };
    },
  };
}

/** Points along each side of a box at which it is looked at. */
const SAMPLES = 18;

/** Returns which latitudes and longitudes a box shows, these from west to east; undefined if it is beside the Earth. */
export function visibleDegrees(projection: MapProjection, box: Box): DegreesExtent | undefined {
  const found: Degrees[] = [];
  for (let row = 0; row <= SAMPLES; row++) {
    for (let column = 0; column <= SAMPLES; column++) {
      const x = box.left + ((box.right - box.left) * column) / SAMPLES;
      const y = box.bottom + ((box.top - box.bottom) * row) / SAMPLES;
      const degrees = projection.toDegrees(x, y);
      if (degrees !== undefined) found.push(degrees);
    }
  }
  if (found.length === 0) return undefined;
  const latitudes = found.map(({ latitude }) => latitude);
  let [south, north] = [Math.min(...latitudes), Math.max(...latitudes)];
  let [west, east] = westToEast(
    Float64Array.from(found, ({ longitude }) => longitude),
    60,
  );
  for (const pole of [-90, 90]) {
    const place = projection.toPlane(0, pole);
    if (place === undefined || !isInBox(place, box)) continue;
    [west, east] = [-180, 180];
    if (pole > 0) north = 90;
    else south = -90;
  }
  return { south, north, west, east };
}

/**
 * Returns where longitudes from -180 to 180 begin and end: the widest gap between them is what they leave out.
 * @param longitudes Will be sorted. @param leastGap Degrees; those with narrower gaps go round the Earth.
 */
export function westToEast(
  longitudes: Float64Array,
  leastGap: number,
): readonly [west: number, east: number] {
  longitudes.sort();
  let [west, east] = [longitudes[0]!, longitudes.at(-1)!];
  let gap = west + 360 - east;
  for (let index = 1; index < longitudes.length; index++) {
    const width = longitudes[index]! - longitudes[index - 1]!;
    if (width > gap) [west, east, gap] = [longitudes[index]!, longitudes[index - 1]! + 360, width];
  }
  return gap < leastGap ? [-180, 180] : [west, east];
}

/** Whether a place is in a box, whose edges may be the other way round. */
export function isInBox({ x, y }: Place, { left, right, bottom, top }: Box): boolean {
  return (x - left) * (x - right) <= 0 && (y - bottom) * (y - top) <= 0;
}
