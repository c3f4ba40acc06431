import type { ChunkOutcome } from "../codec/make-chunk.js";
import { pieceName, readNamed, storedChunkName } from "../codec/run-steps.js";
import { type BoundedMap, createBoundedMap } from "../collections/bounded-map.js";
import { createLimiter, type Limiter } from "../collections/limiter.js";
import { errorToData } from "../errors.js";
import { mapInLots } from "../event-loop/maybe-promise.js";
import { elementCount } from "../model/data-tree.js";
import { GUESSED_ITEM_BYTES } from "../model/data-type.js";
import { isReadForWorkers, openChunkReader, storeOf } from "../open/chunk-reader.js";
import type { ChunkTask, GivenBytes, GivenChunk } from "../pool/chunk-task.js";
import {
  type ChunkPiece,
  type ChunkPlaces,
  type ChunkReader,
  type ChunkSource,
  type PartChunkReader,
  PIECED,
  versionsOf,
} from "../zarr/chunk-reader.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";
import { storedChunksOfTask } from "../zarr/plan/item-pick.js";
import { maxStoredByteLength } from "../zarr/plan/max-stored-byte-length.js";
import { inLots, type MakeChunk } from "./lots.js";
import { createSharedMemory, type SharedMemoryLease } from "./memory.js";

/** Chunks whose stored bytes are read at a time: many, since each waits for another machine. */
const MAX_FEEDING = 128;
/** Bound of the stored bytes that wait for workers, estimated. */
const MAX_WAITING_BYTES = 256 * 2 ** 20;
/** The share of one store. Its chunks may hang, and those of others have to go on. */
const SHARE = 4;

/**
 * Runs the reading and making of a chunk when there is room for its stored bytes.
 * @param array Name of the array; arrays take turns.
 * @param byteLength Estimated bytes.
 * @throws as `Limiter.run`
 */
type RunInLimits = <T>(
  source: ChunkSource,
  array: string,
  byteLength: number,
  job: () => Promise<T>,
  signal?: AbortSignal,
) => Promise<T>;

/**
 * Creates limits without jobs. A chunk of a level waits until its chunks of the level below are made: with places of one limit, the
 * waiting ones could take all. So each level has its own limit, half as high as the level below, and each of its stores a share of that.
 */
function createFeedLimits(): RunInLimits {
  /** By level, and by level and store; as many as are configured. */
  const limiters = new Map<string, Limiter>();

  function limiterOf(name: string, maxRunning: number, maxPerKey: number, maxCost: number): Limiter {
    let limiter = limiters.get(name);
    if (limiter === undefined) {
      limiter = createLimiter({ maxRunning, maxPerKey, maxCost, maxWaiting: Number.POSITIVE_INFINITY });
      limiters.set(name, limiter);
    }
    return limiter;
  }

  return (source, array, byteLength, job, signal) => {
    const level = source.kind === "served" ? source.level : 0;
    const store = storeOf(source);
    const maxRunning = Math.max(SHARE, MAX_FEEDING * 2 ** -level);
    const maxCost = MAX_WAITING_BYTES * 2 ** -level;
    const ofStore = maxRunning / SHARE;
    const all = limiterOf(`${level}`, maxRunning, ofStore, maxCost);
    const share = limiterOf(`${level} ${store}`, ofStore, ofStore, maxCost / SHARE);
    const cost = Math.min(byteLength, maxCost / SHARE);
    return share.run(array, () => all.run(store, job, signal, cost), signal, cost);
  };
}

/** Stored bytes that were read last, and their version. */
type RecentBytes = BoundedMap<{ readonly bytes: Uint8Array; readonly version: string }>;

/** Reading of the stored chunks behind one served chunk. */
interface Reading {
  readonly recent: RecentBytes;
  /** Memory that the worker shares. */
  readonly lease: SharedMemoryLease;
  readonly signal: AbortSignal | undefined;
  /** Names in `recent` of what was read. */
  readonly names: string[];
}

/** A stored chunk that is read for a worker. */
interface WantedChunk {
  readonly reader: ChunkReader;
  readonly coords: readonly number[];
  /** Name that tells the array's chunks from others'. */
  readonly name: string;
  readonly maxByteLength: number;
  /** Whether some chunks of the array have other codecs than most. */
  readonly hasVariants: boolean;
  /** Whether the bytes stay for other served chunks. */
  readonly isKept: boolean;
}

/** Reads a stored chunk into memory that workers share. @throws what the reader throws */
async function readBytes(wanted: WantedChunk, reading: Reading): Promise<GivenBytes> {
  const { reader, coords, maxByteLength, hasVariants, isKept } = wanted;
  const { recent, lease, signal, names } = reading;
  const name = `${wanted.name}\n${coords.join(".")}`;
  const variant = hasVariants ? (reader.places?.variantOf(coords) ?? 0) : 0;
  const known = isKept ? recent.get(name) : undefined;
  if (isKept) names.push(name);
  if (known !== undefined && known.version === (await reader.version(coords, { signal })).token)
    return { version: known.version, variant, bytes: lease.place(known.bytes) };
  const stored = await reader.read(coords, { maxByteLength, signal, allocate: lease.allocate });
  // The version of an absent chunk is its shard's, if there is one.
  if (stored === undefined)
    return { version: (await reader.version(coords, { signal })).token, bytes: undefined };
  const { bytes, version } = stored;
  // A copy: the memory of the lease is another's later. Long bytes move to the worker.
  if (isKept && bytes.length <= MAX_RECENT_BYTES) recent.set(name, { bytes: bytes.slice(), version });
  return { version, variant, bytes: lease.place(bytes) };
}

/** A stored chunk of a joined array, and the parts' chunks that it is made of. */
interface FoundChunk {
  readonly coords: readonly number[];
  readonly variant: number;
  readonly pieces: readonly ChunkPiece[];
}

/** Lists the pieces of all stored chunks behind a served chunk. @throws ZpublishError naming array, chunk and part */
async function findPieces(task: ChunkTask, { parts }: PartChunkReader): Promise<FoundChunk[]> {
  const { plan } = task;
  return mapInLots(storedChunksOfTask(task), CONCURRENCY, async (coords) => {
    const pieces = await readNamed(storedChunkName(plan, coords), () => parts.piecesOf(coords));
    return { coords, variant: parts.variantOf(coords), pieces };
  });
}

/** Estimates the bytes of the pieces that workers do not read themselves; 0 if there are none. */
function bytesToRead(chunks: readonly FoundChunk[]): number {
  const lengths = new Map<string, number>();
  for (const { pieces } of chunks) {
    for (const piece of pieces) {
      if (isReadByWorkers(piece)) continue;
      const { chunkShape, itemSize } = piece.layout;
      lengths.set(keyOf(piece), elementCount(chunkShape) * (itemSize || GUESSED_ITEM_BYTES));
    }
  }
  return [...lengths.values()].reduce((sum, length) => sum + length, 0);
}

/**
 * Reads pieces, or tells workers where they read them. A part's chunk that lies in several chunks of the joined array is read once.
 * @param name Name that tells the array's chunks from others'.
 * @throws ZpublishError naming array, chunk and part
 */
async function readPieces(
  plan: EncodingPlan,
  name: string,
  chunks: readonly FoundChunk[],
  reading: Reading,
): Promise<GivenChunk[]> {
  const unread = new Map<string, () => Promise<GivenBytes>>();
  for (const { coords, variant, pieces } of chunks) {
    // Pieces seldom end where a chunk of the joined array does: its neighbour needs them, too.
    const isKept = plan.kind === "rechunk" || variant === PIECED;
    for (const piece of pieces) {
      if (isReadByWorkers(piece) || unread.has(keyOf(piece))) continue;
      const { reader, coords: own, layout, part } = piece;
      const maxByteLength = layout.maxStoredByteLength ?? plan.maxFilledByteLength;
      const hasVariants = layout.variants.length > 0;
      const wanted = { reader, coords: own, name: `${name}\n${part}`, maxByteLength, hasVariants, isKept };
      const read = () => readBytes(wanted, reading);
      unread.set(keyOf(piece), () =>
        readNamed(`${storedChunkName(plan, coords)}: ${pieceName(piece)}`, read),
      );
    }
  }
  const entries = await mapInLots(
    [...unread],
    CONCURRENCY,
    async ([key, read]) => [key, await read()] as const,
  );
  const bytes = new Map(entries);
  return chunks.map(({ coords, variant, pieces }) => ({
    ...{ coords, variant, version: undefined, bytes: undefined },
    pieces: pieces.map((piece) => {
      const { reader: _reader, ...rest } = piece;
      return { ...rest, given: bytes.get(keyOf(piece)) ?? placeOf(piece) };
    }),
  }));
}

function isReadByWorkers({ reader }: ChunkPiece): boolean {
  return reader.source !== undefined || reader.places?.placeOf !== undefined;
}

/** Tells where a worker reads a piece. */
function placeOf({ reader, coords }: ChunkPiece): GivenBytes {
  if (reader.source !== undefined) return { version: undefined, bytes: undefined, source: reader.source };
  const place = reader.places?.placeOf?.(coords);
  return { version: place?.version, bytes: undefined, ...(place && { place }) };
}

function keyOf({ part, coords }: ChunkPiece): string {
  return `${part}\n${coords.join(".")}`;
}

/** Stored chunks behind one served chunk that are read at a time. */
const CONCURRENCY = 16;
/** Stored bytes that stay for neighbouring served chunks, which are often made of the same stored chunk. */
const MAX_RECENT_BYTES = 64 * 2 ** 20;
/** Bound of the memory that is shared with workers. Bytes beyond it are copied to them. */
const MAX_SHARED_BYTES = 256 * 2 ** 20;
/** Chunks of joined arrays whose pieces are known at a time: lists of thousands. A store has a quarter of them. */
const MAX_JOINING = 256;

/**
 * Wraps `makeChunk` so that workers get the stored bytes of chunks that they cannot read themselves, or their places in local files. The
 * server's thread reads, since a worker that waits for another machine makes nothing, and limits hold for the whole process.
 */
export function createWorkerFeed(makeChunk: MakeChunk): MakeChunk {
  const runInLimits = createFeedLimits();
  const recent: RecentBytes = createBoundedMap({
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
      const name = JSON.stringify(plan.source);
      feed = {
        name,
        reader: openChunkReader(plan.source),
        plan: { ...plan, source: { kind: "given", name } },
        byteLength: elementCount(plan.stored.chunkShape) * (plan.itemSize || GUESSED_ITEM_BYTES),
      };
      feeds.set(plan, feed);
    }
    return feed;
  }

  /** Returns a task as a worker gets it. */
  function fedTask(task: ChunkTask): ChunkTask {
    const fed = { ...task, plan: feedOf(task.plan).plan };
    return task.others === undefined ? fed : { ...fed, others: task.others.map(fedTask) };
  }

  /** @param read Reads the stored chunks. */
  async function feedAndMake(
    task: ChunkTask,
    read: (reading: Reading) => Promise<GivenChunk[]>,
    signal: AbortSignal | undefined,
  ): Promise<ChunkOutcome> {
    const lease = shared.lease();
    const reading: Reading = { recent, lease, signal, names: [] };
    let hasEnded = false;
    try {
      const stored = await read(reading);
      const outcome = await makeChunk({ ...fedTask(task), stored }, signal);
      hasEnded = outcome.status !== "failed";
      // Bytes that cannot be decoded are read again. After `cancelled`, the worker has answered or has never begun.
      hasEnded ||= outcome.status === "failed" && outcome.error.code === "cancelled";
      if (!hasEnded) for (const name of reading.names) recent.delete(name);
      return outcome;
    } catch (error) {
      return { status: "failed", error: errorToData(error) };
    } finally {
      // A worker whose task has failed may be at it still.
      lease.end(hasEnded);
    }
  }

  /** Looks at what items are picked from, as is done before chunks are served. @throws ZpublishError `source-changed`, naming the dataset */
  async function assertUnchanged(task: ChunkTask, reader: ChunkReader): Promise<void> {
    if (task.pick !== undefined) await versionsOf(reader, storedChunksOfTask(task));
  }

  /** Makes a chunk of a joined array. */
  async function makeOfParts(
    task: ChunkTask,
    feed: Feed,
    reader: PartChunkReader,
    signal: AbortSignal | undefined,
  ): Promise<ChunkOutcome> {
    const { plan } = task;
    await assertUnchanged(task, reader);
    const chunks = await findPieces(task, reader);
    const byteLength = bytesToRead(chunks);
    const read = (reading: Reading) => readPieces(plan, feed.name, chunks, reading);
    const run = () => feedAndMake(task, read, signal);
    return byteLength === 0 ? run() : runInLimits(plan.source, feed.name, byteLength, run, signal);
  }

  return inLots(async (task, signal) => {
    const { plan } = task;
    const { source } = plan;
    if (!isReadForWorkers(source)) return makeChunk(task, signal);
    const feed = feedOf(plan);
    const placeOf = feed.reader.places?.placeOf;
    try {
      if (placeOf !== undefined) {
        await assertUnchanged(task, feed.reader);
        return await makeChunk({ ...fedTask(task), stored: findAll(task, placeOf) }, signal);
      }
      if (source.kind === "parts") {
        const run = () => makeOfParts(task, feed, source.openReader(), signal);
        return await joined.run(source.store, run, signal);
      }
      const byteLength = feed.byteLength * storedChunksOfTask(task).length;
      const run = () => feedAndMake(task, (reading) => readAll(task, feed, reading), signal);
      return await runInLimits(source, feed.name, byteLength, run, signal);
    } catch (error) {
      return { status: "failed", error: errorToData(error) };
    }
  });
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

/** Finds the stored chunks of a local file. Workers read them one after the other: there may be more than fit into memory. */
function findAll(task: ChunkTask, placeOf: NonNullable<ChunkPlaces["placeOf"]>): GivenChunk[] {
  return storedChunksOfTask(task).map((coords) => {
    const place = placeOf(coords);
    return { coords, version: place?.version, bytes: undefined, ...(place && { place }) };
  });
}

async function readAll(task: ChunkTask, feed: Feed, reading: Reading): Promise<GivenChunk[]> {
  const { plan } = task;
  const { reader, name } = feed;
  const maxByteLength = maxStoredByteLength(plan) ?? plan.maxFilledByteLength;
  // Only chunks that are cut into several are of use again, and those that were made here are in the cache.
  const isKept = plan.kind === "rechunk" && plan.source.kind !== "served";
  const hasVariants = plan.variants !== undefined;
  return mapInLots(storedChunksOfTask(task), CONCURRENCY, async (coords) => {
    const read = () => readBytes({ reader, coords, name, maxByteLength, hasVariants, isKept }, reading);
    return { coords, ...(await readNamed(storedChunkName(plan, coords), read)) };
  });
}
