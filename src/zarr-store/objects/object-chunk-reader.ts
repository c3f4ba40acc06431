import { ZpublishError } from "../../errors.js";
import type { ObjectBytes, ReadObjectOptions } from "../../stores/byte-store.js";
import type { FreshObjects, KnownObject } from "../../stores/object-versions.js";
import {
  type ChunkFiles,
  type ChunkReader,
  encodeChunkKey,
  type FileChunks,
  type ReadOptions,
  type ShardChunks,
  type StoredChunk,
  type VersionCheck,
} from "../../zarr/chunk-reader.js";
import { assertStoredLength } from "../../zarr/plan/max-stored-byte-length.js";
import { createShardFinder, type ShardFile, type ShardPlace } from "../chunks/find-in-shards.js";
import type { ByteRange } from "../chunks/shard-index.js";

/** Longest stored chunk: a view cannot be longer. */
const MAX_CHUNK_BYTES = 2 ** 31 - 1;

/** Opens a reader of chunks that are objects of a store, or inner chunks of shards that are. */
export function openObjectChunkReader(source: FileChunks | ShardChunks, objects: FreshObjects): ChunkReader {
  return source.kind === "files" ? openWholeReader(source, objects) : openShardReader(source, objects);
}

/**
 * Asserts that the metadata of an array exists, before one of its chunks is called absent: the whole store may be gone.
 * @throws ZpublishError `source-unreadable`
 */
async function assertMetadataExists(
  objects: FreshObjects,
  { metadataFile }: ChunkFiles,
  key: string,
): Promise<void> {
  if (metadataFile === undefined) return;
  if ((await objects.look(metadataFile, "none")).version !== undefined) return;
  throw new ZpublishError(
    "source-unreadable",
    `chunk '${key}' cannot be read: the metadata of its array is no longer in the store`,
    { details: { key } },
  );
}

/** Returns the version of an object that is believed, and a way to check it again; undefined if there is none. */
function versionNow(objects: FreshObjects, key: string): VersionCheck | undefined {
  const token = objects.known(key)?.version?.token;
  if (token === undefined) return undefined;
  return { version: token, isUnchanged: () => objects.known(key)?.version?.token === token };
}

function openWholeReader(source: FileChunks, objects: FreshObjects): ChunkReader {
  const { directory, keyEncoding } = source;
  const prefix = directory === "" ? "" : `${directory}/`;
  const keyOf = (chunkCoords: readonly number[]) => prefix + encodeChunkKey(chunkCoords, keyEncoding);

  async function look(key: string, range?: "none", allocate?: ReadOptions["allocate"]): Promise<KnownObject> {
    const found = await objects.look(key, range, allocate);
    if (found.version === undefined) await assertMetadataExists(objects, source, key);
    return found;
  }

  async function readPart(
    key: string,
    part: NonNullable<ReadOptions["part"]>,
    limits: ReadObjectOptions,
  ): Promise<StoredChunk | undefined> {
    const known = await look(key, "none");
    if (known.version === undefined) return undefined;
    if (known.byteLength === undefined) throw lengthUnknown(key);
    assertStoredLength(known.byteLength, limits.maxByteLength, known.version.token, () => `chunk '${key}'`);
    const { start, byteLength } = part(known.byteLength);
    const found = await objects.read(key, { range: { offset: start, byteLength } });
    if (found === undefined) await assertMetadataExists(objects, source, key);
    else if (found.version.token !== known.version.token)
      throw new ZpublishError("source-changed", `chunk '${key}' changed while it was being read`);
    return found && { ...storedChunk(found), fileByteLength: known.byteLength };
  }

  const { urlFor } = objects.store;
  // Clients that are redirected need no bytes.
  const read = urlFor === undefined ? undefined : "none";
  return {
    urlFor: urlFor && ((chunkCoords, seconds) => urlFor(keyOf(chunkCoords), seconds)),
    version: async (chunkCoords, allocate) => (await look(keyOf(chunkCoords), read, allocate)).version?.token,
    versionNow: (chunkCoords) => versionNow(objects, keyOf(chunkCoords)),
    async read(chunkCoords, { maxByteLength = MAX_CHUNK_BYTES, allocate, part } = {}) {
      const key = keyOf(chunkCoords);
      if (part !== undefined) return readPart(key, part, { maxByteLength });
      const found = await objects.read(key, { maxByteLength, allocate });
      if (found === undefined) await assertMetadataExists(objects, source, key);
      else assertStoredLength(found.bytes.length, maxByteLength, found.version.token, () => `chunk '${key}'`);
      return found && storedChunk(found);
    },
    async measure(chunkCoords) {
      const { version, byteLength } = await look(keyOf(chunkCoords), "none");
      if (version === undefined) return undefined;
      if (byteLength === undefined) throw lengthUnknown(keyOf(chunkCoords));
      return { byteLength, version: version.token };
    },
  };
}

/** Returns the error for an object that exists, so that it must not be called absent. */
function lengthUnknown(key: string): ZpublishError {
  return new ZpublishError("source-changed", `'${key}' changed before its length was known`);
}

function storedChunk({ bytes, version }: ObjectBytes): StoredChunk {
  return { bytes, version: version.token };
}

function openShardReader(source: ShardChunks, objects: FreshObjects): ChunkReader {
  const finder = createShardFinder(source, `${objects.store.identity}\n`);
  const { location, byteLength: indexByteLength } = finder.outerIndex;
  // The index is what is read next of a shard that is not known.
  const indexRange =
    location === "end" ? { last: indexByteLength } : { offset: 0, byteLength: indexByteLength };

  async function openShard(key: string): Promise<ShardFile | undefined> {
    const { version, byteLength } = await objects.look(key, indexRange);
    if (version === undefined) {
      await assertMetadataExists(objects, source, key);
      return undefined;
    }
    if (byteLength === undefined) throw lengthUnknown(key);
    return {
      byteLength,
      version: version.token,
      async readBytes(offset, byteLength, allocate) {
        const found = await objects.read(key, { range: { offset, byteLength }, allocate });
        if (found?.version.token === version.token) return found.bytes;
        throw new ZpublishError("source-changed", `shard '${key}' changed while it was being read`);
      },
    };
  }

  /** Finds a chunk in its shard; undefined if one of both is absent. */
  async function findChunk(place: ShardPlace): Promise<(ByteRange & { shard: ShardFile }) | undefined> {
    try {
      const shard = await openShard(place.path);
      const found = shard && (await finder.find(shard, place));
      return found && shard && { ...found, shard };
    } catch (error) {
      // The next request asks for it without a condition.
      if (error instanceof ZpublishError && error.code === "corrupt-chunk") objects.forget(place.path);
      throw error;
    }
  }

  return {
    async version(chunkCoords) {
      return (await openShard(finder.placeOf(chunkCoords).path))?.version;
    },
    versionNow: (chunkCoords) => versionNow(objects, finder.placeOf(chunkCoords).path),
    async read(chunkCoords, { maxByteLength, allocate } = {}) {
      const found = await findChunk(finder.placeOf(chunkCoords));
      if (found === undefined) return undefined;
      const { shard, offset, byteLength } = found;
      assertStoredLength(byteLength, maxByteLength, shard.version, () => finder.labelOf(chunkCoords));
      return { bytes: await shard.readBytes(offset, byteLength, allocate), version: shard.version };
    },
    async measure(chunkCoords) {
      const found = await findChunk(finder.placeOf(chunkCoords));
      return found && { byteLength: found.byteLength, version: found.shard.version };
    },
  };
}
