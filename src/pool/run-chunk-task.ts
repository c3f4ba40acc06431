import { createDecodedCache, type DecodedCache } from "../codec/decoded-cache.js";
import { type DecodedChunks, makeChunk } from "../codec/make-chunk.js";
import { loadZstd } from "../codec/zstd.js";
import { errorToData } from "../errors.js";
import { openChunkReader } from "../source/chunk-reader.js";
import type { ChunkReader, ChunkSource } from "../source/chunk-source.js";
import type { CodecStep, EncodingPlan } from "../zarr/encoding-plan.js";
import type { ChunkOutcome, ChunkTask } from "./chunk-task.js";

/** Readers kept per thread: what they remember (the index of a shard) is worth keeping, but not for ever. */
const MAX_READERS = 1024;

export interface TaskRunnerOptions {
  /** Bounded memory for decoded chunks. Default: a cache with a bound of its own. */
  readonly cache?: DecodedCache;
  /** Whether reading may hold up this thread. Default false. */
  readonly mayBlock?: boolean;
  /** Whether outcomes say the checksums of their bytes. Default false. */
  readonly withChecksums?: boolean;
}

interface KeptReader {
  readonly reader: ChunkReader;
  readonly decoded?: DecodedChunks;
}

/**
 * Something that does chunk tasks one after the other, keeping readers and decoded chunks between them. A worker has
 * one; so has whoever does without workers.
 * @returns A function that never throws, and uses the memory it is given for the chunk where that fits: errors are data.
 */
export function createTaskRunner(
  options: TaskRunnerOptions = {},
): (task: ChunkTask, into?: ArrayBuffer) => Promise<ChunkOutcome> {
  const { cache = createDecodedCache(), mayBlock = false, withChecksums: withChecksum } = options;
  const readers = new Map<string, KeptReader>();

  function readerOf(source: ChunkSource): KeptReader {
    // Shared memory comes as another object every time, and opening it costs nothing.
    if (source.kind === "memory") return { reader: openChunkReader(source) };
    const sourceKey = JSON.stringify(source);
    let kept = readers.get(sourceKey);
    if (kept === undefined) {
      kept = { reader: openChunkReader(source, mayBlock), decoded: { cache, sourceKey } };
    } else readers.delete(sourceKey);
    readers.set(sourceKey, kept);
    if (readers.size > MAX_READERS) readers.delete(readers.keys().next().value as string);
    return kept;
  }

  return async ({ plan, chunkCoords }, into) => {
    try {
      if (loadZstd !== undefined && usesZstd(plan)) await loadZstd();
      const { reader, decoded } = readerOf(plan.source);
      return await makeChunk(plan, chunkCoords, reader, { decoded, into, withChecksum });
    } catch (error) {
      return { status: "failed", error: errorToData(error) };
    }
  };
}

/** Itself, or within Blosc. */
function usesZstd({ decode, encode }: EncodingPlan): boolean {
  const isZstd = ({ codec }: CodecStep) => codec.id === "zstd" || codec.cname === "zstd";
  return decode.some(isZstd) || encode.some(isZstd);
}
