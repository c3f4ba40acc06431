import { elementCount } from "../../../model/chunk-grid.js";
import type { FileChunkTable } from "../../formats/file-index.js";

/** Bytes of a piece of contiguous data, unless its rows are longer. */
const PIECE_BYTES = 2 ** 20;

/** Contiguous data cut into chunks. */
export interface ContiguousChunks {
  readonly chunkShape: readonly number[];
  readonly chunks: FileChunkTable;
}

/** A grid that cuts an array into pieces of whole rows, so that each is a range of the file. */
export interface ContiguousGrid {
  readonly chunkShape: readonly number[];
  /** The first axis that is not cut into single indices; -1 for a scalar. */
  readonly axis: number;
}

/**
 * Cuts contiguous data into chunks of about 1 MiB: single indices of the leading axes, some of the next one, all of the others.
 * @param itemSize Bytes of an item in the file.
 */
export function contiguousGrid(shape: readonly number[], itemSize: number): ContiguousGrid {
  const chunkShape = shape.map((length) => Math.max(1, length));
  let axis = 0;
  // Bytes below one index of an axis.
  let rowBytes = itemSize * elementCount(chunkShape);
  for (; axis < chunkShape.length; axis++) {
    const length = chunkShape[axis] as number;
    rowBytes /= length;
    if (rowBytes <= PIECE_BYTES || axis === chunkShape.length - 1) {
      chunkShape[axis] = Math.min(length, Math.max(1, Math.floor(PIECE_BYTES / rowBytes)));
      break;
    }
    chunkShape[axis] = 1;
  }
  return { chunkShape, axis: Math.min(axis, chunkShape.length - 1) };
}

/** Places of contiguous data's chunks. No axis may have length 0. */
export function contiguousChunks(
  start: number,
  shape: readonly number[],
  itemSize: number,
): ContiguousChunks {
  const { chunkShape, axis } = contiguousGrid(shape, itemSize);
  const strides: number[] = [];
  let rowBytes = itemSize;
  for (let at = shape.length - 1; at >= 0; at--) {
    strides.unshift(rowBytes * (chunkShape[at] as number));
    rowBytes *= shape[at] as number;
  }
  const byteLength = itemSize * elementCount(chunkShape);
  const rest = axis < 0 ? 0 : (shape[axis] as number) % (chunkShape[axis] as number);
  const rows = axis < 0 ? 1 : (chunkShape[axis] as number);
  return {
    chunkShape,
    chunks: {
      kind: "strided",
      start,
      strides,
      byteLength,
      ...(rest === 0 ? {} : { last: { axis, byteLength: (byteLength / rows) * rest } }),
    },
  };
}

/** A table without any chunk. */
export function noChunks(): FileChunkTable {
  return {
    kind: "listed",
    numbers: new Float64Array(0),
    offsets: new Float64Array(0),
    byteLengths: new Uint32Array(0),
  };
}
