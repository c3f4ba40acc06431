import { readNamed, storedChunkName } from "../codec/chunk-input.js";
import type { ChunkOutcome } from "../codec/made-chunk.js";
import { createByteBoundedMap } from "../collections/byte-bounded-map.js";
import { createLimiter } from "../collections/limiter.js";
import { errorToData } from "../errors.js";
import { mapInLots } from "../event-loop/map-in-lots.js";
import { elementCount } from "../model/chunk-grid.js";
import { isReadForWorkers, openChunkReader } from "../open/chunk-reader.js";
import type { ChunkTask, GivenChunk } from "../pool/chunk-task.js";
import type { ChunkReader, PartChunkReader } from "../zarr/chunk-reader.js";
import { storedChunksOf } from "../zarr/plan/create-encoding-plan.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";
import { maxStoredByteLength } from "../zarr/plan/max-stored-byte-length.js";
import { createFeedLimits } from "./feed-limits.js";
import { bytesToRead, findPieces, GUESSED_ITEM_BYTES, readPieces } from "./feed-pieces.js";
import { type Reading, type RecentBytes, readBytes } from "./read-bytes.js";
import { createSharedMemory } from "./shared-memory.js";

/** Makes a chunk; see `EncodePool.makeChunk`. */
export type MakeChunk = (task: ChunkTask, signal?: AbortSignal) => Promise<ChunkOutcome>;

/** Stored chunks behind one served chunk that are read at a time. */
const CONCURRENCY = 16;
/** Stored bytes that stay for neighbouring served chunks, which are often made of the same stored chunk. */
const MAX_RECENT_BYTES = 64 * 2 ** 20;
/** Bound of the memory that is shared with workers. Bytes beyond it are copied to them. */
const MAX_SHARED_BYTES = 256 * 2 ** 20;
/** Chunks of joined arrays whose pieces are known at a time: lists of thousands. A store has a quarter of them. */
const MAX_JOINING = 256;

/**
 * Wraps `makeChunk` so that workers get the stored bytes of chunks that they cannot read themselves. The server's thread reads them:
 * a worker that waits for another machine would make nothing meanwhile, and limits hold for the whole process. Of chunks in local
 * files workers get the places, which only the server's thread knows, and read them.
 */
export function createWorkerFeed(makeChunk: MakeChunk): MakeChunk {
  const limits = createFeedLimits();
  const recent: RecentBytes = createByteBoundedMap({
    maxBytes: MAX_RECENT_BYTES,
    byteLengthOf: ({ bytes }) => bytes.length,
  });
  const shared = createSharedMemory(MAX_SHARED_BYTES);
  const joined = createLimiter({
    maxRunning: MAX_JOINING,
    maxPerKey: MAX_JOINING / 4,
    maxWaiting: Number.POSITIVE_INFINITY,
  });
  const feeds = new WeakMap<EncodingPlan, Feed>();

  function feedOf(plan: EncodingPlan): Feed {
    let feed = feeds.get(plan);
    if (feed === undefined) {
      feed = createFeed(plan);
      feeds.set(plan, feed);
    }
    return feed;
  }

  /** @param read Reads the stored chunks. */
  async function feedAndMake(
    task: ChunkTask,
    feed: Feed,
    read: (reading: Reading) => Promise<GivenChunk[]>,
    signal: AbortSignal | undefined,
  ): Promise<ChunkOutcome> {
    const lease = shared.lease();
    const reading: Reading = { recent, lease, signal, names: [] };
    let hasEnded = false;
    try {
      const stored = await read(reading);
      const outcome = await makeChunk({ ...task, plan: feed.plan, stored }, signal);
      hasEnded = outcome.status !== "failed";
      // Bytes that cannot be decoded are read again.
      if (!hasEnded) for (const name of reading.names) recent.take(name);
      return outcome;
    } catch (error) {
      return { status: "failed", error: errorToData(error) };
    } finally {
      // A worker whose task has failed may be at it still.
      lease.end(hasEnded);
    }
  }

  /** Makes a chunk of a joined array. */
  async function makeOfParts(
    task: ChunkTask,
    feed: Feed,
    reader: PartChunkReader,
    signal: AbortSignal | undefined,
  ): Promise<ChunkOutcome> {
    const { plan, chunkCoords } = task;
    const chunks = await findPieces(plan, reader, chunkCoords, CONCURRENCY);
    const byteLength = bytesToRead(chunks);
    const read = (reading: Reading) => readPieces(plan, feed.name, chunks, reading, CONCURRENCY);
    const run = () => feedAndMake(task, feed, read, signal);
    return byteLength === 0 ? run() : limits.run(plan.source, feed.name, byteLength, run, signal);
  }

  return async (task, signal) => {
    const { plan, chunkCoords } = task;
    const { source } = plan;
    if (!isReadForWorkers(source)) return makeChunk(task, signal);
    const feed = feedOf(plan);
    const { reader } = feed;
    if (reader.placeOf !== undefined)
      return makeChunk({ ...task, plan: feed.plan, stored: findAll(task, reader.placeOf) }, signal);
    try {
      if (source.kind === "parts") {
        const run = () => makeOfParts(task, feed, reader as PartChunkReader, signal);
        return await joined.run(source.store, run, signal);
      }
      const byteLength = feed.byteLength * storedChunksOf(plan, chunkCoords).length;
      const run = () => feedAndMake(task, feed, (reading) => readAll(task, feed, reading), signal);
      return await limits.run(source, feed.name, byteLength, run, signal);
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

function readAll({ plan, chunkCoords }: ChunkTask, feed: Feed, reading: Reading): Promise<GivenChunk[]> {
  const { reader, name } = feed;
  const maxByteLength = maxStoredByteLength(plan) ?? plan.maxFilledByteLength;
  // Only chunks that are cut into several are of use again, and those that were made here are in the cache.
  const isKept = plan.kind === "rechunk" && plan.source.kind !== "served";
  const hasVariants = plan.variants !== undefined;
  return mapInLots(storedChunksOf(plan, chunkCoords), CONCURRENCY, async (coords) => {
    const given = readBytes({ reader, coords, name, maxByteLength, hasVariants, isKept }, reading);
    return { coords, ...(await readNamed(storedChunkName(plan, coords), given)) };
  });
}
