import type { Box, GridExtent, Viewport } from "../../protocol.js";

/** A map and its pixels. */
export type PixelMap = Box & Pick<Viewport, "width" | "height" | "ratio">;

/** Metres per degree of the plane in which projected places are drawn: in so few degrees, no place is near a pole or a turn away. */
export const PROJECTED_METRES = 1e7;

/** Centres of cells in degrees; NaN for those without a place. */
export interface Places {
  readonly longitudes: Float64Array;
  readonly latitudes: Float64Array;
}

/** Cells with corners, in degrees. */
export interface Polygons {
  readonly count: number;
  readonly x: Float64Array;
  readonly y: Float64Array;
  /** Most corners of a cell. */
  readonly perCell: number;
  /** Returns the index of a corner of a cell in `x` and `y`; -1 if it has fewer. */
  readonly cornerOf: (cell: number, corner: number) => number;
  /** Whether they are the cells of a grid: one without a corner, across the grid's seam or round a pole is none. */
  readonly isGrid: boolean;
}

/** Most and least radius of a dot in CSS pixels, and the share of the map that dots fill in between. */
const [MOST_RADIUS, LEAST_RADIUS, DOT_SHARE] = [7, 1.2, 0.2];
/** Radius in CSS pixels from which dots are apart where they overlap. */
const APART_RADIUS = 3;

/** Returns the cell under each pixel if cells are dots, -1 between them. The fewer are visible, the larger they are. */
export function dotsUnderPixels(places: Places, map: PixelMap): Int32Array {
  const { width, height, ratio = 1 } = map;
  const cells = new Int32Array(width * height).fill(-1);
  let visible = 0;
  eachDot(places, map, 0, () => visible++);
  const share = Math.sqrt((DOT_SHARE * cells.length) / Math.PI / Math.max(1, visible)) / ratio;
  const radius = Math.max(LEAST_RADIUS, Math.min(MOST_RADIUS, share)) * ratio;
  let [lastX, lastY] = [Number.NaN, Number.NaN];
  eachDot(places, map, radius, (cell, x, y) => {
    // Those of a track would hide each other.
    const isNext = Math.abs(x - lastX) < radius && Math.abs(y - lastY) < radius;
    if (radius >= APART_RADIUS * ratio && !isNext) fillDisc(cells, width, x, y, radius + ratio, -1);
    [lastX, lastY] = [x, y];
    fillDisc(cells, width, x, y, radius, cell);
  });
  return cells;
}

/** Visits the cells whose centres lie on a map or up to a number of pixels beside it, as often as longitudes repeat there. */
function eachDot(
  { longitudes, latitudes }: Places,
  { left, right, top, bottom, width, height }: PixelMap,
  beside: number,
  visit: (cell: number, x: number, y: number) => void,
): void {
  const [perX, perY] = [width / (right - left), height / (bottom - top)];
  const least = Math.min(left, right) - Math.abs(beside / perX);
  const greatest = Math.max(left, right) + Math.abs(beside / perX);
  for (let cell = 0; cell < latitudes.length; cell++) {
    const y = (latitudes[cell]! - top) * perY;
    if (!(y >= -beside && y <= height + beside)) continue;
    const longitude = longitudes[cell]!;
    for (let x = longitude + Math.ceil((least - longitude) / 360) * 360; x <= greatest; x += 360)
      visit(cell, (x - left) * perX - 0.5, y - 0.5);
  }
}

function fillDisc(
  cells: Int32Array,
  width: number,
  x: number,
  y: number,
  radius: number,
  value: number,
): void {
  const last = Math.min(cells.length / width - 1, Math.floor(y + radius));
  for (let row = Math.max(0, Math.ceil(y - radius)); row <= last; row++) {
    const half = Math.sqrt(radius * radius - (row - y) * (row - y));
    const begin = Math.max(0, Math.ceil(x - half));
    const end = Math.min(width - 1, Math.floor(x + half));
    for (let column = begin; column <= end; column++) cells[row * width + column] = value;
  }
}

/**
 * Returns the cell whose centre is nearest to a place; -1 if none is within reach, in degrees of latitude.
 * @param towards Direction, to the right and upwards, in which the cell must lie.
 */
export function nearestPlace(
  { longitudes, latitudes }: Places,
  x: number,
  y: number,
  reach: number,
  towards?: readonly [right: number, up: number],
): number {
  const cosine = Math.max(0.01, Math.cos((y * Math.PI) / 180));
  let found = -1;
  let least = reach * reach;
  for (let cell = 0; cell < latitudes.length; cell++) {
    const up = latitudes[cell]! - y;
    const right = (near(longitudes[cell]!, x) - x) * cosine;
    const square = up * up + right * right;
    if (!(square <= least)) continue;
    if (towards !== undefined) {
      const ahead = right * towards[0] + up * towards[1];
      if (ahead < 1e-9 || ahead * ahead < square / 2) continue;
    }
    least = square;
    found = cell;
  }
  return found;
}

/** Latitude beyond which a corner is a pole, whose longitude says nothing. */
const POLE = 90 - 1e-6;
/** Widest cell in degrees: a wider one that does not contain a pole is none. */
const MAX_WIDTH = 180;
const MAX_GRID_CELL_WIDTH = 90;

/** Returns room for the corners of one cell: there are more of them if it contains a pole. */
function roomFor({ perCell }: Polygons): Float64Array {
  return new Float64Array(4 * perCell + 8);
}

/**
 * Writes the corners of a cell as longitudes and latitudes, the former without jumps at the date line. Returns how many there are; 0 if
 * it has no area. A corner at a pole becomes a side along it, and a cell round a pole reaches up to it.
 */
function writeOutline(
  { x, y, cornerOf, perCell, isGrid }: Polygons,
  cell: number,
  outline: Float64Array,
  least: number,
): number {
  let count = 0;
  let reference = Number.NaN;
  let poles = 0;
  for (let place = 0; place < perCell; place++) {
    const corner = cornerOf(cell, place);
    if (corner < 0) continue;
    const latitude = y[corner]!;
    let longitude = x[corner]!;
    if (Number.isNaN(latitude) || Number.isNaN(longitude)) continue;
    if (Math.abs(latitude) > POLE) {
      poles++;
      longitude = Number.NaN;
    } else {
      if (!Number.isNaN(reference)) longitude = near(longitude, reference);
      reference = longitude;
    }
    outline[2 * count] = longitude;
    outline[2 * count + 1] = latitude;
    count++;
  }
  if (count < (isGrid ? perCell : least) || poles === count) return 0;
  if (poles > 0) return splitPoles(outline, count);
  const first = outline[0]!;
  const turn = near(first, reference) - first;
  if (Math.abs(turn) < MAX_WIDTH) return count;
  if (isGrid) return 0;
  const pole = outline[1]! > 0 ? 90 : -90;
  outline.set([first + turn, outline[1]!, first + turn, pole, first, pole], 2 * count);
  return count + 3;
}

/** Replaces each corner at a pole by two, at the longitudes of the corners before and after it. */
function splitPoles(outline: Float64Array, count: number): number {
  const corners = Array.from({ length: count }, (_, index) => [outline[2 * index]!, outline[2 * index + 1]!]);
  const beside = (index: number, step: number): number => {
    let other = index;
    do other = (other + step + count) % count;
    while (Number.isNaN(corners[other]![0]));
    return corners[other]![0]!;
  };
  const split = corners.flatMap(([x, y], index) =>
    Number.isNaN(x) ? [beside(index, -1), y!, beside(index, 1), y!] : [x!, y!],
  );
  outline.set(split);
  return split.length / 2;
}

/** Returns the centres of cells: the means of their corners. */
export function centresOf(polygons: Polygons): Places {
  const longitudes = new Float64Array(polygons.count).fill(Number.NaN);
  const latitudes = longitudes.slice();
  const outline = roomFor(polygons);
  for (let cell = 0; cell < polygons.count; cell++) {
    const count = writeOutline(polygons, cell, outline, 1);
    let [x, y] = [0, 0];
    for (let corner = 0; corner < 2 * count; corner += 2) {
      x += outline[corner]!;
      y += outline[corner + 1]!;
    }
    longitudes[cell] = x / count;
    latitudes[cell] = y / count;
  }
  return { longitudes, latitudes };
}

/** Cells in a row that are skipped together if they are beside a map. */
const BLOCK = 64;

/** Creates a function that returns the cell under the middle of each pixel if cells are polygons, -1 where there is none. */
export function createPolygonFinder(polygons: Polygons): (map: PixelMap) => Int32Array {
  const outline = roomFor(polygons);
  const blocks: GridExtent[] = [];
  for (let cell = 0; cell < polygons.count; cell++) {
    if (cell % BLOCK === 0) blocks.push(EMPTY);
    const box = boxOf(outline, writeOutline(polygons, cell, outline, 3));
    if (box.south <= box.north) blocks.push(joined(blocks.pop()!, box));
  }
  return (map) => {
    const { width, height, left, right, top, bottom } = map;
    const cells = new Int32Array(width * height).fill(-1);
    const [perX, perY] = [width / (right - left), height / (bottom - top)];
    const [least, greatest] = left < right ? [left, right] : [right, left];
    const [low, high] = top > bottom ? [bottom, top] : [top, bottom];
    const firstTurn = ({ west, east, south, north }: GridExtent): number => {
      const turn = Math.ceil((least - east) / 360);
      return south > high || north < low || west + turn * 360 > greatest ? Infinity : turn;
    };
    for (let block = 0; block < blocks.length; block++) {
      if (firstTurn(blocks[block]!) === Infinity) continue;
      const end = Math.min(polygons.count, (block + 1) * BLOCK);
      for (let cell = block * BLOCK; cell < end; cell++) {
        const count = writeOutline(polygons, cell, outline, 3);
        const box = boxOf(outline, count);
        const first = firstTurn(box);
        if (first === Infinity || isTooWide(polygons, box)) continue;
        for (let corner = 0; corner < 2 * count; corner += 2) {
          outline[corner] = (outline[corner]! - left) * perX - 0.5;
          outline[corner + 1] = (outline[corner + 1]! - top) * perY - 0.5;
        }
        for (let turn = first; box.west + turn * 360 <= greatest; turn++)
          fillPolygon(cells, cell, outline, count, turn * 360 * perX, width);
      }
    }
    return cells;
  };
}

const EMPTY: GridExtent = { west: Infinity, east: -Infinity, south: Infinity, north: -Infinity };

function boxOf(outline: Float64Array, count: number): GridExtent {
  let { west, east, south, north } = EMPTY;
  for (let corner = 0; corner < 2 * count; corner += 2) {
    const [x, y] = [outline[corner]!, outline[corner + 1]!];
    if (x < west) west = x;
    if (x > east) east = x;
    if (y < south) south = y;
    if (y > north) north = y;
  }
  return { west, east, south, north };
}

/** Returns the box round two, of which the second one may be turned. */
function joined(one: GridExtent, other: GridExtent): GridExtent {
  const turn = one.west <= one.east ? near(other.west, one.west) - other.west : 0;
  return {
    west: Math.min(one.west, other.west + turn),
    east: Math.max(one.east, other.east + turn),
    south: Math.min(one.south, other.south),
    north: Math.max(one.north, other.north),
  };
}

function isTooWide({ isGrid }: Polygons, { west, east, south, north }: GridExtent): boolean {
  if (isGrid) return east - west > MAX_GRID_CELL_WIDTH;
  return east - west > MAX_WIDTH && Math.max(north, -south) <= POLE;
}

/** Turns the face under each pixel into the nearest one of its corners. */
export function cornersUnderPixels(
  { x, y, cornerOf, perCell }: Polygons,
  map: PixelMap,
  faces: Int32Array,
): Int32Array {
  const { width, left, right, top, bottom, height } = map;
  for (let pixel = 0; pixel < faces.length; pixel++) {
    const face = faces[pixel]!;
    if (face === -1) continue;
    const latitude = top + ((Math.floor(pixel / width) + 0.5) * (bottom - top)) / height;
    const longitude = left + (((pixel % width) + 0.5) * (right - left)) / width;
    const cosine = Math.cos((latitude * Math.PI) / 180);
    let least = Number.POSITIVE_INFINITY;
    for (let place = 0; place < perCell; place++) {
      const corner = cornerOf(face, place);
      if (corner < 0) continue;
      const along = (near(x[corner]!, longitude) - longitude) * cosine;
      const square = along * along + (y[corner]! - latitude) ** 2;
      if (square >= least) continue;
      least = square;
      faces[pixel] = corner;
    }
  }
  return faces;
}

/**
 * Returns the cells of a grid by their centres, in C order. Corners are the means of the centres around them, as far as these are not
 * missing. Outer corners are found by going on beyond the last centres.
 */
export function polygonsOfGrid({ latitudes, longitudes }: Places, rows: number, columns: number): Polygons {
  const x = new Float64Array((rows + 1) * (columns + 1));
  const y = new Float64Array(x.length);
  for (let row = 0; row <= rows; row++) {
    for (let column = 0; column <= columns; column++) {
      let [sumX, sumY, count, reference] = [0, 0, 0, Number.NaN];
      for (let corner = 0; corner < 4; corner++) {
        const r = row - 1 + (corner >> 1);
        const c = column - 1 + (corner & 1);
        const inner = clamp(r, rows) * columns + clamp(c, columns);
        let longitude = longitudes[inner]!;
        let latitude = latitudes[inner]!;
        // No place has such a latitude: files mark missing ones by it.
        if (!(Math.abs(latitude) <= 90.5) || !(Math.abs(longitude) <= 720)) continue;
        if (count === 0) reference = longitude;
        longitude = near(longitude, reference);
        // Outside of the grid: as far beyond the last centre as the one before it is on this side.
        const next =
          clamp(2 * clamp(r, rows) - r, rows) * columns + clamp(2 * clamp(c, columns) - c, columns);
        if (next !== inner && Math.abs(latitudes[next]!) <= 90.5 && Math.abs(longitudes[next]!) <= 720) {
          longitude += longitude - near(longitudes[next]!, longitude);
          latitude += latitude - latitudes[next]!;
        }
        sumX += longitude;
        sumY += latitude;
        count++;
      }
      const place = row * (columns + 1) + column;
      x[place] = sumX / count;
      y[place] = Math.max(-90, Math.min(90, sumY / count));
    }
  }
  const around = [0, 1, columns + 2, columns + 1];
  const cornerOf = (cell: number, corner: number) => cell + Math.floor(cell / columns) + around[corner]!;
  return { count: rows * columns, x, y, perCell: 4, cornerOf, isGrid: true };
}

/**
 * Fills the pixels whose middles are in a polygon of `count` corners: row by row, between where the row crosses its sides. The middle
 * of the first pixel is at 0.
 */
export function fillPolygon(
  cells: Int32Array,
  cell: number,
  polygon: Float64Array,
  count: number,
  shift: number,
  width: number,
): void {
  const height = cells.length / width;
  const length = 2 * count;
  let [upper, lower] = [Infinity, -Infinity];
  for (let corner = 1; corner < length; corner += 2) {
    upper = Math.min(upper, polygon[corner]!);
    lower = Math.max(lower, polygon[corner]!);
  }
  const lastRow = Math.min(height - 1, Math.floor(lower));
  for (let row = Math.max(0, Math.ceil(upper)); row <= lastRow; row++) {
    let begin = Number.POSITIVE_INFINITY;
    let end = Number.NEGATIVE_INFINITY;
    const crossings: number[] = [];
    for (let corner = 0; corner < length; corner += 2) {
      const next = corner + 2 === length ? 0 : corner + 2;
      const rowA = polygon[corner + 1]!;
      const rowB = polygon[next + 1]!;
      if ((rowA < row && rowB < row) || (rowA > row && rowB > row)) continue;
      const share = rowA === rowB ? 0 : (row - rowA) / (rowB - rowA);
      const crossing = polygon[corner]! + share * (polygon[next]! - polygon[corner]!);
      begin = Math.min(begin, crossing);
      end = Math.max(end, crossing);
      if (rowA === rowB) {
        begin = Math.min(begin, polygon[next]!);
        end = Math.max(end, polygon[next]!);
      } else if (count > 4 && rowA <= row !== rowB <= row) crossings.push(crossing);
    }
    const fill = (from: number, to: number): void => {
      const last = Math.min(width - 1, Math.floor(to + shift));
      for (let column = Math.max(0, Math.ceil(from + shift)); column <= last; column++)
        cells[row * width + column] = cell;
    };
    if (crossings.length <= 2) {
      fill(begin, end);
      continue;
    }
    // A row may leave a polygon with a dent and come in again.
    crossings.sort((one, other) => one - other);
    for (let part = 0; part < crossings.length; part += 2) fill(crossings[part]!, crossings[part + 1]!);
  }
}

function clamp(index: number, length: number): number {
  return Math.max(0, Math.min(length - 1, index));
}

/** Returns the longitude that means the same and is nearest to another one. */
export function near(longitude: number, reference: number): number {
  return longitude - 360 * Math.round((longitude - reference) / 360);
}
