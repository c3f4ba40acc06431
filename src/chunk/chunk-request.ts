import type { CacheKey } from "../cache/cache-key.js";
import type { ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import { checkStoredLength } from "./check-stored-chunk.js";
import type { ChunkAccess } from "./chunk-access.js";

/** The request of one chunk, once it is known to name one. */
export interface ChunkRequest {
  readonly array: ServedArray;
  readonly access: ChunkAccess;
  readonly coords: readonly number[];
  /** Undefined: nothing stored behind it, or nobody looked because the dataset is immutable. */
  readonly stamp: string | undefined;
  readonly cacheKey: CacheKey;
  readonly notFound: () => ZpublishError;
  /** The turn of the event loop in which the cache did not have it, and the milliseconds it took to find that out. */
  missedIn: number;
  lookupMs: number;
}

/**
 * The reply's ETag speaks of the stored bytes with one stamp: other bytes must not go out under it, nor their length, nor
 * into the cache.
 */
export function refuseOtherStamp({ array, stamp }: ChunkRequest, read: string): void {
  if (stamp === undefined || read === stamp) return;
  throw new ZpublishError(
    "source-changed",
    `a chunk of '${array.plan.path}' changed while it was being read`,
  );
}

/** A file that was there a moment ago is not absent before somebody has looked again. A chunk within a shard may be. */
export function refuseSudden({ array, stamp }: ChunkRequest): void {
  if (stamp === undefined || array.plan.source.kind !== "files") return;
  throw new ZpublishError("source-changed", `a chunk of '${array.plan.path}' went while it was being read`);
}

/** Cheap where the stored bytes are the served ones; undefined asks for the body. */
export async function byteLengthOf(request: ChunkRequest): Promise<number | undefined> {
  const { array, access, coords, notFound } = request;
  if (array.plan.kind !== "passthrough") return undefined;
  const size = await access.reader.measure(coords);
  if (size === undefined) {
    refuseSudden(request);
    if (array.plan.absentIsAbsent) throw notFound();
    return undefined;
  }
  refuseOtherStamp(request, size.stamp);
  checkStoredLength(array.plan, coords, size.byteLength);
  return size.byteLength;
}
