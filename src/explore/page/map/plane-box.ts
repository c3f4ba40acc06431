import type { Degrees, MapProjection, Place } from "../../../cf/projection.js";
import type { Box } from "../../protocol.js";

/** One axis of the plane that is shown, in the units of {@link Box}. */
export interface PlaneAxis {
  /** Outer edges of the first and the last cell, the lesser one first. */
  readonly low: number;
  readonly high: number;
  /** Whether it is a longitude that goes round the globe, so that it repeats after 360. */
  readonly wraps: boolean;
  /** Whether its values decrease to the right or upwards: depths, pressures, rows of an image. */
  readonly isReversed: boolean;
  readonly cell: number;
}

/** The plane that is shown. */
export interface MapPlane {
  readonly x: PlaneAxis;
  readonly y: PlaneAxis;
  /** How lengths along both axes compare: on a map of degrees by latitude, equal, or not at all. */
  readonly aspect: "degrees" | "equal" | "free";
  /** Whether it is the map of a curvilinear grid, whose cells have no edges along the axes. */
  readonly isCurved: boolean;
  /** Whether its cells are dots. */
  readonly hasDots?: boolean;
  /** Projection of the plane; undefined if it is no map, or one of degrees. */
  readonly projection?: MapProjection | undefined;
}

/** Whether a plane is a map, on which coasts and a graticule can be drawn. */
export function isMap(plane: MapPlane | undefined): boolean {
  return plane?.aspect === "degrees" || plane?.projection !== undefined;
}

/** Returns the degrees of a place that the axes themselves do not tell; undefined if there are none. */
export function degreesOf(plane: MapPlane | undefined, { x, y }: Place): Degrees | undefined {
  if (plane?.projection !== undefined) return plane.projection.toDegrees(x, y);
  return plane?.isCurved === true ? { longitude: x, latitude: y } : undefined;
}

/** Size of a canvas in any unit. */
export type Size = Readonly<Record<"width" | "height", number>>;

/** Least cosine of the latitude by which a map is narrowed: that of 75 degrees. */
const LEAST_COSINE = 0.26;
const LEAST_CELLS = 3;
/** How much larger than the plane a box may be. */
const MOST_PLANES = 1.25;

/** Returns the box that shows the whole plane, from -180 to 180 if it goes round the globe. It does not fit a canvas yet. */
export function wholeBox({ x, y }: MapPlane): Box {
  const [west, east] = x.wraps ? [-180, 180] : [x.low, x.high];
  const [left, right] = x.isReversed ? [east, west] : [west, east];
  const [bottom, top] = y.isReversed ? [y.high, y.low] : [y.low, y.high];
  return { left, right, bottom, top };
}

/** Returns the least box that contains another one and has the proportions of the canvas. */
export function fitBox(plane: MapPlane, box: Box, size: Size): Box {
  const ratio = unitRatio(plane, box);
  if (ratio === undefined) return box;
  const wide = Math.abs(box.right - box.left);
  const high = Math.abs(box.top - box.bottom);
  const [width, height] = [size.width / ratio, size.height];
  const scale = Math.max(wide / width, high / height);
  return boxAround(box, centreOfBox(box), scale * width, scale * height);
}

/** Returns a box that is enlarged by a factor, with the place at the same point of the canvas. */
export function zoomBox(plane: MapPlane, box: Box, size: Size, factor: number, place: Place): Box {
  const [wide, high] = [Math.abs(box.right - box.left), Math.abs(box.top - box.bottom)];
  const whole = fitBox(plane, wholeBox(plane), size);
  const done = clampLength(high * factor, Math.abs(whole.top - whole.bottom), plane.y.cell) / high;
  const isFree = plane.aspect === "free";
  const across = isFree ? clampLength(wide * done, plane.x.high - plane.x.low, plane.x.cell) / wide : done;
  const zoomed = mapBox(
    box,
    (x) => place.x + (x - place.x) * across,
    (y) => place.y + (y - place.y) * done,
  );
  return settleBox(plane, zoomed, size);
}

/** Returns a box that is moved by parts of its width and height: to the right and upwards if positive. */
export function panBox(plane: MapPlane, box: Box, size: Size, right: number, up: number): Box {
  const [alongX, alongY] = [(box.right - box.left) * right, (box.top - box.bottom) * up];
  const moved = mapBox(
    box,
    (x) => x + alongX,
    (y) => y + alongY,
  );
  return settleBox(plane, moved, size);
}

/** Returns a box with other sides. */
export function mapBox(
  { left, right, bottom, top }: Box,
  x: (x: number) => number,
  y: (y: number) => number,
): Box {
  return { left: x(left), right: x(right), bottom: y(bottom), top: y(top) };
}

/** Writes a box: left, bottom, right, top. */
export function boxText({ left, bottom, right, top }: Box): string {
  return [left, bottom, right, top].join(",");
}

/** Returns the place of a point of the canvas, in pixels from the top left. */
export function placeOfPoint(box: Box, size: Size, point: Place): Place {
  return {
    x: box.left + ((box.right - box.left) * point.x) / size.width,
    y: box.top + ((box.bottom - box.top) * point.y) / size.height,
  };
}

/** Returns the point of the canvas of a place: the reverse of {@link placeOfPoint}. */
export function pointOf(box: Box, size: Size, place: Place): Place {
  return {
    x: ((place.x - box.left) / (box.right - box.left)) * size.width,
    y: ((place.y - box.top) / (box.bottom - box.top)) * size.height,
  };
}

const EDGE = 1e-6;

/** Returns the pixels whose middles lie on the plane: from `left` and `top` to before `right` and `bottom`. */
export function planePixels(plane: MapPlane, box: Box, size: Size) {
  const first = pointOf(box, size, { x: plane.x.low, y: plane.y.low });
  const last = pointOf(box, size, { x: plane.x.high, y: plane.y.high });
  const columns = plane.x.wraps ? [0, size.width] : [first.x, last.x];
  // A middle on the very edge is outside of it, however the sums are rounded.
  const begin = (...edges: number[]): number => Math.ceil(Math.min(...edges) - 0.5 + EDGE);
  const end = (...edges: number[]): number => Math.ceil(Math.max(...edges) - 0.5 - EDGE);
  return {
    left: begin(...columns),
    right: end(...columns),
    top: begin(first.y, last.y),
    bottom: end(first.y, last.y),
  };
}

/** Returns how many times as long one unit along y is as one along x, on the canvas; undefined if that is free. */
function unitRatio(plane: MapPlane, box: Box): number | undefined {
  if (plane.aspect === "free") return undefined;
  if (plane.aspect === "equal") return 1;
  const latitude = Math.max(-90, Math.min(90, (box.top + box.bottom) / 2));
  return Math.max(LEAST_COSINE, Math.cos((latitude * Math.PI) / 180));
}

/** Keeps the centre of a box in the plane, and its proportions right: by its width, so that repeated moves change no height. */
function settleBox(plane: MapPlane, box: Box, size: Size): Box {
  const centre = centreOfBox(box);
  const x = plane.x.wraps
    ? centre.x - 360 * Math.round(centre.x / 360)
    : clamp(centre.x, plane.x.low, plane.x.high);
  const y = clamp(centre.y, plane.y.low, plane.y.high);
  const high = Math.abs(box.top - box.bottom);
  const settled = boxAround(box, { x, y }, Math.abs(box.right - box.left), high);
  const ratio = unitRatio(plane, settled);
  if (ratio === undefined) return settled;
  return boxAround(settled, { x, y }, (high * size.width) / size.height / ratio, high);
}

function clampLength(length: number, whole: number, cell: number): number {
  const most = whole * MOST_PLANES;
  return clamp(length, Math.min(cell * LEAST_CELLS, most), most);
}

/** Returns a box of the given size that runs in the directions of another one. */
function boxAround(box: Box, centre: Place, width: number, height: number): Box {
  const right = (box.right < box.left ? -width : width) / 2;
  const up = (box.top < box.bottom ? -height : height) / 2;
  return { left: centre.x - right, right: centre.x + right, bottom: centre.y - up, top: centre.y + up };
}

/** Returns a box with its sides in the order of their values. */
export function ascending({ left, right, bottom, top }: Box): Box {
  const [west, east] = left < right ? [left, right] : [right, left];
  const [south, north] = bottom < top ? [bottom, top] : [top, bottom];
  return { left: west, right: east, bottom: south, top: north };
}

/** Returns the place in the middle of a box. */
export function centreOfBox(box: Box): Place {
  return { x: (box.left + box.right) / 2, y: (box.bottom + box.top) / 2 };
}

function clamp(value: number, low: number, high: number): number {
  return Math.max(low, Math.min(high, value));
}
