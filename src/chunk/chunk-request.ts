import type { CacheKey } from "../cache/cache-key.js";
import type { ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import { refuseLonger } from "../source/max-stored-byte-length.js";
import { checkStoredLength } from "./check-stored-chunk.js";
import { absentStampOf, type ChunkAccess, stampOfChunk } from "./chunk-access.js";

/** The request of one chunk, once it is known to name one. */
export interface ChunkRequest {
  readonly array: ServedArray;
  readonly access: ChunkAccess;
  readonly coords: readonly number[];
  /** Undefined: nothing stored behind it, or nobody looked. */
  readonly stamp: string | undefined;
  /** False: the dataset is immutable. */
  readonly wasLookedAt: boolean;
  readonly cacheKey: CacheKey;
  readonly notFound: () => ZpublishError;
  /** The turn of the event loop in which the cache did not have it, and the milliseconds it took to find that out. */
  missedIn: number;
  lookupMs: number;
}

/**
 * The reply's ETag speaks of the stored bytes with one stamp, or of none: other bytes must not go out under it, nor their
 * length, nor into the cache, where those of all chunks that are not there are one entry.
 */
export function refuseOtherStamp({ array, coords, stamp, wasLookedAt }: ChunkRequest, read: string): void {
  if (!wasLookedAt || read === (stamp ?? absentStampOf(array, coords))) return;
  throw new ZpublishError(
    "source-changed",
    `a chunk of '${array.plan.path}' changed while it was being read`,
  );
}

/** A file that was there a moment ago is not absent before somebody has looked again. A chunk within a shard that is there may be. */
export async function refuseSudden({ array, access, coords, stamp }: ChunkRequest): Promise<void> {
  if (stamp === undefined || array.plan.source.kind === "memory") return;
  if (array.plan.source.kind === "shards" && (await stampOfChunk(access, array, coords)) === stamp) return;
  throw new ZpublishError("source-changed", `a chunk of '${array.plan.path}' went while it was being read`);
}

/** Cheap where the stored bytes are the served ones; undefined asks for the body. */
export async function byteLengthOf(request: ChunkRequest): Promise<number | undefined> {
  const { array, access, coords, notFound } = request;
  if (array.plan.kind !== "passthrough") return undefined;
  const size = await access.reader.measure(coords);
  if (size === undefined) {
    await refuseSudden(request);
    if (array.plan.absentIsAbsent) throw notFound();
    return undefined;
  }
  refuseOtherStamp(request, size.stamp);
  checkStoredLength(array.plan, coords, size.byteLength);
  refuseLonger(
    size.byteLength,
    access.maxStoredByteLength,
    size.stamp,
    () => `'${array.plan.path}' chunk ${coords.join(".")}`,
  );
  return size.byteLength;
}
