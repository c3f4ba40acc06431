import type { Plane } from "../../cf/axis-roles.js";
import type { ServedArray } from "../../dataset/dataset.js";
import { elementCount } from "../../model/data-tree.js";

/** Stored chunks that are read for a picture, at most. */
const MAX_CHUNKS = 16;
/** Bytes of them once they are decoded, at most. */
export const MAX_DECODED_BYTES = 64 * 2 ** 20;
/** Stored chunks behind the chunks of an overview, at most, and their bytes: they are read if nothing is cached. */
const MAX_CHUNKS_BELOW = 1_024;
const MAX_BYTES_BELOW = 2 ** 30;
/** Cells per axis by which the centre of an array in memory is measured: it is one chunk, which need not be decoded. */
const MEMORY_UNIT = 256;

/** A box of an array in a grid of equal ones. */
export interface PictureBox {
  readonly boxShape: readonly number[];
  readonly position: readonly number[];
  readonly isCentre: boolean;
}

/** The least part of an array that can be read, and how many of these a picture may take. */
interface ReadUnits {
  readonly shape: readonly number[];
  /** Units along y and x. */
  readonly rows: number;
  readonly columns: number;
  readonly max: number;
}

/** Returns the bytes of the least part of an array that can be read. */
export function unitBytes(array: ServedArray, plane: Plane): number {
  return elementCount(unitShape(array, plane)) * array.variable.dataType.itemSize;
}

/** Returns the share of a plane that a picture shows: 1 for all of it, 0 for none. @param base As for {@link boxOf}. */
export function shownShare(array: ServedArray, plane: Plane, base = array): number {
  const box = boxOf(array, plane, base);
  if (box === undefined) return 0;
  const { shape } = array.variable;
  return [plane.y, plane.x].reduce(
    (share, axis) => share * ((box.boxShape[axis] as number) / (shape[axis] as number)),
    1,
  );
}

/**
 * Returns the box of a picture: the whole plane, else as many whole chunks in its centre as may be read; undefined if that is none.
 * Its `position` is 0 along other axes.
 * @param base The array that is stored, if `array` is an overview of it.
 */
export function boxOf(array: ServedArray, plane: Plane, base = array): PictureBox | undefined {
  const { shape, rows, columns, max } = unitsOf(array, plane, base);
  if (max === 0) return undefined;
  const cells = array.variable.shape;
  const boxShape = cells.map(() => 1);
  const position = cells.map(() => 0);
  const set = (axis: number, units: number, count: number) => {
    const length = cells[axis] as number;
    boxShape[axis] = units === count ? length : units * (shape[axis] as number);
    // The box with the middle cell: it is never cut off by the edge.
    position[axis] = Math.floor(Math.floor(length / 2) / boxShape[axis]);
  };
  if (rows * columns <= max) {
    set(plane.y, rows, rows);
    set(plane.x, columns, columns);
    return { boxShape, position, isCentre: false };
  }
  let [down, right] = [1, 1];
  for (;;) {
    const canGrowDown = down < rows && (down + 1) * right <= max;
    const canGrowRight = right < columns && down * (right + 1) <= max;
    if (!canGrowDown && !canGrowRight) break;
    const isFlat = down * (shape[plane.y] as number) < right * (shape[plane.x] as number);
    if (canGrowDown && (isFlat || !canGrowRight)) down++;
    else right++;
  }
  set(plane.y, down, rows);
  set(plane.x, right, columns);
  return { boxShape, position, isCentre: true };
}

/** Returns the part of an array with one axis that is shown, as {@link boxOf} does. */
export function lineBoxOf(array: ServedArray): PictureBox | undefined {
  const { shape, rows, max } = unitsOf(array, { y: 0, x: 0 }, array);
  if (max === 0) return undefined;
  const length = array.variable.shape[0] as number;
  const boxLength = rows <= max ? length : max * (shape[0] as number);
  return {
    boxShape: [boxLength],
    position: [Math.floor(Math.floor(length / 2) / boxLength)],
    isCentre: rows > max,
  };
}

function unitsOf(array: ServedArray, plane: Plane, base: ServedArray): ReadUnits {
  const shape = unitShape(array, plane);
  const [rows, columns] = [countOf(array, shape, plane.y), countOf(array, shape, plane.x)];
  const fitting = Math.floor(MAX_DECODED_BYTES / unitBytes(array, plane));
  const isInMemory = array.stored.chunks.kind === "memory";
  const max = isInMemory ? fitting : Math.min(MAX_CHUNKS, fitting);
  if (array === base) return { shape, rows, columns, max };
  const baseShape = unitShape(base, plane);
  const below = (countOf(base, baseShape, plane.y) * countOf(base, baseShape, plane.x)) / (rows * columns);
  const maxBelow = Math.min(MAX_CHUNKS_BELOW, MAX_BYTES_BELOW / unitBytes(base, plane));
  return { shape, rows, columns, max: Math.min(max, Math.floor(maxBelow / below)) };
}

function countOf({ variable }: ServedArray, unitShape: readonly number[], axis: number): number {
  return Math.ceil((variable.shape[axis] as number) / (unitShape[axis] as number));
}

function unitShape({ stored }: ServedArray, { y, x }: Plane): number[] {
  if (stored.chunks.kind !== "memory") return stored.chunkShape.map((length) => Math.max(1, length));
  return stored.shape.map((length, axis) => (axis === y || axis === x ? Math.min(length, MEMORY_UNIT) : 1));
}
