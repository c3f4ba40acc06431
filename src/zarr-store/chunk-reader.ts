import { type Stats, stat } from "node:fs";
import { relative } from "node:path";
import { isMissing, ZpublishError } from "../errors.js";
import { type CooperativeTask, runCooperatively } from "../event-loop/cooperative-task.js";
import { type MaybePromise, whenDone } from "../event-loop/maybe-promise.js";
import { sortCooperatively } from "../event-loop/sort-cooperatively.js";
import { workThrough } from "../event-loop/work-through.js";
import type { ByteStore, ObjectRange, ReadObjectOptions } from "../stores/byte-store.js";
import { codeOf, versionOf } from "../stores/file-calls.js";
import { createFileStore, createStoreFiles } from "../stores/file-store.js";
import type { FreshObjects } from "../stores/object-versions.js";
import {
  type BytePlace,
  type ChunkFiles,
  type ChunkReader,
  encodeChunkKey,
  type FileChunks,
  parseChunkKey,
  placeOfPart,
  type ReadOptions,
  type ShardChunks,
  type StoredChunk,
  type StoredVersion,
  type VersionOptions,
} from "../zarr/chunk-reader.js";
import { assertStoredLength } from "../zarr/plan/max-stored-byte-length.js";
import { createShardFinder, type ShardFile, type ShardFinder, type StoredRange } from "./shards.js";

/** Opens a reader of chunks that are files of a local directory, or inner chunks of shards that are. */
export function openLocalChunkReader(source: FileChunks | ShardChunks, mayBlock: boolean): ChunkReader {
  return { ...createReader(source, localFiles(source, mayBlock)), source };
}

/** Opens a reader of chunks that are objects of a store, or inner chunks of shards that are. */
export function openObjectChunkReader(source: FileChunks | ShardChunks, objects: FreshObjects): ChunkReader {
  return createReader(source, objectFiles(objects));
}

/** An object of which an index tells version and length, so that its store is not asked for them. */
export interface PlacedObject {
  /** As in `StoredVersion`. */
  readonly token: string;
  readonly byteLength: number;
  /** Reads all of it, or a part; at once if its store does. @throws ZpublishError as `ByteStore.read`; `source-unreadable` if it is not there */
  read(options: Pick<ReadObjectOptions, "range" | "allocate">): MaybePromise<Uint8Array<ArrayBuffer>>;
  /** As in `ByteStore`. */
  place(): MaybePromise<BytePlace | undefined>;
}

/**
 * Opens a reader of chunks that are objects of an index, or inner chunks of shards that are. What the index does not have is absent.
 * @param store Name of the store: differs between places.
 */
export function openPlacedChunkReader(
  source: FileChunks | ShardChunks,
  store: string,
  find: (path: string) => MaybePromise<PlacedObject | undefined>,
): ChunkReader {
  return createReader(source, placedFiles(store, find));
}

/** Bytes that are read after a look: all by default. */
type NextRead = ObjectRange | "none" | undefined;

/** The files or objects in which the chunks of an array lie, by path. Results are there at once if the file is local and quick. */
interface ChunkStore {
  /** Name of the store in the cache of shard indexes; empty if paths are absolute. */
  readonly name: string;
  /** True if an absent file is looked for again after the metadata was found: the store may have been replaced. */
  readonly looksTwice: boolean;
  version(path: string, next: NextRead, options: VersionOptions): MaybePromise<StoredVersion>;
  /** Runs `use` on one version of a file; undefined if there is no file. */
  use<T>(
    path: string,
    next: NextRead,
    use: (file: ShardFile) => MaybePromise<T>,
    wasChecked: boolean | undefined,
  ): MaybePromise<T | undefined>;
  /** Reads a whole object of unknown length with one request. Local files are read by {@link use}. */
  readonly readWhole?: (path: string, options: ReadOptions) => Promise<StoredChunk | undefined>;
  readonly urlFor?: ((path: string, seconds: number) => Promise<string | undefined>) | undefined;
  /** Tells whether clients may find out themselves what is absent, since a file is believed to exist. Default: they may not. */
  readonly isLeftToClients?: (metadataFile: string) => Promise<boolean>;
  exists(path: string): Promise<boolean>;
  /** As in `ByteStore`. */
  readonly list: ByteStore["list"];
  /** As in `ByteStore`. */
  placeOf(path: string): MaybePromise<BytePlace | undefined>;
}

/** Finds chunks in files: each is a file of its own, or a range of a shard. */
type ChunkFinder = Omit<ShardFinder, "indexRange"> & Partial<Pick<ShardFinder, "indexRange">>;

/** A chunk that its shard does not have. */
const ABSENT = Object.freeze({ value: undefined });

function createReader(source: FileChunks | ShardChunks, files: ChunkStore): ChunkReader {
  const isWhole = source.kind === "files";
  const finder: ChunkFinder =
    source.kind === "files" ? wholeFiles(source) : createShardFinder(source, files.name);
  const { urlFor, readWhole } = files;
  // The index is what is read next of a shard that is not known. Clients that are redirected need no bytes.
  const next = finder.indexRange ?? (urlFor === undefined ? undefined : "none");

  /** Calls `find`. If the file of the chunk is absent, the array's metadata has to exist. */
  function orConfirmAbsence<T>(
    key: string,
    find: () => MaybePromise<T>,
    isAbsent: (found: T) => boolean,
  ): MaybePromise<T> {
    return whenDone(find(), (found) => {
      const { metadataFile } = source;
      if (!isAbsent(found) || metadataFile === undefined) return found;
      const confirmed = assertMetadataExists(files, metadataFile, key);
      return confirmed.then(() => (files.looksTwice ? find() : found));
    });
  }

  /** Reads a chunk in its file; all of it by default. @throws ZpublishError `corrupt-chunk` if it is too long */
  function readFrom(
    { readBytes, version }: ShardFile,
    chunk: StoredRange | undefined,
    coords: readonly number[],
    { allocate, maxByteLength, part }: ReadOptions,
  ): MaybePromise<{ readonly value: StoredChunk | undefined }> {
    if (chunk === undefined) return ABSENT;
    const { offset, byteLength } = chunk;
    assertStoredLength(byteLength, maxByteLength, () => finder.labelOf(coords));
    const wanted = isWhole ? part?.(byteLength) : undefined;
    if (wanted === undefined)
      return whenDone(readBytes(offset, byteLength, allocate), (bytes) => ({ value: { bytes, version } }));
    return whenDone(readBytes(wanted.start, wanted.byteLength), (bytes) => ({
      value: { bytes, version, fileByteLength: byteLength },
    }));
  }

  async function listFiles(gridShape: readonly number[]): Promise<readonly number[][]> {
    const { directory, keyEncoding, metadataFile } = source;
    const keys = await keysBelow(directory === "" ? "" : `${directory}/`, keyEncoding.separator, files.list);
    const origin = gridShape.map(() => 0);
    if (metadataFile !== undefined)
      await assertMetadataExists(files, metadataFile, encodeChunkKey(origin, keyEncoding));
    return runCooperatively(sortedFiles(keys, keyEncoding.name === "v2", gridShape));
  }

  return {
    version(chunkCoords, options = {}) {
      const { key, path } = finder.placeOf(chunkCoords);
      const look = () => files.version(path, next, options);
      return orConfirmAbsence(key, look, ({ token }) => token === undefined);
    },
    read(chunkCoords, options = {}) {
      const place = finder.placeOf(chunkCoords);
      const { key, path } = place;
      const isAbsent = (found: unknown) => found === undefined;
      if (isWhole && readWhole !== undefined && options.part === undefined)
        return orConfirmAbsence(key, () => readWhole(path, options), isAbsent);
      const useFile = (file: ShardFile) =>
        whenDone(finder.find(file, place), (chunk) => readFrom(file, chunk, chunkCoords, options));
      const use = () => files.use(path, isWhole ? "none" : next, useFile, options.wasChecked);
      return whenDone(orConfirmAbsence(key, use, isAbsent), (found) => found?.value);
    },
    files: { chunksPerFile: chunksPerFileOf(source), list: files.list && listFiles },
    locate(chunkCoords, isStored = false) {
      const place = finder.placeOf(chunkCoords);
      const { key, path } = place;
      const isAbsent = (found: unknown) => found === undefined;
      function find(): MaybePromise<BytePlace["part"] | "whole"> {
        if (!isWhole) return files.use(path, next, (file) => finder.find(file, place), undefined);
        if (isStored) return "whole";
        return whenDone(files.version(path, "none", {}), ({ token }) =>
          token === undefined ? token : "whole",
        );
      }
      return whenDone(orConfirmAbsence(key, find, isAbsent), (part) =>
        part === undefined
          ? undefined
          : whenDone(files.placeOf(path), (found) => placeOfPart(found, part === "whole" ? undefined : part)),
      );
    },
    ...(isWhole && urlFor !== undefined
      ? {
          urlFor: (chunkCoords, seconds) => urlFor(finder.placeOf(chunkCoords).path, seconds),
          isLeftToClients: async () => (await files.isLeftToClients?.(source.metadataFile ?? "")) === true,
        }
      : undefined),
  };
}

/** Folders that are listed at a time. */
const LISTED_AT_ONCE = 8;

/** Lists keys below a folder with dots in place of slashes; such as chunks may have, and others. */
async function keysBelow(folder: string, separator: string, list: ChunkStore["list"]): Promise<string[]> {
  const { objects = [], prefixes = [] } = (await list?.(folder)) ?? {};
  if (separator === ".") return [...objects];
  const keys = objects.filter((name) => !name.includes("."));
  const folders = prefixes.filter((name) => /^(?:c|\d+)$/.test(name));
  await workThrough(folders, LISTED_AT_ONCE, async (name) => {
    for (const key of await keysBelow(`${folder}${name}/`, separator, list)) keys.push(`${name}.${key}`);
  });
  return keys;
}

/** Returns the coordinates of files in C order; keys that are outside of the grid, or of no chunk, are left out. */
function* sortedFiles(
  keys: readonly string[],
  isV2: boolean,
  gridShape: readonly number[],
): CooperativeTask<readonly number[][]> {
  const found: number[][] = [];
  for (const key of keys) {
    yield;
    // The only chunk of a scalar is `c` alone.
    const text = isV2 ? key : key === "c" ? "0" : (/^c\.(.+)/.exec(key)?.[1] ?? "");
    const coords = parseChunkKey(text, gridShape);
    if (coords !== undefined) found.push(coords);
  }
  return yield* sortCooperatively(found, (one, other) => {
    const axis = one.findIndex((index, axis) => index !== other[axis]);
    return axis < 0 ? 0 : one[axis]! - other[axis]!;
  });
}

/** Returns the chunks of a file along each axis. */
function chunksPerFileOf(source: FileChunks | ShardChunks): readonly number[] {
  if (source.kind === "files") return [];
  const [first, ...inner] = source.levels.map(({ chunksPerShard }) => chunksPerShard);
  return inner.reduce((counts, each) => counts.map((count, axis) => count * each[axis]!), first ?? []);
}

/** Finds chunks that are files of their own. */
function wholeFiles({ directory, keyEncoding }: FileChunks): ChunkFinder {
  const prefix = directory === "" ? "" : `${directory}/`;
  return {
    placeOf(chunkCoords) {
      const key = encodeChunkKey(chunkCoords, keyEncoding);
      return { key, path: prefix + key, positions: [] };
    },
    find: ({ byteLength }) => ({ offset: 0, byteLength }),
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
  const root = source.root ?? source.directory;
  const { calls, version, read } = createStoreFiles(root, mayBlock);
  return {
    name: "",
    looksTwice: true,
    version: (path, _next, { wasChecked }) => version(path, wasChecked),
    use(path, _next, use, wasChecked) {
      return read(
        path,
        ({ stat, readBytes }) => use({ byteLength: Number(stat.size), version: versionOf(stat), readBytes }),
        wasChecked,
      );
    },
    placeOf: (path) => ({ location: path }),
    async list(folder) {
      const below = relative(root, folder);
      const found = await createFileStore(root).list?.(below === "" ? "" : `${below}/`);
      return found ?? { objects: [], prefixes: [] };
    },
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

function placedFiles(
  store: string,
  find: (path: string) => MaybePromise<PlacedObject | undefined>,
): ChunkStore {
  const isUnchanged = () => true;
  return {
    name: `${store}\n`,
    looksTwice: false,
    version: (path) => whenDone(find(path), (found) => ({ token: found?.token, isUnchanged })),
    use: (path, _next, use) =>
      whenDone(find(path), (found) => {
        if (found === undefined) return undefined;
        const { token: version, byteLength } = found;
        const readBytes: ShardFile["readBytes"] = (offset, length, allocate) =>
          found.read({ range: { offset, byteLength: length }, allocate });
        return use({ version, byteLength, readBytes });
      }),
    placeOf: (path) => whenDone(find(path), (found) => found?.place()),
    list: undefined,
    exists: async () => true,
  };
}

function objectFiles(objects: FreshObjects): ChunkStore {
  const { store } = objects;
  const exists = async (path: string) => (await objects.look(path, "none")).version !== undefined;
  return {
    name: `${store.identity}\n`,
    looksTwice: false,
    version(path, next, { allocate, isHeld }) {
      const token = objects.known(path)?.version?.token;
      if (token !== undefined)
        return { token, isUnchanged: () => objects.known(path)?.version?.token === token };
      // Of a shard, the index is read next, which is at hand itself.
      const options = next === undefined ? { allocate, isHeld } : { allocate };
      return objects.look(path, next, options).then(({ version }) => ({ token: version?.token }));
    },
    async use(path, next, use) {
      const known = await objects.look(path, next);
      if (known.version === undefined) return undefined;
      if (known.byteLength === undefined)
        throw new ZpublishError("source-changed", `'${path}' changed before its length was known`);
      const version = known.version.token;
      const file: ShardFile = {
        byteLength: known.byteLength,
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
      assertStoredLength(bytes.length, maxByteLength, () => `chunk '${path}'`);
      return { bytes, version: version.token };
    },
    urlFor: store.urlFor && ((path, seconds) => store.urlFor?.(path, seconds) ?? Promise.resolve(undefined)),
    placeOf: (path) => store.placeOf?.(path),
    list: store.list,
    isLeftToClients: async (metadataFile) =>
      objects.believes && store.urlTellsAbsence === true && exists(metadataFile),
    exists,
  };
}
