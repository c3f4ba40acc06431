import { type Stats, stat } from "node:fs";
import { isMissing, ZpublishError } from "../errors.js";
import type { ObjectRange } from "../stores/byte-store.js";
import { codeOf, type FileNow, type OpenFile, versionOf } from "../stores/file-calls.js";
import { createStoreFiles } from "../stores/file-store.js";
import type { FreshObjects } from "../stores/object-versions.js";
import {
  type ChunkFiles,
  type ChunkReader,
  encodeChunkKey,
  type FileChunks,
  type ReadOptions,
  type ShardChunks,
  type StoredChunk,
  type StoredSize,
  type VersionCheck,
} from "../zarr/chunk-reader.js";
import { assertStoredLength } from "../zarr/plan/max-stored-byte-length.js";
import { createShardFinder, type ShardFile, type ShardPlace, type StoredRange } from "./shards.js";

/** Opens a reader of chunks that are files of a local directory, or inner chunks of shards that are. */
export function openLocalChunkReader(source: FileChunks | ShardChunks, mayBlock: boolean): ChunkReader {
  return { ...createReader(source, localFiles(source, mayBlock)), source };
}

/** Opens a reader of chunks that are objects of a store, or inner chunks of shards that are. */
export function openObjectChunkReader(source: FileChunks | ShardChunks, objects: FreshObjects): ChunkReader {
  return createReader(source, objectFiles(objects));
}

/** Bytes that are read after a look: all by default. */
type NextRead = ObjectRange | "none" | undefined;

/** The files or objects in which the chunks of an array lie, by path. */
interface ChunkStore {
  /** Name of the store in the cache of shard indexes; empty if paths are absolute. */
  readonly name: string;
  /** True if an absent file is looked for again after the metadata was found: the store may have been replaced. */
  readonly looksTwice: boolean;
  /** As in `ChunkReader`. */
  versionNow(path: string, wasChecked?: boolean): VersionCheck | undefined;
  /** Undefined if there is no file; its length is undefined if it is not known. */
  stat(
    path: string,
    next: NextRead,
    allocate: ReadOptions["allocate"],
  ): Promise<{ readonly version: string; readonly byteLength: number | undefined } | undefined>;
  /** Runs `use` on one version of a file; undefined if there is no file. */
  use<T>(
    path: string,
    next: NextRead,
    use: (file: ShardFile) => Promise<T>,
    wasChecked: boolean | undefined,
  ): Promise<T | undefined>;
  /** Runs `use` without waiting; undefined if the caller has to call {@link use}. Only local files have it. */
  readonly useNow?: (
    path: string,
    use: (file: FileAtOnce) => StoredChunk | undefined,
  ) => StoredChunk | undefined;
  /** Reads a whole object of unknown length with one request. Local files are read by {@link use}. */
  readonly readWhole?: (path: string, options: ReadOptions) => Promise<StoredChunk | undefined>;
  readonly urlFor?: ((path: string, seconds: number) => Promise<string | undefined>) | undefined;
  exists(path: string): Promise<boolean>;
}

/** A file that is read without waiting. */
interface FileAtOnce extends Pick<FileNow, "readBytes"> {
  readonly byteLength: number;
  readonly version: string;
}

/** Finds chunks in files: each is a file of its own, or a range of a shard. */
interface ChunkFinder {
  placeOf(chunkCoords: readonly number[]): ShardPlace;
  findNow(file: Omit<ShardFile, "readBytes">, place: ShardPlace): StoredRange | "unread" | undefined;
  find(file: ShardFile, place: ShardPlace): StoredRange | undefined | Promise<StoredRange | undefined>;
  labelOf(chunkCoords: readonly number[]): string;
  /** Place of a shard's index. */
  readonly indexRange?: ObjectRange;
}

/** A chunk that its shard does not have. */
const ABSENT = Object.freeze({ value: undefined });

function createReader(source: FileChunks | ShardChunks, files: ChunkStore): ChunkReader {
  const isWhole = source.kind === "files";
  const finder: ChunkFinder =
    source.kind === "files" ? wholeFiles(source) : createShardFinder(source, files.name);
  const { urlFor } = files;
  // The index is what is read next of a shard that is not known. Clients that are redirected need no bytes.
  const next = finder.indexRange ?? (urlFor === undefined ? undefined : "none");

  /** Calls `find`. If it finds nothing, the array's metadata has to exist. */
  async function orConfirmAbsence<T>(
    { key }: ShardPlace,
    find: () => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const found = await find();
    if (found !== undefined || source.metadataFile === undefined) return found;
    await assertMetadataExists(files, source.metadataFile, key);
    return files.looksTwice ? find() : undefined;
  }

  /** Runs `use` on the file of a chunk, with its place there; undefined if one of both is absent. */
  async function useChunk<T>(
    chunkCoords: readonly number[],
    wasChecked: boolean | undefined,
    use: (file: ShardFile, chunk: StoredRange | undefined) => Promise<{ readonly value: T | undefined }>,
  ): Promise<T | undefined> {
    const place = finder.placeOf(chunkCoords);
    const useFile = (file: ShardFile) => {
      const chunk = finder.find(file, place);
      return chunk instanceof Promise ? chunk.then((found) => use(file, found)) : use(file, chunk);
    };
    const range = isWhole ? "none" : next;
    const found = await orConfirmAbsence(place, () => files.use(place.path, range, useFile, wasChecked));
    return found?.value;
  }

  function statFile(chunkCoords: readonly number[], range: NextRead, allocate?: ReadOptions["allocate"]) {
    const place = finder.placeOf(chunkCoords);
    return orConfirmAbsence(place, () => files.stat(place.path, range, allocate));
  }

  /** Says which part of a chunk is read; undefined for all of it. @throws ZpublishError `corrupt-chunk` if it is too long */
  function partOf(
    { byteLength }: StoredRange,
    version: string,
    coords: readonly number[],
    options: ReadOptions,
  ) {
    assertStoredLength(byteLength, options.maxByteLength, version, () => finder.labelOf(coords));
    return isWhole ? options.part?.(byteLength) : undefined;
  }

  return {
    async version(chunkCoords, allocate) {
      return (await statFile(chunkCoords, next, allocate))?.version;
    },
    versionNow: (chunkCoords, wasChecked) => files.versionNow(finder.placeOf(chunkCoords).path, wasChecked),
    ...(files.useNow && {
      readNow(chunkCoords: readonly number[], options: ReadOptions = {}) {
        const place = finder.placeOf(chunkCoords);
        return files.useNow?.(place.path, (file) => {
          const chunk = finder.findNow(file, place);
          if (chunk === undefined || chunk === "unread") return undefined;
          const { readBytes, version } = file;
          const part = partOf(chunk, version, chunkCoords, options);
          if (part === undefined)
            return { bytes: readBytes(chunk.offset, chunk.byteLength, options.allocate), version };
          const bytes = readBytes(part.start, part.byteLength);
          return { bytes, version, fileByteLength: chunk.byteLength };
        });
      },
    }),
    read(chunkCoords, options = {}) {
      const { readWhole } = files;
      if (isWhole && readWhole !== undefined && options.part === undefined) {
        const place = finder.placeOf(chunkCoords);
        return orConfirmAbsence(place, () => readWhole(place.path, options));
      }
      return useChunk<StoredChunk>(chunkCoords, options.wasChecked, async (file, chunk) => {
        if (chunk === undefined) return ABSENT;
        const { readBytes, version } = file;
        const part = partOf(chunk, version, chunkCoords, options);
        if (part === undefined)
          return {
            value: { bytes: await readBytes(chunk.offset, chunk.byteLength, options.allocate), version },
          };
        const bytes = await readBytes(part.start, part.byteLength);
        return { value: { bytes, version, fileByteLength: chunk.byteLength } };
      });
    },
    async measure(chunkCoords) {
      if (!isWhole)
        return useChunk<StoredSize>(chunkCoords, undefined, async ({ version }, chunk) =>
          chunk === undefined ? ABSENT : { value: { byteLength: chunk.byteLength, version } },
        );
      const found = await statFile(chunkCoords, "none");
      if (found === undefined) return undefined;
      const { version, byteLength } = found;
      return { version, byteLength: assertLengthKnown(byteLength, finder.placeOf(chunkCoords).path) };
    },
    ...(isWhole && urlFor !== undefined
      ? { urlFor: (chunkCoords, seconds) => urlFor(finder.placeOf(chunkCoords).path, seconds) }
      : undefined),
  };
}

/** Finds chunks that are files of their own. */
function wholeFiles({ directory, keyEncoding }: FileChunks): ChunkFinder {
  const prefix = directory === "" ? "" : `${directory}/`;
  const wholeOf = ({ byteLength }: { readonly byteLength: number }) => ({ offset: 0, byteLength });
  return {
    placeOf(chunkCoords) {
      const key = encodeChunkKey(chunkCoords, keyEncoding);
      return { key, path: prefix + key, positions: [] };
    },
    findNow: wholeOf,
    find: wholeOf,
    labelOf: (chunkCoords) => `chunk '${encodeChunkKey(chunkCoords, keyEncoding)}'`,
  };
}

/**
 * Asserts that the array's metadata exists. If not, the whole store is absent rather than the chunk. A store that is unmounted
 * or deleted has no files at all, which clients would read as fill values.
 * @throws ZpublishError `source-unreadable`
 */
async function assertMetadataExists(files: ChunkStore, metadataFile: string, key: string): Promise<void> {
  let problem = "is no longer in the store";
  let cause: unknown;
  try {
    if (await files.exists(metadataFile)) return;
  } catch (error) {
    if (error instanceof ZpublishError) throw error;
    problem = `cannot be read (${codeOf(error)})`;
    cause = error;
  }
  const message = `chunk '${key}' cannot be read: the metadata of its array ${problem}`;
  // Where the store was, for the log: clients get no details.
  throw new ZpublishError("source-unreadable", message, { details: { key, metadataFile }, cause });
}

function localFiles(source: ChunkFiles, mayBlock: boolean): ChunkStore {
  const {
    calls,
    stat: statFile,
    versionNow,
    read,
    readNow,
  } = createStoreFiles(source.root ?? source.directory, mayBlock);

  return {
    name: "",
    looksTwice: true,
    versionNow,
    async stat(path) {
      const found = await statFile(path);
      return found && { version: versionOf(found), byteLength: Number(found.size) };
    },
    use(path, _next, use, wasChecked) {
      const useFile = ({ stat, readBytes }: OpenFile) =>
        use({ byteLength: Number(stat.size), version: versionOf(stat), readBytes });
      return read(path, useFile, wasChecked);
    },
    useNow: (path, use) =>
      readNow(path, ({ stat, readBytes }) =>
        use({ byteLength: Number(stat.size), version: versionOf(stat), readBytes }),
      ),
    exists: (path) =>
      calls
        .call<Stats>((done) => stat(path, done))
        .then(
          () => true,
          (error: unknown) => {
            if (isMissing(error)) return false;
            throw error;
          },
        ),
  };
}

/** Longest stored chunk: a view cannot be longer. */
const MAX_CHUNK_BYTES = 2 ** 31 - 1;

function objectFiles(objects: FreshObjects): ChunkStore {
  const { store } = objects;
  return {
    name: `${store.identity}\n`,
    looksTwice: false,
    versionNow(path) {
      const token = objects.known(path)?.version?.token;
      if (token === undefined) return undefined;
      return { version: token, isUnchanged: () => objects.known(path)?.version?.token === token };
    },
    async stat(path, next, allocate) {
      const { version, byteLength } = await objects.look(path, next, allocate);
      return version && { version: version.token, byteLength };
    },
    async use(path, next, use) {
      const known = await objects.look(path, next);
      if (known.version === undefined) return undefined;
      const version = known.version.token;
      const file: ShardFile = {
        byteLength: assertLengthKnown(known.byteLength, path),
        version,
        async readBytes(offset, byteLength, allocate) {
          const found = await objects.read(path, { range: { offset, byteLength }, allocate });
          if (found?.version.token === version) return found.bytes;
          throw new ZpublishError("source-changed", `'${path}' changed while it was being read`);
        },
      };
      try {
        return await use(file);
      } catch (error) {
        // The next request asks for it without a condition.
        if (error instanceof ZpublishError && error.code === "corrupt-chunk") objects.forget(path);
        throw error;
      }
    },
    async readWhole(path, { maxByteLength = MAX_CHUNK_BYTES, allocate }) {
      const found = await objects.read(path, { maxByteLength, allocate });
      if (found === undefined) return undefined;
      const { bytes, version } = found;
      assertStoredLength(bytes.length, maxByteLength, version.token, () => `chunk '${path}'`);
      return { bytes, version: version.token };
    },
    urlFor: store.urlFor && ((path, seconds) => store.urlFor?.(path, seconds) ?? Promise.resolve(undefined)),
    exists: async (path) => (await objects.look(path, "none")).version !== undefined,
  };
}

/** Returns the length of an object that exists, so that it must not be called absent. @throws ZpublishError `source-changed` */
function assertLengthKnown(byteLength: number | undefined, path: string): number {
  if (byteLength !== undefined) return byteLength;
  throw new ZpublishError("source-changed", `'${path}' changed before its length was known`);
}
