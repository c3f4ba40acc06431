/** Chunks of equal length that follow each other along an axis. */
interface AxisRun {
  /** Items that each chunk has along the axis. */
  readonly length: number;
  /** Items that each decodes to: as many, or more, of which the last ones are ignored. */
  readonly decodedLength: number;
  /** First item of the run in the array. */
  readonly start: number;
  /** Index of the run's first chunk. */
  readonly first: number;
}

/** The chunks along one axis of a rectilinear grid. Memory depends on the number of runs, not on that of chunks. */
export interface ChunkAxis {
  /** Items of the array. What lies behind them is padding. */
  readonly extent: number;
  /** In order, at least one. The last one has all other chunks. */
  readonly runs: readonly AxisRun[];
}

/** One chunk along an axis: its index in the grid, its first item in the array, and its lengths. */
export type AxisChunk = Omit<AxisRun, "first"> & { readonly index: number };

/** Creates an axis of runs that reach the end of the array, given by length and number of chunks. What lies behind the end is left out. */
export function createChunkAxis(
  given: readonly (Pick<AxisRun, "length" | "decodedLength"> & { readonly count: number })[],
  extent: number,
): ChunkAxis {
  const runs: AxisRun[] = [];
  let start = 0;
  let first = 0;
  for (const { length, decodedLength, count } of given) {
    if (start >= extent && runs.length > 0) break;
    const last = runs.at(-1);
    if (last?.length !== length || last.decodedLength !== decodedLength)
      runs.push({ length, decodedLength, start, first });
    start += length * count;
    first += count;
  }
  return { extent, runs };
}

/** Lists the chunks that have items between two places of the array. */
export function chunksWithin({ extent, runs }: ChunkAxis, begin: number, end: number): AxisChunk[] {
  let low = 0;
  for (let high = runs.length - 1; low < high; ) {
    const middle = (low + high + 1) >>> 1;
    if (runs[middle]!.start <= begin) low = middle;
    else high = middle - 1;
  }
  const chunks: AxisChunk[] = [];
  const stop = Math.min(end, extent);
  for (let place = begin; place < stop; ) {
    if (place === runs[low + 1]?.start) low += 1;
    const { first, start: origin, ...lengths } = runs[low]!;
    const number = Math.floor((place - origin) / lengths.length);
    const start = origin + number * lengths.length;
    chunks.push({ index: first + number, start, ...lengths });
    place = start + lengths.length;
  }
  return chunks;
}

/** Tells whether a chunk is one of a regular grid: it begins where that one does, and decodes to it with all its items. */
export function isRegularChunk({ extent }: ChunkAxis, chunk: AxisChunk, length: number): boolean {
  const { start, decodedLength } = chunk;
  return start % length === 0 && decodedLength === length && Math.min(length, extent - start) <= chunk.length;
}

/** Returns the shortest and the longest length that chunks decode to. */
export function lengthRangeOf({ runs }: ChunkAxis): readonly [shortest: number, longest: number] {
  const lengths = runs.map(({ decodedLength }) => decodedLength).sort((one, other) => one - other);
  return [lengths[0]!, lengths.at(-1)!];
}

/**
 * Chooses the chunk length of the regular grid that an axis is served with: the length that most items are stored in, among those of
 * which no chunk is made of too many stored ones. The shortest length is always such a one.
 * @param maxChunks Largest number of stored chunks along the axis of a served one.
 */
export function regularLengthOf({ extent, runs }: ChunkAxis, maxChunks: number): number {
  const items = new Map<number, number>();
  const spans = runs.map(({ length, decodedLength, start }, index) => {
    const span = (runs[index + 1]?.start ?? extent) - start;
    items.set(decodedLength, (items.get(decodedLength) ?? 0) + span);
    return { length, span };
  });
  spans.sort((one, other) => one.length - other.length);
  // As many of the shortest chunks as fit, wherever they lie, and one more at each end.
  const isBounded = (served: number): boolean => {
    let left = served;
    let count = 2;
    for (const { length, span } of spans) {
      count += Math.ceil(Math.min(left, span) / length);
      left -= Math.min(left, span);
      if (left === 0 || count > maxChunks) break;
    }
    return count <= maxChunks;
  };
  const candidates = [...items].sort(([, items], [, more]) => more - items).map(([length]) => length);
  return candidates.find(isBounded) ?? spans[0]!.length;
}
