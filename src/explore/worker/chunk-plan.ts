import type { VariableDescription } from "../dataset-description.js";
import type { PictureAxes } from "../protocol.js";

/** Most chunks that are read without asking. */
const MAX_UNASKED_CHUNKS = 64;
/** Most decoded bytes that are read without asking. */
export const MAX_UNASKED_BYTES = 256 * 2 ** 20;

/** A variable at one of its resolutions. */
export interface Resolution {
  /** 0 for the variable itself. */
  readonly level: number;
  readonly path: string;
  readonly shape: readonly number[];
  readonly chunkShape: readonly number[];
  /** Cells of the variable per cell, by axis. */
  readonly factors: readonly number[];
}

/** What has to be read. */
export interface ReadingCost {
  readonly chunks: number;
  /** Decoded. */
  readonly bytes: number;
}

/** Returns the resolutions of a variable, finest first. */
export function resolutionsOf(variable: VariableDescription): readonly Resolution[] {
  return [finestOf(variable), ...variable.levels];
}

/** Returns the resolution of the variable itself. */
export function finestOf({ path, shape, chunkShape }: VariableDescription): Resolution {
  return { level: 0, path, shape, chunkShape, factors: shape.map(() => 1) };
}

/**
 * Chooses the coarsest resolution with at least one cell per pixel along both axes.
 * @param densities Cells of the variable per pixel.
 */
export function chooseResolution(
  resolutions: readonly Resolution[],
  axes: PictureAxes,
  densities: { readonly x: number; readonly y: number },
): Resolution {
  const fitting = resolutions.filter(({ factors }) =>
    [axes.x, axes.y].every((axis) => {
      const density = axis === axes.x ? densities.x : densities.y;
      return factors[axis] === 1 || density / factors[axis]! >= 1;
    }),
  );
  return fitting.at(-1) ?? (resolutions[0] as Resolution);
}

/** Returns the coordinates of the chunk that holds a cell of the variable; those of the picture's axes are 0. */
export function chunkOfCell(resolution: Resolution, cell: readonly number[]): number[] {
  const { factors, chunkShape } = resolution;
  return cell.map((index, axis) => Math.floor(index / factors[axis]! / chunkShape[axis]!));
}

/**
 * Orders the chunks of a picture: those in the middle first, where people look.
 * @param rows Indices of the chunks along the vertical axis; `columns` along the horizontal one.
 */
export function chunksFromCentre(
  rows: Iterable<number>,
  columns: Iterable<number>,
): readonly { readonly row: number; readonly column: number }[] {
  const [rowList, columnList] = [[...rows], [...columns]];
  const [middleRow, middleColumn] = [(rowList.length - 1) / 2, (columnList.length - 1) / 2];
  const chunks = rowList.flatMap((row, y) =>
    columnList.map((column, x) => ({
      row,
      column,
      distance: (y - middleRow) ** 2 + (x - middleColumn) ** 2,
    })),
  );
  return chunks.sort((one, other) => one.distance - other.distance);
}

/** Returns the decoded bytes of a number of chunks. */
export function costOf(chunks: number, chunkShape: readonly number[], itemSize: number): ReadingCost {
  const perChunk = chunkShape.reduce((product, length) => product * length, Math.max(1, itemSize));
  return { chunks, bytes: chunks * perChunk };
}

/** Whether a reading is more than a person may expect. */
export function isTooMuch({ chunks, bytes }: ReadingCost): boolean {
  return chunks > MAX_UNASKED_CHUNKS || bytes > MAX_UNASKED_BYTES;
}
