import type { ChunkOutcome } from "../codec/made-chunk.js";
import { createLimiter, type Limiter } from "../collections/limiter.js";
import { errorToData, messageOf, ZpublishError } from "../errors.js";
import { elementCount } from "../model/chunk-grid.js";
import type { ChunkTask, GivenChunk } from "../pool/chunk-task.js";
import { isRemote, openChunkReader, storeOf } from "../source/chunk-reader.js";
import type { ChunkReader } from "../zarr/chunk-source.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";
import { maxStoredByteLength } from "../zarr/plan/max-stored-byte-length.js";
import { storedChunksOf } from "../zarr/plan/stored-chunks-of.js";

/** Makes a chunk; see `EncodePool.makeChunk`. */
export type MakeChunk = (task: ChunkTask, signal?: AbortSignal) => Promise<ChunkOutcome>;

/** Chunks whose stored bytes are read at a time: many, since each waits for another machine. */
const MAX_FEEDING = 128;
/** Bound of the stored bytes that wait for workers, estimated. */
const MAX_WAITING_BYTES = 256 * 2 ** 20;
/** The share of one store. Its chunks may hang, and those of others have to go on. */
const SHARE = 4;
/** Stored chunks behind one served chunk that are read at a time. */
const CONCURRENCY = 16;
/** Stored bytes that stay for neighbouring served chunks, which are often made of the same stored chunk. */
const MAX_RECENT_BYTES = 64 * 2 ** 20;
const GUESSED_ITEM_BYTES = 64;

/**
 * Wraps `makeChunk` so that workers get the stored bytes of chunks that they cannot read themselves. The server's thread reads them:
 * a worker that waits for another machine would make nothing meanwhile, and limits hold for the whole process.
 */
export function createWorkerFeed(makeChunk: MakeChunk): MakeChunk {
  const limiter = createLimiter({
    maxRunning: MAX_FEEDING,
    maxPerKey: MAX_FEEDING / SHARE,
    maxWaiting: Number.POSITIVE_INFINITY,
    maxCost: MAX_WAITING_BYTES,
  });
  /** By store; as many as are configured. */
  const shares = new Map<string, Limiter>();
  const recent = createRecentBytes();
  const feeds = new WeakMap<EncodingPlan, Feed>();

  function feedOf(plan: EncodingPlan): Feed {
    let feed = feeds.get(plan);
    if (feed === undefined) {
      feed = createFeed(plan);
      feeds.set(plan, feed);
    }
    return feed;
  }

  function shareOf(store: string): Limiter {
    let share = shares.get(store);
    if (share === undefined) {
      share = createLimiter({
        maxRunning: MAX_FEEDING / SHARE,
        maxPerKey: MAX_FEEDING / SHARE,
        maxWaiting: Number.POSITIVE_INFINITY,
        maxCost: MAX_WAITING_BYTES / SHARE,
      });
      shares.set(store, share);
    }
    return share;
  }

  async function feedAndMake(task: ChunkTask, feed: Feed, signal?: AbortSignal): Promise<ChunkOutcome> {
    try {
      const stored = await readAll(task, feed, recent);
      const outcome = await makeChunk({ ...task, plan: feed.plan, stored }, signal);
      // Bytes that cannot be decoded are read again.
      if (outcome.status === "failed") for (const chunk of stored) recent.remove(recentName(feed, chunk));
      return outcome;
    } catch (error) {
      return { status: "failed", error: errorToData(error) };
    }
  }

  return async (task, signal) => {
    if (!isRemote(task.plan.source)) return makeChunk(task, signal);
    const feed = feedOf(task.plan);
    try {
      const store = storeOf(task.plan.source);
      const all = feed.byteLength * storedChunksOf(task.plan, task.chunkCoords).length;
      const cost = Math.min(all, MAX_WAITING_BYTES / SHARE);
      const run = () => limiter.run(store, () => feedAndMake(task, feed, signal), signal, cost);
      return await shareOf(store).run(feed.name, run, signal, cost);
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

async function readAll(
  { plan, chunkCoords }: ChunkTask,
  feed: Feed,
  recent: RecentBytes,
): Promise<GivenChunk[]> {
  const all = storedChunksOf(plan, chunkCoords);
  const isShared = plan.kind === "rechunk";
  const given: GivenChunk[] = [];
  for (let from = 0; from < all.length; from += CONCURRENCY) {
    const some = all.slice(from, from + CONCURRENCY);
    given.push(
      ...(await Promise.all(
        some.map((coords) => readOne(plan, coords, feed, isShared ? recent : undefined)),
      )),
    );
  }
  return given;
}

/** @throws ZpublishError, naming the array and the chunk */
async function readOne(
  plan: EncodingPlan,
  coords: readonly number[],
  feed: Feed,
  recent: RecentBytes | undefined,
): Promise<GivenChunk> {
  const { reader } = feed;
  try {
    const version = recent && (await reader.version(coords));
    const found = version && recent?.get(recentName(feed, { coords, version }));
    if (found) return { coords, version, bytes: found };
    const maxByteLength = maxStoredByteLength(plan) ?? plan.maxFilledByteLength;
    const stored = await reader.read(coords, { maxByteLength, allocate: allocateShared });
    // The version of an absent chunk is its shard's, if there is one.
    if (stored === undefined) return { coords, version: await reader.version(coords), bytes: undefined };
    recent?.add(recentName(feed, { coords, version: stored.version }), stored.bytes);
    return { coords, version: stored.version, bytes: stored.bytes };
  } catch (error) {
    const { code, details } =
      error instanceof ZpublishError ? error : { code: "source-unreadable" as const, details: {} };
    const label = `array '${plan.path}': stored chunk ${coords.join(".") || "0"}`;
    throw new ZpublishError(code, `${label}: ${messageOf(error)}`, { details, cause: error });
  }
}

function recentName({ name }: Feed, { coords, version }: Omit<GivenChunk, "bytes">): string {
  return `${name}\n${coords.join(".")}\n${version}`;
}

/** Allocates memory that a worker reads without a copy, and that stays valid if the worker dies and another one takes over. */
function allocateShared(byteLength: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(new SharedArrayBuffer(byteLength)) as Uint8Array as Uint8Array<ArrayBuffer>;
}

/** Stored bytes that were read last. */
interface RecentBytes {
  get(name: string): Uint8Array | undefined;
  add(name: string, bytes: Uint8Array): void;
  remove(name: string): void;
}

function createRecentBytes(): RecentBytes {
  const recent = new Map<string, Uint8Array>();
  let byteLength = 0;

  function remove(name: string): Uint8Array | undefined {
    const bytes = recent.get(name);
    byteLength -= bytes?.length ?? 0;
    recent.delete(name);
    return bytes;
  }

  function add(name: string, bytes: Uint8Array): void {
    remove(name);
    recent.set(name, bytes);
    byteLength += bytes.length;
    for (const oldest of recent.keys()) {
      if (byteLength <= MAX_RECENT_BYTES) break;
      remove(oldest);
    }
  }

  return {
    add,
    remove,
    get(name) {
      const bytes = remove(name);
      if (bytes !== undefined) add(name, bytes);
      return bytes;
    },
  };
}
