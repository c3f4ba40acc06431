import type { DecodedChunks } from "../codec/decode-stored.js";
import { createDecodedCache, type DecodedCache } from "../codec/decoded-cache.js";
import type { ChunkOutcome } from "../codec/made-chunk.js";
import { makeChunk } from "../codec/make-chunk.js";
import { loadZstd } from "../codec/zstd.js";
import { errorToData } from "../errors.js";
import { openChunkReader } from "../source/chunk-reader.js";
import type { ChunkReader } from "../zarr/chunk-source.js";
import type { CodecStep, EncodingPlan } from "../zarr/plan/encoding-plan.js";
import type { ChunkTask, GivenChunk } from "./chunk-task.js";

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

  function readerOf({ plan: { source }, stored = [] }: ChunkTask): CachedReader {
    if (source.kind === "given")
      return { reader: openGivenReader(stored), decoded: { cache, sourceKey: source.name } };
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

  return async (task, into) => {
    const { plan, chunkCoords } = task;
    try {
      if (loadZstd !== undefined && usesZstd(plan)) await loadZstd();
      const { reader, decoded } = readerOf(task);
      return await makeChunk(plan, chunkCoords, reader, { decoded, into, withChecksum });
    } catch (error) {
      return { status: "failed", error: errorToData(error) };
    }
  };
}

/** Tells whether a step uses Zstandard, also within Blosc. */
function usesZstd({ decode, encode, variants }: EncodingPlan): boolean {
  const isZstd = ({ codec }: CodecStep) => codec.id === "zstd" || codec.cname === "zstd";
  const others = variants === undefined ? [] : [...variants.decode.flat(), ...variants.encode];
  return decode.some(isZstd) || encode.some(isZstd) || others.some(isZstd);
}

/** Opens a reader of chunks that came with a task. */
function openGivenReader(stored: readonly GivenChunk[]): ChunkReader {
  const given = new Map(stored.map((chunk) => [chunk.coords.join("."), chunk]));
  const find = (coords: readonly number[]) => given.get(coords.join("."));
  return {
    version: async (coords) => find(coords)?.version,
    async read(coords, { allocate } = {}) {
      const { bytes, version = "", variant = 0 } = find(coords) ?? {};
      if (bytes === undefined) return undefined;
      // Codecs expect memory that is not shared.
      const own = allocate?.(bytes.length) ?? new Uint8Array(bytes.length);
      own.set(bytes);
      return { bytes: own, version, variant };
    },
    async measure(coords) {
      const { bytes, version = "" } = find(coords) ?? {};
      return bytes && { byteLength: bytes.length, version };
    },
  };
}
