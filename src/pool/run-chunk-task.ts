import type { DecodedChunks } from "../codec/decode-stored.js";
import { createDecodedCache, type DecodedCache } from "../codec/decoded-cache.js";
import type { ChunkOutcome } from "../codec/made-chunk.js";
import { makeChunk } from "../codec/make-chunk.js";
import { loadZstd } from "../codec/zstd.js";
import { createRecentMap } from "../collections/recent-map.js";
import { errorToData, ZpublishError } from "../errors.js";
import type { ByteStore, ReadObjectOptions } from "../source/bytes/byte-store.js";
import { createFileStore } from "../source/bytes/file-store.js";
import { openChunkReader } from "../source/chunk-reader.js";
import { memoryFor } from "../source/formats/chunk-places.js";
import type { ChunkReader, LocalPlace, StoredChunk } from "../zarr/chunk-source.js";
import type { CodecStep } from "../zarr/codec-step.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";
import { assertStoredLength } from "../zarr/plan/max-stored-byte-length.js";
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
  const directories = createRecentMap<ByteStore>(MAX_READERS);

  function filesOf(directory: string): ByteStore {
    const known = directories.get(directory);
    if (known !== undefined) return known;
    const files = createFileStore(directory, mayBlock);
    directories.set(directory, files);
    return files;
  }

  function readerOf({ plan: { source }, stored = [] }: ChunkTask): CachedReader {
    if (source.kind === "given")
      return { reader: openGivenReader(stored, filesOf), decoded: { cache, sourceKey: source.name } };
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

/** Reads a chunk of a local file. @throws ZpublishError `source-changed` if the file has another version, `source-unreadable` */
async function readPlace(
  files: ByteStore,
  place: LocalPlace,
  { allocate, maxByteLength }: Pick<ReadObjectOptions, "allocate" | "maxByteLength">,
): Promise<StoredChunk> {
  const { key, version, offset, byteLength, wholeByteLength, variant } = place;
  assertStoredLength(wholeByteLength, maxByteLength, version, () => `'${key}'`);
  const memory = memoryFor(place, allocate);
  const found = await files.read(key, {
    range: { offset, byteLength },
    version: { token: version },
    allocate: memory.allocate,
  });
  if (found === undefined) throw new ZpublishError("source-unreadable", `'${key}' is no longer there`);
  return { bytes: memory.whole(found.bytes), version, variant };
}

/** Opens a reader of chunks that came with a task. */
function openGivenReader(
  stored: readonly GivenChunk[],
  filesOf: (directory: string) => ByteStore,
): ChunkReader {
  const given = new Map(stored.map((chunk) => [chunk.coords.join("."), chunk]));
  const find = (coords: readonly number[]) => given.get(coords.join("."));
  return {
    version: async (coords) => find(coords)?.version,
    async read(coords, { allocate, maxByteLength } = {}) {
      const { bytes, version = "", variant = 0, place } = find(coords) ?? {};
      if (place !== undefined) return readPlace(filesOf(place.directory), place, { allocate, maxByteLength });
      if (bytes === undefined) return undefined;
      // Codecs expect memory that is not shared.
      const own = allocate?.(bytes.length) ?? new Uint8Array(bytes.length);
      own.set(bytes);
      return { bytes: own, version, variant };
    },
    async measure(coords) {
      const { bytes, version = "", place } = find(coords) ?? {};
      const byteLength = place?.wholeByteLength ?? bytes?.length;
      return byteLength === undefined ? undefined : { byteLength, version };
    },
  };
}
