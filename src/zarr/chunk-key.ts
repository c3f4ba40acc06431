import type { ChunkKeyEncoding } from "./chunk-source.js";

/** Writes the name of a stored chunk below its array, in the array's own key encoding. */
export function encodeChunkKey(chunkCoords: readonly number[], encoding: ChunkKeyEncoding): string {
  if (encoding.name === "v2") return chunkCoords.length === 0 ? "0" : chunkCoords.join(encoding.separator);
  return chunkCoords.length === 0 ? "c" : `c${encoding.separator}${chunkCoords.join(encoding.separator)}`;
}

/**
 * Parses the key of a served chunk, `12.0.3`; a scalar's is `0`. Undefined unless it is the canonical key (no sign, no
 * leading zero, no other digits) of a chunk inside the grid, so that a chunk has one URL and one cache entry.
 */
export function parseChunkKey(text: string, gridShape: readonly number[]): number[] | undefined {
  const rank = gridShape.length;
  if (rank === 0) return text === "0" ? [] : undefined;
  const coords = new Array<number>(rank);
  const end = text.length;
  let position = 0;
  for (let axis = 0; axis < rank; axis++) {
    const start = position;
    let index = 0;
    while (position < end) {
      const digit = text.charCodeAt(position) - 48;
      if (digit < 0 || digit > 9) break;
      index = index * 10 + digit;
      position++;
    }
    const length = position - start;
    // Sixteen digits bound the work. The grid is smaller than 2^53, so a number that was rounded is outside of it.
    if (length === 0 || length > 16 || (length > 1 && text.charCodeAt(start) === 48)) return undefined;
    if (index >= (gridShape[axis] as number) || index > Number.MAX_SAFE_INTEGER) return undefined;
    coords[axis] = index;
    if (axis < rank - 1 && text.charCodeAt(position++) !== 46) return undefined;
  }
  return position === end ? coords : undefined;
}
