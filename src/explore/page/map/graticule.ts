import { isInBox, type MapProjection, type Place, visibleDegrees } from "../../../cf/projection.js";
import type { Box, GridExtent } from "../../protocol.js";
import { degreeTicks, type Tick, tickCount } from "../axis-ticks.js";
import type { PlaneLine } from "./coastline.js";
import { projectLine, shortOf } from "./map-projection.js";
import { pointOf, type Size } from "./plane-box.js";

/** The degrees of a line, and where they are written. */
export interface PlaneLabel {
  readonly place: Place;
  readonly label: string;
}

/** Meridians and parallels in the plane of a projection, with labels: below and beside the box, and inside for other lines. */
interface Graticule {
  readonly lines: readonly PlaneLine[];
  /** Meridians, by their places along the lower edge of the box. */
  readonly below: readonly Tick[];
  /** Parallels, by their places along the left edge. */
  readonly beside: readonly Tick[];
  readonly inside: readonly PlaneLabel[];
}

const NOTHING: Graticule = Object.freeze({ lines: [], below: [], beside: [], inside: [] });

/** Straight pieces of a meridian or parallel. */
const PIECES = 60;
/** Meridians that a map round a pole has. */
const ROUND_COUNT = 12;
/** Part of the visible degrees by which lines are longer: these are looked at in places only. */
const BEYOND = 0.03;

let last: { readonly of: MapProjection; readonly box: Box; readonly graticule: Graticule } | undefined;

/** Returns the graticule of a box; the same object while the box is the same. */
export function graticuleOf(projection: MapProjection, box: Box, size: Size): Graticule {
  if (last?.of !== projection || last.box !== box)
    last = { of: projection, box, graticule: createGraticule(projection, box, size) };
  return last.graticule;
}

function createGraticule(projection: MapProjection, box: Box, size: Size): Graticule {
  const seen = visibleDegrees(projection, box);
  if (seen === undefined) return NOTHING;
  const { west, east, south, north } = seen;
  const columns = east - west > 180 ? ROUND_COUNT : tickCount(size.width);
  const meridians = degreeTicks(west, east, columns, "longitude").filter(({ value }) => value < west + 360);
  const parallels = degreeTicks(south, north, tickCount(size.height) + 1, "latitude");
  const lines: PlaneLine[] = [];
  const ticks: [Tick[], Tick[]] = [[], []];
  const others: { readonly line: PlaneLine[]; readonly label: string; readonly side: 0 | 1 }[] = [];
  const add = (side: 0 | 1, { value, label }: Tick): void => {
    const line = projectLine(projection, degreesAlong(side, value, seen), shortOf(box));
    lines.push(...line);
    const edge = side === 0 ? box.bottom : box.left;
    const crossing = crossingsOf(line, 1 - side, edge).find((place) => isInBox(place, box));
    if (crossing === undefined) others.push({ line, label, side });
    else ticks[side].push({ value: side === 0 ? crossing.x : crossing.y, label });
  };
  for (const meridian of meridians) add(0, meridian);
  // A pole is a point.
  for (const parallel of parallels) if (Math.abs(parallel.value) < 90) add(1, parallel);
  for (const each of ticks) each.sort((one, other) => pointOfTick(one) - pointOfTick(other));
  return { lines, below: ticks[0], beside: ticks[1], inside: labelsInside(others, box, size) };

  function pointOfTick({ value }: Tick): number {
    return box.left < box.right ? value : -value;
  }
}

/** Returns longitudes and latitudes by turns along a meridian (0) or parallel (1), as far as it is visible. */
function degreesAlong(side: 0 | 1, value: number, { west, east, south, north }: GridExtent): number[] {
  const [from, to] = side === 0 ? [south, north] : [west, east];
  const more = (to - from) * BEYOND;
  const [low, high] =
    side === 0 ? [Math.max(-90, from - more), Math.min(90, to + more)] : [from - more, to + more];
  return Array.from({ length: PIECES + 1 }, (_, index) => {
    const along = low + ((high - low) * index) / PIECES;
    return side === 0 ? [value, along] : [along, value];
  }).flat();
}

/** Returns the places of a line at which x (0) or y (1) has a value. */
function crossingsOf(line: readonly PlaneLine[], axis: number, value: number): Place[] {
  const places: Place[] = [];
  for (const { points } of line) {
    for (let index = 0; index + 3 < points.length; index += 2) {
      const [before, after] = [points[index + axis]! - value, points[index + axis + 2]! - value];
      if (before * after > 0 || before === after) continue;
      const share = before / (before - after);
      const at = (offset: number) =>
        points[index + offset]! + share * (points[index + offset + 2]! - points[index + offset]!);
      places.push(axis === 0 ? { x: value, y: at(1) } : { x: at(0), y: value });
    }
  }
  return places;
}

/** Pixels between labels, and between them and the edges. */
const ROOM = { x: 48, y: 18 };

/** Finds places for labels of lines that reach neither the lower nor the left edge: at the middle row or column of the box. */
function labelsInside(
  lines: readonly { readonly line: readonly PlaneLine[]; readonly label: string; readonly side: 0 | 1 }[],
  box: Box,
  size: Size,
): PlaneLabel[] {
  const labels: { readonly place: Place; readonly label: string; readonly point: Place }[] = [];
  for (const { line, label, side } of lines) {
    const points = line
      .flatMap((part) => placesOf(part))
      .map((place) => ({ place, point: pointOf(box, size, place) }))
      .filter(
        ({ point: { x, y } }) =>
          x > ROOM.x / 2 && x < size.width - ROOM.x / 2 && y > ROOM.y && y < size.height - ROOM.y,
      );
    const distance = ({ point }: { readonly point: Place }) =>
      side === 0 ? Math.abs(point.y - size.height / 2) : Math.abs(point.x - size.width / 2);
    const nearest = points.sort((one, other) => distance(one) - distance(other))[0];
    const isFree = ({ x, y }: Place) =>
      labels.every(({ point }) => Math.abs(point.x - x) > ROOM.x || Math.abs(point.y - y) > ROOM.y);
    if (nearest !== undefined && isFree(nearest.point)) labels.push({ ...nearest, label });
  }
  return labels;
}

function placesOf({ points }: PlaneLine): Place[] {
  return Array.from({ length: points.length / 2 }, (_, index) => ({
    x: points[2 * index]!,
    y: points[2 * index + 1]!,
  }));
}
