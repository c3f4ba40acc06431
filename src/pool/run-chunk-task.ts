import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { pickItems } from "../codec/items/pick-items.js";
import { type ChunkOutcome, makeChunk } from "../codec/make-chunk.js";
import { createDecodedCache, type DecodedCache, type DecodedChunks } from "../codec/run-steps.js";
import { loadZstd } from "../codec/zstd.js";
import { createBoundedMap } from "../collections/bounded-map.js";
import { errorToData, ZpublishError } from "../errors.js";
import { whenDone } from "../event-loop/maybe-promise.js";
import { memoryFor } from "../formats/file-index.js";
import { openChunkReader } from "../open/chunk-reader.js";
import type { ByteStore, ReadObjectOptions } from "../stores/byte-store.js";
import { createFileStore } from "../stores/file-store.js";
import {
  type ChunkPiece,
  type ChunkReader,
  type ChunkSource,
  type LocalPlace,
  PIECED,
  type StoredChunk,
  type ThreadSource,
  versionOfPassed,
  versionOfPieces,
} from "../zarr/chunk-reader.js";
import type { CodecStep } from "../zarr/codec-step.js";
import { assertStoredLength } from "../zarr/plan/max-stored-byte-length.js";
import {
  type CallOutcome,
  type ChunkTask,
  failedCall,
  type GivenBytes,
  type GivenChunk,
  type ModuleCall,
  memoryOfTask,
} from "./chunk-task.js";

/** Local files and stores that a worker opens, and keeps open. */
interface GivenPlaces {
  readonly filesOf: (directory: string) => ByteStore;
  readonly readerOf: (source: ThreadSource) => ChunkReader;
}

/** A chunk that came with a task, as it is read. */
interface OpenChunk {
  readonly reader: ChunkReader;
  /** Undefined if the chunk is not put together. */
  readonly pieces?: readonly ChunkPiece[];
}

/** Opens a reader of chunks that came with a task. */
function openGivenReader(stored: readonly GivenChunk[], places: GivenPlaces): ChunkReader {
  const chunks = new Map(stored.map((chunk) => [chunk.coords.join("."), openChunk(chunk, places)]));
  const absent: OpenChunk = { reader: readerOfBytes(ABSENT, places) };
  const find = (coords: readonly number[]) => chunks.get(coords.join(".")) ?? absent;
  return {
    version: (coords) => find(coords).reader.version(coords),
    read: (coords, options) => find(coords).reader.read(coords, options),
    parts: {
      variantOf: (coords) => (find(coords).pieces === undefined ? 0 : PIECED),
      piecesOf: async (coords) => find(coords).pieces ?? [],
    },
  };
}

const ABSENT: GivenBytes = { version: undefined, bytes: undefined };

function openChunk(chunk: GivenChunk, places: GivenPlaces): OpenChunk {
  if (chunk.pieces === undefined) return { reader: readerOfBytes(chunk, places) };
  const pieces = chunk.pieces.map(({ given, ...piece }) => ({
    ...piece,
    reader: readerOfBytes(given, places),
  }));
  const [only] = pieces;
  if (chunk.variant === PIECED || only === undefined) return { reader: readerOfPieces(pieces), pieces };
  return { reader: readerOfPassed(only) };
}

/** Opens a reader of one chunk, whose coordinates it knows unless the worker opens its source. */
function readerOfBytes(
  { version, variant = 0, bytes, place, source }: GivenBytes,
  places: GivenPlaces,
): ChunkReader {
  if (source !== undefined) return places.readerOf(source);
  return {
    version: () => ({ token: version }),
    read(_coords, { allocate, maxByteLength } = {}) {
      if (place !== undefined)
        return readPlace(places.filesOf(place.directory), place, { allocate, maxByteLength });
      if (bytes === undefined) return undefined;
      if (bytes.buffer instanceof ArrayBuffer)
        return { bytes: bytes as Uint8Array<ArrayBuffer>, version: version ?? "", variant };
      // Codecs expect memory that is not shared.
      const own = allocate?.(bytes.length) ?? new Uint8Array(bytes.length);
      own.set(bytes);
      return { bytes: own, version: version ?? "", variant };
    },
  };
}

/** Opens a reader of a chunk of a joined array that is one chunk of a part. */
function readerOfPassed(piece: ChunkPiece): ChunkReader {
  const { reader, coords } = piece;
  return {
    version: () =>
      whenDone(reader.version(coords), ({ token }) => ({ token: token && versionOfPassed(piece, token) })),
    read: (_coords, options) =>
      whenDone(
        reader.read(coords, options),
        (stored) => stored && { bytes: stored.bytes, version: versionOfPassed(piece, stored.version) },
      ),
  };
}

/** Opens a reader of the version of a chunk that is put together. */
function readerOfPieces(pieces: readonly ChunkPiece[]): ChunkReader {
  return {
    async version() {
      const versions: (string | undefined)[] = [];
      for (const { reader, coords } of pieces) versions.push((await reader.version(coords)).token);
      return { token: versionOfPieces(pieces, versions) };
    },
    read: () => undefined,
  };
}

/** Reads a chunk of a local file. @throws ZpublishError `source-changed` if the file has another version, `source-unreadable` */
async function readPlace(
  files: ByteStore,
  place: LocalPlace,
  { allocate, maxByteLength }: Pick<ReadObjectOptions, "allocate" | "maxByteLength">,
): Promise<StoredChunk> {
  const { key, version, offset, byteLength, wholeByteLength, variant } = place;
  assertStoredLength(wholeByteLength, maxByteLength, () => `'${key}'`);
  const memory = memoryFor(place, allocate);
  const found = await files.read(key, {
    range: { offset, byteLength },
    version: { token: version },
    allocate: memory.allocate,
  });
  if (found === undefined) throw new ZpublishError("source-unreadable", `'${key}' is no longer there`);
  return { bytes: memory.whole(found.bytes), version, variant };
}

/** Readers cached per thread, because they remember the index of a shard. */
const MAX_READERS = 1024;

/** Options of {@link createTaskRunner}. */
interface TaskRunnerOptions {
  /** Cache for decoded chunks. Default: a new one. */
  readonly cache?: DecodedCache;
  /** True if reads may block this thread. Default false. */
  readonly mayBlock?: boolean;
  /** True if outcomes contain checksums. Default false. */
  readonly withChecksums?: boolean;
}

interface CachedReader {
  readonly reader: ChunkReader;
  readonly decoded?: DecodedChunks;
}

/**
 * Creates what runs chunk tasks one after the other, and keeps readers and decoded chunks between them. Each worker has one.
 * @returns A function that never throws, because errors are data. It puts the chunk into the given memory if it fits.
 */
export function createTaskRunner(
  options: TaskRunnerOptions = {},
): (task: ChunkTask, into?: ArrayBuffer) => Promise<ChunkOutcome> {
  const { cache = createDecodedCache(), mayBlock = false, withChecksums: withChecksum } = options;
  const readers = createBoundedMap<CachedReader>({ maxEntries: MAX_READERS });
  const directories = createBoundedMap<ByteStore>({ maxEntries: MAX_READERS });

  function filesOf(directory: string): ByteStore {
    const known = directories.get(directory);
    if (known !== undefined) return known;
    const files = createFileStore(directory, mayBlock);
    directories.set(directory, files);
    return files;
  }

  function openSource(source: ChunkSource): CachedReader {
    // Shared memory arrives as another object every time, and opening it costs nothing.
    if (source.kind === "memory") return { reader: openChunkReader(source) };
    const sourceKey = JSON.stringify(source);
    let cached = readers.get(sourceKey);
    if (cached === undefined) {
      cached = { reader: openChunkReader(source, mayBlock), decoded: { cache, sourceKey } };
      readers.set(sourceKey, cached);
    }
    return cached;
  }

  const places = { filesOf, readerOf: (source: ThreadSource) => openSource(source as ChunkSource).reader };

  function readerOf({ plan: { source }, stored = [] }: ChunkTask): CachedReader {
    if (source.kind !== "given") return openSource(source);
    return { reader: openGivenReader(stored, places), decoded: { cache, sourceKey: source.name } };
  }

  function runOne(
    { plan, chunkCoords, pick, cancelled }: ChunkTask,
    { reader, decoded }: CachedReader,
    into?: ArrayBuffer,
  ): Promise<ChunkOutcome> {
    return outcomeOf(async () => {
      if (pick === undefined) return makeChunk(plan, chunkCoords, reader, { decoded, into, withChecksum });
      return pickItems(plan, pick, reader, { decoded, into, isCancelled: () => isSet(cancelled) });
    });
  }

  async function runAll(task: ChunkTask, into?: ArrayBuffer): Promise<ChunkOutcome> {
    if (loadZstd !== undefined && usesZstd(task)) await loadZstd();
    const source = readerOf(task);
    if (task.others === undefined) return runOne(task, source, into);
    const decoded = { cache: createDecodedCache(Number.POSITIVE_INFINITY), sourceKey: "", isOfLot: true };
    const outcome = await runOne(task, { ...source, decoded }, into);
    // The others need the same bytes.
    if (outcome.status === "failed" && outcome.error.code === "corrupt-chunk") return outcome;
    const others: ChunkOutcome[] = [];
    for (const other of task.others) others.push(await runOne(other, { ...source, decoded }));
    return { ...outcome, others };
  }

  return async (task: { -readonly [K in keyof ChunkTask]: ChunkTask[K] }, into) => {
    const isLarge = memoryOfTask(task) > MUCH_MEMORY;
    const outcome = await outcomeOf(() => runAll(task, into));
    if (isLarge) {
      delete task.stored;
      collectGarbage();
    }
    return outcome;
  };
}

async function outcomeOf(make: () => Promise<ChunkOutcome>): Promise<ChunkOutcome> {
  try {
    return await make();
  } catch (error) {
    return { status: "failed", error: errorToData(error) };
  }
}

/** Memory of a task after which the garbage collector runs. It would run after the next such task has begun. */
const MUCH_MEMORY = 128 * 2 ** 20;

let collect: (() => void) | undefined;

/** Runs the garbage collector: some milliseconds, since the heap of a worker is small. */
function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  collect ??= runInNewContext("gc") as () => void;
  collect();
}

/**
 * Calls the default export of a module, which the thread keeps: `(data, { isCancelled }) => result`.
 * @returns Never throws: errors are data.
 */
export async function callModule({ module, data, cancelled }: ModuleCall): Promise<CallOutcome> {
  try {
    const { default: call } = (await import(module)) as { default?: unknown };
    if (typeof call !== "function") throw new TypeError(`expected a default export that is a function`);
    const value: unknown = await call(data, { isCancelled: () => isSet(cancelled) });
    // What cannot be copied fails here; the thread would end when it sends that. Bytes, which may be many, always can.
    return { status: "returned", value: ArrayBuffer.isView(value) ? value : structuredClone(value) };
  } catch (error) {
    return failedCall({ module }, error);
  }
}

function isSet(flag: Int32Array | undefined): boolean {
  return flag !== undefined && Atomics.load(flag, 0) !== 0;
}

/** Tells whether a step uses Zstandard, also within Blosc. */
function usesZstd({ plan: { decode, encode, variants }, stored = [] }: ChunkTask): boolean {
  const isZstd = ({ codec }: CodecStep) => codec.id === "zstd" || codec.cname === "zstd";
  const others = variants === undefined ? [] : [...variants.decode.flat(), ...variants.encode];
  if (decode.some(isZstd) || encode.some(isZstd) || others.some(isZstd)) return true;
  const layouts = new Set(stored.flatMap(({ pieces = [] }) => pieces.map(({ layout }) => layout)));
  return [...layouts].some((layout) => layout.decode.some(isZstd) || layout.variants.flat().some(isZstd));
}
