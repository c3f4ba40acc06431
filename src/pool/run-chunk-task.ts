import type { DecodedChunks } from "../codec/chunk-input.js";
import { createDecodedCache, type DecodedCache } from "../codec/decoded-cache.js";
import type { ChunkOutcome } from "../codec/made-chunk.js";
import { makeChunk } from "../codec/make-chunk.js";
import { loadZstd } from "../codec/zstd.js";
import { createRecentMap } from "../collections/recent-map.js";
import { errorToData } from "../errors.js";
import { openChunkReader } from "../open/chunk-reader.js";
import type { ByteStore } from "../stores/byte-store.js";
import { createFileStore } from "../stores/file-store.js";
import type { ChunkReader, ChunkSource, ThreadSource } from "../zarr/chunk-reader.js";
import type { CodecStep } from "../zarr/codec-step.js";
import type { ChunkTask } from "./chunk-task.js";
import { openGivenReader } from "./given-reader.js";

/** Readers cached per thread, because they remember the index of a shard. */
const MAX_READERS = 1024;

/** Options of {@link createTaskRunner}. */
export interface TaskRunnerOptions {
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
  const readers = new Map<string, CachedReader>();
  const directories = createRecentMap<ByteStore>(MAX_READERS);

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
    } else readers.delete(sourceKey);
    readers.set(sourceKey, cached);
    if (readers.size > MAX_READERS) readers.delete(readers.keys().next().value as string);
    return cached;
  }

  const places = { filesOf, readerOf: (source: ThreadSource) => openSource(source as ChunkSource).reader };

  function readerOf({ plan: { source }, stored = [] }: ChunkTask): CachedReader {
    if (source.kind !== "given") return openSource(source);
    return { reader: openGivenReader(stored, places), decoded: { cache, sourceKey: source.name } };
  }

  return async (task, into) => {
    const { plan, chunkCoords } = task;
    try {
      if (loadZstd !== undefined && usesZstd(task)) await loadZstd();
      const { reader, decoded } = readerOf(task);
      return await makeChunk(plan, chunkCoords, reader, { decoded, into, withChecksum });
    } catch (error) {
      return { status: "failed", error: errorToData(error) };
    }
  };
}

/** Tells whether a step uses Zstandard, also within Blosc. */
function usesZstd({ plan: { decode, encode, variants }, stored = [] }: ChunkTask): boolean {
  const isZstd = ({ codec }: CodecStep) => codec.id === "zstd" || codec.cname === "zstd";
  const others = variants === undefined ? [] : [...variants.decode.flat(), ...variants.encode];
  if (decode.some(isZstd) || encode.some(isZstd) || others.some(isZstd)) return true;
  const layouts = new Set(stored.flatMap(({ pieces = [] }) => pieces.map(({ layout }) => layout)));
  return [...layouts].some((layout) => layout.decode.some(isZstd) || layout.variants.flat().some(isZstd));
}
