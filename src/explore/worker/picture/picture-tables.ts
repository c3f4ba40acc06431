import type { ScreenTable } from "./screen-tables.js";

/** Pixels along one axis that show cells of one chunk, and the place of the cell in the chunk. A pixel may be there several times. */
export interface ChunkRun {
  readonly pixels: Int32Array;
  /** Cell in the chunk, times the axis' stride. */
  readonly offsets: Int32Array;
  /** 1 at the first pixel of each cell. */
  readonly isFirst: Uint8Array;
  /** Distinct cells. */
  readonly cells: number;
}

/**
 * Cuts the table of an axis into runs, by the index of the chunk.
 * @param factor Cells of the table per cell of the level that is read.
 * @param length Cells of the level along the axis.
 */
export function runsByChunk(
  { from, to }: Pick<ScreenTable, "from" | "to">,
  factor: number,
  chunkLength: number,
  stride: number,
): ReadonlyMap<number, ChunkRun> {
  const lists = new Map<number, { pixels: number[]; offsets: number[]; first: number[] }>();
  let before = -1;
  for (let pixel = 0; pixel < from.length; pixel++) {
    const begin = from[pixel] as number;
    if (begin === -1) continue;
    const last = Math.floor((to[pixel]! - 1) / factor);
    for (let cell = Math.floor(begin / factor); cell <= last; cell++) {
      const chunk = Math.floor(cell / chunkLength);
      let list = lists.get(chunk);
      if (list === undefined) {
        list = { pixels: [], offsets: [], first: [] };
        lists.set(chunk, list);
      }
      list.pixels.push(pixel);
      list.offsets.push((cell - chunk * chunkLength) * stride);
      list.first.push(cell === before ? 0 : 1);
      before = cell;
    }
  }
  const runs = new Map<number, ChunkRun>();
  for (const [chunk, { pixels, offsets, first }] of lists) {
    runs.set(chunk, {
      pixels: Int32Array.from(pixels),
      offsets: Int32Array.from(offsets),
      isFirst: Uint8Array.from(first),
      cells: first.reduce((sum, one) => sum + one, 0),
    });
  }
  return runs;
}
