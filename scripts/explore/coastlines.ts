import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { feature, mesh } from "topojson-client";
import type { GeometryCollection, Topology } from "topojson-specification";
import { PER_DEGREE } from "../../src/explore/page/map/coastline.js";

type Point = readonly number[];

/** Latitude below which an outline is no coast: the cut along the bottom of the map through Antarctica. */
const LEAST_LATITUDE = -89.9;

/**
 * Returns the coastlines of Natural Earth (public domain), in the form that the explorer reads.
 * @param resolution Scale of the map that they were drawn for: 1 to 110 or 50 million.
 */
export async function coastlineOf(resolution: "110m" | "50m"): Promise<Uint8Array> {
  const topology = await readLand(resolution);
  const { coordinates } = mesh(topology, topology.objects.land);
  return encodeCoastline(coordinates.flatMap(withoutCuts));
}

async function readLand(resolution: "110m" | "50m"): Promise<Topology<{ land: GeometryCollection }>> {
  const file = createRequire(import.meta.url).resolve(`world-atlas/land-${resolution}.json`);
  return JSON.parse(await readFile(file, "utf8")) as Topology<{ land: GeometryCollection }>;
}

/** Returns the outlines of all land by Natural Earth (public domain), as closed lines of longitude and latitude, for the demonstration. */
export async function landOutlines(): Promise<Point[][]> {
  const topology = await readLand("110m");
  return feature(topology, topology.objects.land).features.flatMap(({ geometry }) =>
    geometry.type === "MultiPolygon" ? geometry.coordinates.flat().map(unwrap) : [],
  );
}

/** Splits a line where it follows the edge of the map, which is a cut through land and no coast. */
function withoutCuts(line: readonly Point[]): Point[][] {
  const parts: Point[][] = [];
  let part: Point[] = [];
  for (const [index, point] of line.entries()) {
    const before = line[index - 1];
    if (before !== undefined && isCut(before, point)) {
      parts.push(part);
      part = [];
    }
    part.push(point);
  }
  parts.push(part);
  return parts.filter(({ length }) => length > 1);
}

function isCut([x1 = 0, y1 = 0]: Point, [x2 = 0, y2 = 0]: Point): boolean {
  if (y1 < LEAST_LATITUDE && y2 < LEAST_LATITUDE) return true;
  const isAtEdge = (x: number): boolean => Math.abs(x) > 179.99;
  return (isAtEdge(x1) && isAtEdge(x2)) || Math.abs(x1 - x2) > 180;
}

/** Writes lines as the explorer reads them: differences of integers of 0.01 degrees, in the variable length of LEB128. */
export function encodeCoastline(lines: readonly (readonly (readonly number[])[])[]): Uint8Array {
  const bytes: number[] = [];
  const write = (value: number): void => {
    let rest = value;
    while (rest > 127) {
      bytes.push((rest & 127) | 128);
      rest >>>= 7;
    }
    bytes.push(rest);
  };
  const writeSigned = (value: number): void => write(value < 0 ? -2 * value - 1 : 2 * value);
  for (const line of lines) {
    write(line.length);
    let [x, y] = [0, 0];
    for (const [longitude = 0, latitude = 0] of line) {
      const [nextX, nextY] = [Math.round(longitude * PER_DEGREE), Math.round(latitude * PER_DEGREE)];
      writeSigned(nextX - x);
      writeSigned(nextY - y);
      [x, y] = [nextX, nextY];
    }
  }
  return Uint8Array.from(bytes);
}

/** Continues an outline beyond 180 degrees instead of a jump. The outline of Antarctica, around the pole, is closed along the pole. */
function unwrap(outline: readonly Point[]): Point[] {
  let before = outline[0]?.[0] ?? 0;
  const places = outline.map(([lon = 0, lat = 0]): Point => {
    before += ((((lon - before + 180) % 360) + 360) % 360) - 180;
    return [before, lat];
  });
  const first = places[0]?.[0] ?? 0;
  if (Math.abs(before - first) > 180) places.push([before, -90], [first, -90]);
  const middle = places.reduce((sum, [lon = 0]) => sum + lon, 0) / places.length;
  const turns = Math.round(middle / 360) * 360;
  return places.map(([lon = 0, lat = 0]) => [lon - turns, lat]);
}
