import { readNamed } from "../codec/decode-stored.js";
import type { ChunkOutcome } from "../codec/made-chunk.js";
import { type ByteBoundedMap, createByteBoundedMap } from "../collections/byte-bounded-map.js";
import { errorToData } from "../errors.js";
import { mapInLots } from "../event-loop/map-in-lots.js";
import { elementCount } from "../model/chunk-grid.js";
import type { ChunkTask, GivenChunk } from "../pool/chunk-task.js";
import { isReadForWorkers, openChunkReader } from "../source/chunk-reader.js";
import type { ChunkReader } from "../zarr/chunk-source.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";
import { maxStoredByteLength } from "../zarr/plan/max-stored-byte-length.js";
import { storedChunksOf } from "../zarr/plan/stored-chunks-of.js";
import { createFeedLimits } from "./feed-limits.js";
import { createSharedMemory, type MemoryLease } from "./shared-memory.js";

/** Makes a chunk; see `EncodePool.makeChunk`. */
export type MakeChunk = (task: ChunkTask, signal?: AbortSignal) => Promise<ChunkOutcome>;

/** Stored chunks behind one served chunk that are read at a time. */
const CONCURRENCY = 16;
/** Stored bytes that stay for neighbouring served chunks, which are often made of the same stored chunk. */
const MAX_RECENT_BYTES = 64 * 2 ** 20;
/** Bound of the memory that is shared with workers. Bytes beyond it are copied to them. */
const MAX_SHARED_BYTES = 256 * 2 ** 20;
const GUESSED_ITEM_BYTES = 64;

/** Stored bytes that were read last. */
type RecentBytes = ByteBoundedMap<Uint8Array>;

/**
 * Wraps `makeChunk` so that workers get the stored bytes of chunks that they cannot read themselves. The server's thread reads them:
 * a worker that waits for another machine would make nothing meanwhile, and limits hold for the whole process. Of chunks in local
 * files workers get the places, which only the server's thread knows, and read them.
 */
export function createWorkerFeed(makeChunk: MakeChunk): MakeChunk {
  const limits = createFeedLimits();
  const recent: RecentBytes = createByteBoundedMap({
    maxBytes: MAX_RECENT_BYTES,
    byteLengthOf: (bytes: Uint8Array) => bytes.length,
  });
  const shared = createSharedMemory(MAX_SHARED_BYTES);
  const feeds = new WeakMap<EncodingPlan, Feed>();

  function feedOf(plan: EncodingPlan): Feed {
    let feed = feeds.get(plan);
    if (feed === undefined) {
      feed = createFeed(plan);
      feeds.set(plan, feed);
    }
    return feed;
  }

  async function feedAndMake(task: ChunkTask, feed: Feed, signal?: AbortSignal): Promise<ChunkOutcome> {
    const lease = shared.lease();
    let hasEnded = false;
    try {
      const stored = await readAll(task, feed, recent, lease, signal);
      const outcome = await makeChunk({ ...task, plan: feed.plan, stored }, signal);
      hasEnded = outcome.status !== "failed";
      // Bytes that cannot be decoded are read again.
      if (!hasEnded) for (const chunk of stored) recent.take(recentName(feed, chunk));
      return outcome;
    } catch (error) {
      return { status: "failed", error: errorToData(error) };
    } finally {
      // A worker whose task has failed may be at it still.
      lease.end(hasEnded);
    }
  }

  return async (task, signal) => {
    if (!isReadForWorkers(task.plan.source)) return makeChunk(task, signal);
    const feed = feedOf(task.plan);
    if (feed.reader.placeOf !== undefined)
      return makeChunk({ ...task, plan: feed.plan, stored: findAll(task, feed.reader.placeOf) }, signal);
    try {
      const byteLength = feed.byteLength * storedChunksOf(task.plan, task.chunkCoords).length;
      const run = () => feedAndMake(task, feed, signal);
      return await limits.run(task.plan.source, feed.name, byteLength, run, signal);
    } catch (error) {
      return { status: "failed", error: errorToData(error) };
    }
  };
}

/** Reading for one plan. */
interface Feed {
  readonly name: string;
  readonly reader: ChunkReader;
  /** The plan as a worker gets it. */
  readonly plan: EncodingPlan;
  /** Estimated bytes of a stored chunk. */
  readonly byteLength: number;
}

function createFeed(plan: EncodingPlan): Feed {
  const name = JSON.stringify(plan.source);
  return {
    name,
    reader: openChunkReader(plan.source),
    plan: { ...plan, source: { kind: "given", name } },
    byteLength: elementCount(plan.stored.chunkShape) * (plan.itemSize || GUESSED_ITEM_BYTES),
  };
}

/** Finds the stored chunks of a local file. Workers read them one after the other: there may be more than fit into memory. */
function findAll(
  { plan, chunkCoords }: ChunkTask,
  placeOf: NonNullable<ChunkReader["placeOf"]>,
): GivenChunk[] {
  return storedChunksOf(plan, chunkCoords).map((coords) => {
    const place = placeOf(coords);
    return { coords, version: place?.version, bytes: undefined, ...(place && { place }) };
  });
}

function readAll(
  { plan, chunkCoords }: ChunkTask,
  feed: Feed,
  recent: RecentBytes,
  lease: MemoryLease,
  signal: AbortSignal | undefined,
): Promise<GivenChunk[]> {
  // Only chunks that are cut into several are of use again, and those that were made here are in the cache.
  const kept = plan.kind === "rechunk" && plan.source.kind !== "served" ? recent : undefined;
  return mapInLots(storedChunksOf(plan, chunkCoords), CONCURRENCY, (coords) =>
    readNamed(plan, coords, readOne(plan, coords, feed, kept, lease, signal)),
  );
}

async function readOne(
  plan: EncodingPlan,
  coords: readonly number[],
  feed: Feed,
  recent: RecentBytes | undefined,
  lease: MemoryLease,
  signal: AbortSignal | undefined,
): Promise<GivenChunk> {
  const { reader } = feed;
  const version = recent && (await reader.version(coords));
  const found = version && recent?.get(recentName(feed, { coords, version }));
  const variant = plan.variants === undefined ? 0 : (reader.variantOf?.(coords) ?? 0);
  if (found) return { coords, version, variant, bytes: lease.place(found) };
  const maxByteLength = maxStoredByteLength(plan) ?? plan.maxFilledByteLength;
  // What is kept is not in memory that others get later.
  const allocate = recent === undefined ? { allocate: lease.allocate } : {};
  const stored = await reader.read(coords, { maxByteLength, signal, ...allocate });
  // The version of an absent chunk is its shard's, if there is one.
  if (stored === undefined) return { coords, version: await reader.version(coords), bytes: undefined };
  recent?.set(recentName(feed, { coords, version: stored.version }), stored.bytes);
  return { coords, version: stored.version, variant, bytes: lease.place(stored.bytes) };
}

function recentName({ name }: Feed, { coords, version }: Omit<GivenChunk, "bytes">): string {
  return `${name}\n${coords.join(".")}\n${version}`;
}
