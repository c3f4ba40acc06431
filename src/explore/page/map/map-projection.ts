import { type MapProjection, type Place, visibleDegrees } from "../../../cf/projection.js";
import type { Box } from "../../protocol.js";
import { boundedLine, type CoastLine, linesInBox, type PlaneLine } from "./coastline.js";
import { ascending, centreOfBox, type MapPlane, wholeBox } from "./plane-box.js";

/** A line on the Earth: longitudes and latitudes by turns. */
type EarthLine = ArrayLike<number>;

/** Part of the length of a piece by which its middle may be beside the straight line: pieces across a seam go the other way round. */
const MOST_BEND = 0.2;
/** Halvings by which the end of a line at the edge of the map is found. */
const HALVINGS = 8;

/**
 * Projects a line, and cuts it where it leaves the map, or jumps to the other side of it.
 * @param short Length in the plane of pieces that need not be looked at: they cross no map.
 */
export function projectLine(projection: MapProjection, line: EarthLine, short = 0): PlaneLine[] {
  const parts: number[][] = [];
  let part: number[] | undefined;
  const placeAt = (index: number, share: number): Place | undefined => {
    const at = (offset: number) => line[index + offset]! * (1 - share) + line[index + 2 + offset]! * share;
    return share === 0
      ? projection.toPlane(line[index]!, line[index + 1]!)
      : projection.toPlane(at(0), at(1));
  };
  /** Returns the last place on the map from an end of a piece that is on it. */
  const edgeOf = (index: number, inside: number): Place => {
    let [on, off] = [inside, 1 - inside];
    for (let step = 0; step < HALVINGS; step++) {
      const middle = (on + off) / 2;
      if (placeAt(index, middle) === undefined) off = middle;
      else on = middle;
    }
    return placeAt(index, on)!;
  };
  const begin = ({ x, y }: Place): void => {
    part = [x, y];
    parts.push(part);
  };
  let before = placeAt(0, 0);
  if (before !== undefined) begin(before);
  for (let index = 0; index + 3 < line.length; index += 2) {
    const next = projection.toPlane(line[index + 2]!, line[index + 3]!);
    if (before !== undefined && next !== undefined) {
      const isShort = Math.hypot(next.x - before.x, next.y - before.y) <= short;
      if (isShort || isStraight(before, next, placeAt(index, 0.5))) part?.push(next.x, next.y);
      else begin(next);
    } else if (before !== undefined) {
      const edge = edgeOf(index, 0);
      part?.push(edge.x, edge.y);
    } else if (next !== undefined) {
      begin(edgeOf(index, 1));
      part?.push(next.x, next.y);
    }
    before = next;
  }
  return parts.filter(({ length }) => length > 2).map((each) => ({ points: Float64Array.from(each) }));
}

/** Whether a piece is about straight: one across the seam, or behind the Earth, has its middle elsewhere. */
function isStraight(from: Place, to: Place, middle: Place | undefined): boolean {
  if (middle === undefined) return false;
  const beside = Math.hypot((from.x + to.x) / 2 - middle.x, (from.y + to.y) / 2 - middle.y);
  return beside <= MOST_BEND * Math.hypot(to.x - from.x, to.y - from.y) || beside === 0;
}

/** Returns how many degrees the height of a box is about its middle; those of latitude if it is one of degrees. */
export function degreesAcross(projection: MapProjection | undefined, box: Box): number {
  const height = Math.abs(box.top - box.bottom);
  const { x, y } = centreOfBox(box);
  const step = height / 100;
  const [below, above] = [projection?.toDegrees(x, y - step), projection?.toDegrees(x, y + step)];
  if (projection === undefined) return height;
  if (below === undefined || above === undefined) return 180;
  const turn = (above.longitude - below.longitude) / 360;
  const east = (turn - Math.round(turn)) * 360 * Math.cos((above.latitude * Math.PI) / 180);
  return Math.hypot(above.latitude - below.latitude, east) * 50;
}

/** The lines of a coast in a part of a plane: x instead of longitudes, y instead of latitudes. */
interface CoastPart {
  readonly area: Box;
  readonly lines: readonly CoastLine[];
}

const projected = new WeakMap<readonly CoastLine[], Map<MapProjection, CoastPart>>();

/** Returns the lines of a coast that a box shows. What the whole map shows is projected once, and again for a box beyond it. */
export function projectedCoast(
  projection: MapProjection,
  plane: MapPlane,
  coast: readonly CoastLine[],
  box: Box,
): readonly PlaneLine[] {
  const [parts, seen] = [projected.get(coast) ?? new Map<MapProjection, CoastPart>(), ascending(box)];
  projected.set(coast, parts);
  let part = parts.get(projection);
  if (part === undefined || !contains(part.area, seen)) {
    const whole = ascending(wholeBox(plane));
    // A wider box may be moved.
    const [x, y] = [(seen.right - seen.left) / 2, (seen.top - seen.bottom) / 2];
    const wide = { left: seen.left - x, right: seen.right + x, bottom: seen.bottom - y, top: seen.top + y };
    part = projectCoast(projection, contains(whole, seen) ? whole : wide, coast, shortOf(whole));
    parts.set(projection, part);
  }
  return linesInBox(part.lines, seen, false);
}

function contains(outer: Box, inner: Box): boolean {
  const isAcross = outer.left <= inner.left && outer.right >= inner.right;
  return isAcross && outer.bottom <= inner.bottom && outer.top >= inner.top;
}

/** Degrees beyond an area that are projected, too: it is looked at in places only. */
const BEYOND = 8;
const EARTH = { west: -180, east: 180, south: -90, north: 90 };

function projectCoast(
  projection: MapProjection,
  area: Box,
  coast: readonly CoastLine[],
  short: number,
): CoastPart {
  const seen = visibleDegrees(projection, area);
  if (seen === undefined) return { area, lines: [] };
  // Near the edge of the Earth, degrees lie closer together than the places that are looked at.
  const hasEdge = [area.left, area.right].some((x) =>
    [area.bottom, area.top].some((y) => projection.toDegrees(x, y) === undefined),
  );
  const { west, east, south, north } = hasEdge ? EARTH : seen;
  const box = { left: west - BEYOND, right: east + BEYOND, bottom: south - BEYOND, top: north + BEYOND };
  const lines = new Set(linesInBox(coast, box).map(({ points }) => points));
  const parts = Array.from(lines).flatMap((points) => partsInBox(points, box));
  const placed = parts.flatMap((part) => projectLine(projection, part, short));
  return { area, lines: placed.map(({ points }) => boundedLine(points)) };
}

/** Returns the length of pieces that are seen, but do not cross a map of this box. */
export function shortOf({ left, right, bottom, top }: Box): number {
  return 0.03 * Math.max(Math.abs(right - left), Math.abs(top - bottom));
}

/** Returns the parts of a line of which each point, or one beside it, is in a box of degrees. */
function partsInBox(points: PlaneLine["points"], { left, right, bottom, top }: Box): PlaneLine["points"][] {
  const isInBox = (index: number) => {
    const [x, y] = [points[index]!, points[index + 1]!];
    return y >= bottom && y <= top && x + 360 * Math.ceil((left - x) / 360) <= right;
  };
  const parts: PlaneLine["points"][] = [];
  for (let begin = 0; begin < points.length; begin += 2) {
    if (!isInBox(begin)) continue;
    let end = begin + 2;
    while (end < points.length && isInBox(end)) end += 2;
    parts.push(points.subarray(Math.max(0, begin - 2), end + 2));
    begin = end;
  }
  return parts;
}
