import type { Box, GridExtent } from "../../protocol.js";
import { ascending } from "./plane-box.js";

/** A line in the plane: x and y by turns. */
export interface PlaneLine {
  readonly points: Float64Array | Float32Array;
  /** Added to all x. */
  readonly shift?: number;
}

/** A line of a coast: longitudes and latitudes by turns, and its bounds. */
export type CoastLine = GridExtent & PlaneLine;

/** Returns a line with its bounds. */
export function boundedLine(points: PlaneLine["points"]): CoastLine {
  let [west, east, south, north] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let index = 0; index < points.length; index += 2) {
    const [x, y] = [points[index]!, points[index + 1]!];
    [west, east] = [Math.min(west, x), Math.max(east, x)];
    [south, north] = [Math.min(south, y), Math.max(north, y)];
  }
  return { points, west, east, south, north };
}

/** Units of the stored coordinates per degree. */
export const PER_DEGREE = 100;

/**
 * Reads lines of integers of 0.01 degrees: for each line the number of its points, then the differences of longitude and latitude from
 * the point before, in the variable length of LEB128, signs in the lowest bit.
 */
export function decodeCoastline(bytes: Uint8Array): CoastLine[] {
  const lines: CoastLine[] = [];
  let at = 0;
  const read = (): number => {
    let [value, shift] = [0, 0];
    for (;;) {
      const byte = bytes[at++];
      if (byte === undefined)
        throw new RangeError(`expected a coastline, received ${bytes.length} other bytes`);
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
      shift += 7;
    }
  };
  const readSigned = (): number => {
    const value = read();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  };
  while (at < bytes.length) {
    const points = new Float32Array(read() * 2);
    let [x, y] = [0, 0];
    for (let index = 0; index < points.length; index += 2) {
      x += readSigned();
      y += readSigned();
      points.set([x / PER_DEGREE, y / PER_DEGREE], index);
    }
    lines.push(boundedLine(points));
  }
  return lines;
}

/** Returns the lines that a box may show; of lines that go round the globe, each moved by the multiple of 360 degrees. */
export function linesInBox(lines: readonly CoastLine[], box: Box, wraps = true): PlaneLine[] {
  const { left, right, bottom, top } = ascending(box);
  const [first, last] = wraps ? [Math.floor((left - 180) / 360), Math.ceil((right + 180) / 360)] : [0, 0];
  const found: PlaneLine[] = [];
  for (let shift = first * 360; shift <= last * 360; shift += 360) {
    for (const { points, west, east, south, north } of lines) {
      if (north >= bottom && south <= top && east + shift >= left && west + shift <= right)
        found.push({ points, shift });
    }
  }
  return found;
}

/** Lines that are read; undefined until they are, and null while they are read. */
export interface Coasts {
  coarse?: readonly CoastLine[] | null;
  fine?: readonly CoastLine[] | null;
}

/** CSS pixels per degree from which on the coarse coastline looks coarse. */
const FINE_FROM = 4;

/** Reads the coastline that a map of this scale asks for, once. Returns whether there is a new one to draw. */
export async function loadCoast(
  coasts: Coasts,
  urls: Readonly<Record<keyof Coasts, string>>,
  pixelsPerDegree: number,
): Promise<boolean> {
  const kind = pixelsPerDegree > FINE_FROM ? "fine" : "coarse";
  if (coasts[kind] !== undefined) return false;
  coasts[kind] = null;
  const response = await fetch(urls[kind]);
  // A map without its coast is still a map: the request can be seen in the browser's console.
  if (!response.ok) return false;
  coasts[kind] = decodeCoastline(new Uint8Array(await response.arrayBuffer()));
  return true;
}
