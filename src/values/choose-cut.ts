import { combinations } from "../collections/combinations.js";
import { createSlice } from "../event-loop/cooperative-task.js";
import { workThrough } from "../event-loop/work-through.js";
import { elementCount } from "../model/data-tree.js";
import { chunksOfPoints, type PickedGrid } from "../zarr/plan/cut-selection.js";
import { type PickedAxis, partsOfAxis } from "../zarr/plan/item-pick.js";
import type { StoredArray } from "../zarr/stored-array.js";

/** How an array is cut. */
export interface ArrayCut extends PickedGrid {
  readonly stored: Pick<StoredArray, "path" | "shape" | "chunks">;
}

/** Cost of reading a selection from another cut of an array than the stored one. */
export interface CutCost {
  /** Decoded bytes of the chunks that the selection touches. */
  readonly touchedBytes: number;
  /** Decoded bytes of the stored chunks that have to be read to make those of them that are not cached. */
  readonly makingBytes: number;
}

/** Times the bytes of the stored chunks of a selection that making chunks of another cut may take: they are made once. */
const MAX_MAKING = 4;

/**
 * Chooses the cut that a selection is read from: the one of whose chunks it touches the fewest decoded bytes, among those whose missing
 * chunks are made of at most four times the bytes that the selection touches of stored chunks.
 * @param storedBytes Decoded bytes of the stored chunks that the selection touches.
 * @returns The position of the cut; -1 for the stored one, which also wins a tie.
 */
export function chooseCut(storedBytes: number, cuts: readonly CutCost[]): number {
  let [best, least] = [-1, storedBytes];
  for (const [index, { touchedBytes, makingBytes }] of cuts.entries()) {
    if (touchedBytes >= least || makingBytes > MAX_MAKING * storedBytes) continue;
    [best, least] = [index, touchedBytes];
  }
  return best;
}

/** Finds the chunks that a selection touches, in a grid of any chunks. */
export type Touching = (cut: ArrayCut) => Promise<TouchedChunks>;

/** The chunks that a selection touches. */
interface TouchedChunks {
  readonly list: Iterable<readonly number[]>;
  /** Counts them; `weight` says how much a chunk counts along each axis. Default 1. */
  count(weight?: AxisWeight): Promise<number> | number;
}

/** Weight of the chunks of one index along one axis; that of a chunk is the product. */
type AxisWeight = (axis: number, index: number) => number;

/** Finds the chunks that a box touches. */
export function touchedByBox(box: readonly PickedAxis[]): Touching {
  return async ({ chunkShape }) => {
    const indexes = box.map((axis, at) =>
      Array.from(partsOfAxis(axis, chunkShape[at]!), ({ chunk }) => chunk),
    );
    const count = (weight: AxisWeight = () => 1) =>
      elementCount(indexes.map((each, axis) => each.reduce((sum, index) => sum + weight(axis, index), 0)));
    return { list: combinations(indexes), count };
  };
}

/** Finds the chunks that points touch; missing ones touch none. @param points As in `Values.readPoints`. */
export function touchedByPoints(points: ArrayLike<number>): Touching {
  return async ({ chunkShape, stored }) => {
    const { chunks } = await chunksOfPoints(points, stored, chunkShape);
    async function count(weight?: AxisWeight): Promise<number> {
      if (weight === undefined) return chunks.length;
      const slice = createSlice();
      let sum = 0;
      for (const coords of chunks) {
        sum += elementCount(coords.map((index, axis) => weight(axis, index)));
        if (slice.isOver()) await slice.next();
      }
      return sum;
    }
    return { list: chunks, count };
  };
}

/** Chunks whose place in the cache is looked up at a time. */
const LOOKS_AT_ONCE = 16;

/**
 * Finds the cut from which a selection is best read; undefined for the stored one. Without a cache that is always best, and so it is if
 * it cannot be found out what is cached.
 * @param cuts Other cuts of the array.
 */
export async function findBestCut<Cut extends ArrayCut>(
  stored: Cut,
  cuts: readonly Cut[],
  touching: Touching,
  signal: AbortSignal | undefined,
): Promise<Cut | undefined> {
  const bytesOf = async (touched: TouchedChunks, { chunkBytes }: Cut) => (await touched.count()) * chunkBytes;
  const storedBytes = await bytesOf(await touching(stored), stored);
  const costs = cuts.map(async (cut): Promise<CutCost> => {
    const touched = await touching(cut);
    const touchedBytes = await bytesOf(touched, cut);
    if (touchedBytes >= storedBytes) return { touchedBytes, makingBytes: 0 };
    const makingBytes = await makingBytesOf(cut, stored, touched, MAX_MAKING * storedBytes, signal);
    return { touchedBytes, makingBytes };
  });
  return cuts[chooseCut(storedBytes, await Promise.all(costs))];
}

/**
 * Sums the bytes of stored chunks behind the touched chunks of a cut. If they are more than `enough`, those behind cached ones are left
 * out; infinite if the others still are, or if there is no cache.
 */
async function makingBytesOf(
  cut: ArrayCut,
  stored: ArrayCut,
  touched: TouchedChunks,
  enough: number,
  signal: AbortSignal | undefined,
): Promise<number> {
  const { chunkShape } = cut;
  const { shape, chunks } = cut.stored;
  const reader = chunks.kind === "served" ? chunks.openReader() : undefined;
  const behind: AxisWeight = (axis, index) => {
    const begin = index * chunkShape[axis]!;
    const end = Math.min(begin + chunkShape[axis]!, shape[axis]!);
    const length = stored.chunkShape[axis]!;
    return Math.ceil(end / length) - Math.floor(begin / length);
  };
  const all = (await touched.count(behind)) * stored.chunkBytes;
  const bytesBehind = (coords: readonly number[]) =>
    elementCount(coords.map((index, axis) => behind(axis, index))) * stored.chunkBytes;
  const isCached = async (coords: readonly number[]): Promise<boolean> => {
    const found = await reader?.isCached?.(coords, signal);
    if (found === undefined) throw new Error("expected a cache, received none");
    return found;
  };
  try {
    if (all <= enough) {
      const [first] = touched.list;
      // Whether there is a cache.
      if (first !== undefined) await isCached(first);
      return all;
    }
    let bytes = 0;
    await workThrough(touched.list, LOOKS_AT_ONCE, async (coords) => {
      if (!(await isCached(coords))) bytes += bytesBehind(coords);
      if (bytes > enough) throw new Error("expected fewer bytes");
    });
    return bytes;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
