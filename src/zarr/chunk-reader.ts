import { createHash } from "node:crypto";
import { type MaybePromise, mapInLots, whenDone } from "../event-loop/maybe-promise.js";
import type { CodecStep, ItemConversion } from "./codec-step.js";

/**
 * Reader of an array's stored chunks. Callers check that coordinates are inside the stored grid.
 *
 * An absent chunk is `undefined`. A failure throws `source-unreadable` or `corrupt-chunk`, and names the chunk by its
 * store key, never by a path of the machine. Methods return their result itself if it is known without waiting (for another
 * machine, a slow disk, a link, a file just written), else a promise.
 */
export interface ChunkBytes {
  /**
   * Returns what identifies the stored bytes of a chunk (modification time and size of its file) without reading them. A chunk in
   * a shard has the version of the whole shard. Waits out the clock tick in which a file was modified, so that a rewrite always
   * changes the version.
   * @param options `allocate`: for the chunk's bytes, if they come with the version; the next `read` returns them then.
   */
  version(chunkCoords: readonly number[], options?: VersionOptions): MaybePromise<StoredVersion>;
  /**
   * Reads a chunk, and the version that it had before and after the read; if the version changed, reads again. The caller
   * owns `bytes`, unless the source is in memory: then they are a view of the shared array.
   */
  read(chunkCoords: readonly number[], options?: ReadOptions): MaybePromise<StoredChunk | undefined>;
}

/** Reader of an array's stored chunks, and what else is known of them. */
export interface ChunkReader extends ChunkBytes {
  /** Index of all chunks; undefined if there is none. The chunks have one version then, so that one check answers for all. */
  readonly places?: ChunkPlaces | undefined;
  /** Pieces of the chunks; undefined if all are stored ones. */
  readonly parts?: ChunkParts | undefined;
  /**
   * Tells whether a chunk is in the cache, so that reading it makes nothing; undefined if there is no cache. Only readers of `served`
   * chunks have it.
   */
  readonly isCached?: (
    chunkCoords: readonly number[],
    signal: AbortSignal | undefined,
  ) => Promise<boolean | undefined>;
  /** The source of the chunks, if another thread can open it: local Zarr stores, and memory. */
  readonly source?: ThreadSource;
  /**
   * Finds where other programs read the stored bytes of a chunk; undefined if it is absent, {@link HIDDEN} if they cannot. The bytes are
   * not read. Default: all are hidden.
   * @param isStored Whether {@link files} has listed its file, so that it is not looked for. Default false.
   * @throws ZpublishError as `version`
   */
  readonly locate?: (
    chunkCoords: readonly number[],
    isStored?: boolean,
  ) => MaybePromise<BytePlace | typeof HIDDEN | undefined>;
  /** Files or objects that have one chunk each, or one shard of chunks. Undefined if chunks lie otherwise. */
  readonly files?: ChunkFileGrid;
  /**
   * Returns a URL from which a client can fetch the stored chunk itself for some seconds; undefined if it cannot. Only readers
   * of whole objects have it, if the operator wants clients to be redirected.
   */
  readonly urlFor?:
    | ((chunkCoords: readonly number[], seconds: number) => Promise<string | undefined>)
    | undefined;
  /**
   * Tells whether clients may find out themselves which chunks are absent: the array is believed to exist, and the store answers them
   * as it answers here. Default: they may not.
   */
  readonly isLeftToClients?: (() => Promise<boolean>) | undefined;
}

/** The place of stored bytes, for other programs. */
export interface BytePlace {
  /** Absolute path of a file of this machine, or URL; without credentials. */
  readonly location: string;
  /** Bytes of the file or object; undefined if they are all of it. */
  readonly part?: { readonly offset: number; readonly byteLength: number } | undefined;
  /** Whether all clients may be told it, and read it: a store to which they are redirected. */
  readonly isPublic?: boolean;
}

/** The files of an array, each of which has a block of chunks. */
export interface ChunkFileGrid {
  /** Chunks of a file, per axis. */
  readonly chunksPerFile: readonly number[];
  /**
   * Lists the coordinates of the files that are there, in C order. Undefined if the store cannot be listed.
   * @param gridShape Number of files along each axis: others are left out.
   * @throws ZpublishError `source-unreadable`
   */
  readonly list: ((gridShape: readonly number[]) => Promise<readonly (readonly number[])[]>) | undefined;
}

/** In place of a {@link BytePlace}: the bytes are stored, but only this server can read them, such as compressed members of an archive. */
export const HIDDEN = "hidden";

/** Finds the place of a part of bytes. @param part As in {@link BytePlace}. */
export function placeOfPart(
  place: BytePlace | undefined,
  part: BytePlace["part"],
): BytePlace | typeof HIDDEN {
  if (place === undefined) return HIDDEN;
  if (part === undefined) return place;
  const { part: { offset } = { offset: 0 } } = place;
  return { ...place, part: { offset: offset + part.offset, byteLength: part.byteLength } };
}

/** An index of all chunks of an array, in one file. */
export interface ChunkPlaces {
  has(chunkCoords: readonly number[]): boolean;
  /** Returns the variant of a chunk; see `StoredChunk`. */
  variantOf(chunkCoords: readonly number[]): number;
  /** Finds where a chunk lies; undefined if it is absent. Undefined itself if another thread cannot read the file. */
  readonly placeOf: ((chunkCoords: readonly number[]) => LocalPlace | undefined) | undefined;
}

/** A `ChunkSource` without functions, which crosses threads. */
export interface ThreadSource {
  readonly kind: "files" | "shards" | "memory";
}

/** Options of a read. */
export interface ReadOptions {
  /** Whether the chunk was checked before, so that looking at its file again waits for no disk. Default false. */
  readonly wasChecked?: boolean | undefined;
  /** Aborts when nothing needs the result any more. Only readers of chunks that have to be made know it. */
  readonly signal?: AbortSignal | undefined;
  /** Allocates the memory for the bytes. Default: memory of their own. */
  readonly allocate?: ((byteLength: number) => Uint8Array<ArrayBuffer>) | undefined;
  /**
   * Maximum length of the stored chunk; a longer one is refused as `corrupt-chunk` before memory is allocated (see
   * `max-stored-byte-length.ts`). Memory sources ignore it. Default: what one read can take.
   */
  readonly maxByteLength?: number | undefined;
  /** Chooses the bytes to read by the length of the file. Only readers of whole files know it. Default: all. */
  readonly part?: (byteLength: number) => StoredPart;
}

/** Options of a look at a version. */
export interface VersionOptions extends Pick<ReadOptions, "wasChecked" | "signal" | "allocate"> {
  /**
   * Tells whether the bytes of a version are at hand, so that its store need not send them again with the answer that they are
   * unchanged. Default: they are.
   */
  readonly isHeld?: ((token: string) => boolean) | undefined;
}

/** Part of a stored file, in bytes. */
interface StoredPart {
  readonly start: number;
  readonly byteLength: number;
}

/** The place of a stored chunk in a file. */
export interface ChunkPlace {
  readonly offset: number;
  /** Bytes that the file has. */
  readonly byteLength: number;
  /** Bytes of the chunk: more than the file has if the rest is padding, which is zeros. */
  readonly wholeByteLength: number;
  /** As in {@link StoredChunk}. */
  readonly variant: number;
}

/** The place of a stored chunk in a file of this machine. */
export interface LocalPlace extends ChunkPlace {
  /** Absolute real path of the file's directory. */
  readonly directory: string;
  /** Name of the file in it. */
  readonly key: string;
  /** Version of the file, without which the place says nothing. */
  readonly version: string;
}

/** The version of a stored chunk. */
export interface StoredVersion {
  /** Short, of `[0-9a-z.]`; undefined if nothing is stored. */
  readonly token: string | undefined;
  /** Tells whether the version is still the same. Takes microseconds and never waits. Undefined if that may have to wait. */
  readonly isUnchanged?: (() => boolean) | undefined;
  /** Milliseconds since process start when the version was true. Default: now. */
  readonly checkedAtMs?: number | undefined;
}

/** Bytes of a stored chunk. */
export interface StoredChunk {
  readonly bytes: Uint8Array;
  readonly version: string;
  /** Codecs of the chunk: 0 for those of the array, n for entry n - 1 of its `variants`. Default 0. */
  readonly variant?: number;
  /** Length of the whole file; undefined if `part` was not asked for. */
  readonly fileByteLength?: number;
}

/** The place of an array's stored chunks: plain data that crosses threads. `open/chunk-reader.ts` opens a reader of it. */
export type ChunkSource =
  | FileChunks
  | ShardChunks
  | RangeChunks
  | MemoryChunks
  | GivenChunks
  | ServedChunks
  | PartChunks;

/** The rule by which chunk coordinates become a file name below the array's directory. */
export interface ChunkKeyEncoding {
  /** `default` puts `c` before the indices (a scalar is `c`), `v2` does not (a scalar is `0`). */
  readonly name: "v2" | "default";
  readonly separator: "." | "/";
}

/** Objects of a store that is no local directory. Functions do not cross threads, so the server's thread reads them. */
export interface ChunkObjects {
  /** Name of the store: differs between places, without credentials. */
  readonly store: string;
  readonly openReader: (source: FileChunks | ShardChunks) => ChunkReader;
  /**
   * Whether they are the objects of one state of the store, which never change, and have a version by content. Default: they may change.
   */
  readonly isPinned?: boolean;
}

/** Files below the directory of one array. */
export interface ChunkFiles {
  /** The store, if it is no local directory. Then `directory` and `metadataFile` are keys in it. Default: local files. */
  readonly objects?: ChunkObjects;
  /** Absolute path of the array's directory. */
  readonly directory: string;
  /** Absolute real path of the store; a file that resolves outside of it is refused. Default: `directory`. */
  readonly root?: string;
  /**
   * Absolute path of a metadata document of the array. If it is missing too, a missing file is no absent chunk: the store is gone
   * (unmounted, deleted). Undefined if that is not checked.
   */
  readonly metadataFile?: string;
}

/** One file per chunk. */
export interface FileChunks extends ChunkFiles {
  readonly kind: "files";
  readonly keyEncoding: ChunkKeyEncoding;
}

/** Zarr v3 sharding: many chunks in one file, at the places in its index. */
export interface ShardChunks extends ChunkFiles {
  readonly kind: "shards";
  /** Key encoding of the shard's file. */
  readonly keyEncoding: ChunkKeyEncoding;
  /** Outermost first. More than one if the inner chunks of a shard are shards themselves. */
  readonly levels: readonly ShardLevel[];
}

/** Layout of the shards of one level of sharding. */
export interface ShardLevel {
  /** Inner chunks per axis of one shard. */
  readonly chunksPerShard: readonly number[];
  /** Place of the index, a list of (offset, length) pairs of uint64. Offsets count from the beginning of the shard. */
  readonly indexLocation: "start" | "end";
  /** Whether the index is followed by its crc32c (4 bytes). */
  readonly indexChecksum: boolean;
  readonly indexByteOrder: "<" | ">";
}

/** Ranges of a file in another format, which the server's thread reads for workers. The fields, without the function, identify the array. */
export interface RangeChunks {
  readonly kind: "ranges";
  /** Name of the file's store: differs between places, without credentials. */
  readonly store: string;
  /** Key of the file in its store. */
  readonly key: string;
  /** Version of the file to which the places belong. */
  readonly version: string;
  /** Path of the array in the file. */
  readonly path: string;
  /** Whether chunks are bytes of the file, are kept in its index, or are put together from several parts of the file. */
  readonly form: "ranges" | "kept" | "made";
  /** Number of chunks whose codecs differ from the others'; see `StoredChunk.variant`. */
  readonly differing: number;
  /** Plain data with which `openIndexedChunks` opens the reader again without reading the file's index. Default: that needs the index. */
  readonly index?: unknown;
  readonly openReader: () => ChunkReader;
}

/** The whole array in shared memory, C order, as the one chunk of its grid. */
export interface MemoryChunks {
  readonly kind: "memory";
  readonly buffer: SharedArrayBuffer;
  readonly byteOffset: number;
  readonly byteLength: number;
}

/** Stored chunks that a worker gets with its task, since it cannot read them. */
interface GivenChunks {
  readonly kind: "given";
  /** Name that tells the array's chunks from others'. */
  readonly name: string;
}

/** The axis along which a joined array grows, and the name of its dataset. */
export type JoinedAxis = Pick<PartChunks, "store"> & { readonly axis: number };

/**
 * Chunks of a coarser level, which this server makes itself. Its thread takes them from the cache, or has them made, and hands them to
 * workers. The fields, without the function, identify the array.
 */
export interface ServedChunks {
  readonly kind: "served";
  /** Name of the dataset, and of the place of its data. */
  readonly store: string;
  /** Path of the array. */
  readonly path: string;
  /** Ids of the plans that make the chunks, and those of the levels below. */
  readonly plan: string;
  /** Undefined if the array below all levels is not joined, or has chunks without versions. */
  readonly joined?: JoinedAxis | undefined;
  /** Levels above stored chunks: a chunk of level 3 waits for chunks of level 2, and so on. */
  readonly level: number;
  /** Returns the same reader at each call. */
  readonly openReader: () => ChunkReader;
}

/** Stored chunks of one array that are looked up at a time. */
const CONCURRENCY = 16;
/** Versions whose checks are kept together: more take too much memory. */
const MAX_CHECKS = 8;

/** Looks up the versions of stored chunks of one array. @throws ZpublishError `source-unreadable` */
export function versionsOf(
  reader: ChunkReader,
  stored: readonly (readonly number[])[],
  options?: VersionOptions,
): MaybePromise<readonly StoredVersion[]> {
  const { places } = reader;
  if (places === undefined) return mapInLots(stored, CONCURRENCY, (each) => reader.version(each, options));
  const are = stored.map((each) => places.has(each));
  const shared = reader.version(stored[Math.max(0, are.indexOf(true))] ?? [], options);
  return whenDone(shared, (found) =>
    are.map((isPresent) => (isPresent ? found : { ...found, token: undefined })),
  );
}

/** Combines versions to one. @param combine Returns its token by theirs. */
export function combineStored(
  versions: readonly StoredVersion[],
  combine: (tokens: readonly (string | undefined)[]) => string | undefined,
): StoredVersion {
  const token = combine(versions.map((each) => each.token));
  const times = versions.flatMap(({ checkedAtMs }) => checkedAtMs ?? []);
  const checks = [...new Set(versions.map(({ isUnchanged }) => isUnchanged))];
  const isChecked = checks.length <= MAX_CHECKS && !checks.includes(undefined);
  return {
    token,
    isUnchanged: isChecked ? () => checks.every((isUnchanged) => isUnchanged?.()) : undefined,
    checkedAtMs: times.length === 0 ? undefined : Math.min(...times),
  };
}

/**
 * Chunks of several arrays that follow each other along an axis, as in files of one day each, or of one array whose stored chunks have
 * unequal lengths. A chunk that is one stored chunk has variant 0, and its bytes. All others have the variant {@link PIECED}: a worker puts
 * them together. The fields, without the function, identify the array.
 */
export interface PartChunks {
  readonly kind: "parts";
  /** Name of the dataset: differs between places, without credentials. */
  readonly store: string;
  /** Path of the array. */
  readonly path: string;
  /**
   * The joined axis, along which the array grows; -1 for an array without it, which is that of one part. Versions of chunks name the
   * parts that they are made of. Undefined if the array is not joined.
   */
  readonly axis: number | undefined;
  /** Returns the same reader at each call. */
  readonly openReader: () => PartChunkReader;
}

/** Variant of a chunk that is made of pieces. Its decoded form is raw items in the stored order of the joined array. */
export const PIECED = 1;

/** Reader of the chunks of joined arrays. Their version is `versionOfPassed` if their variant is 0, else `versionOfPieces`. */
export interface PartChunkReader extends ChunkReader {
  readonly parts: ChunkParts;
}

/** The parts of a joined array. */
export interface ChunkParts {
  /** Returns 0 for a chunk that is one chunk of one part, else {@link PIECED}. */
  variantOf(chunkCoords: readonly number[]): number;
  /**
   * Returns the pieces of a chunk, each a stored chunk of a part; absent chunks of parts included. A chunk of variant 0 is one piece.
   * `read` is not called for any other.
   * @throws ZpublishError `source-unreadable`, naming the part
   */
  piecesOf(chunkCoords: readonly number[]): Promise<readonly ChunkPiece[]>;
}

/** A stored chunk of a part, and where its items lie in the joined array. */
export interface ChunkPiece {
  readonly layout: PieceLayout;
  /** Reader of the part's array. Workers read its chunks themselves if it says their places, or what opens it there. */
  readonly reader: ChunkReader;
  /** Coordinates in the grid of the part. */
  readonly coords: readonly number[];
  /**
   * Identity of the part's array, which its versions need to tell it from others: a hash of the part's name and of `layout`; short, of
   * `[0-9a-z]`.
   */
  readonly part: string;
  /** Place of the chunk's first item in the joined array; negative if its first items are not used. */
  readonly origin: readonly number[];
  /** First place along each axis that items of the part are copied to. */
  readonly begin: readonly number[];
  /** Place behind the last one, along each axis: what lies behind the part's end is padding. */
  readonly end: readonly number[];
}

/** Decoding and conversion of one part's stored chunks. Plain data, one object per array of a part. */
export interface PieceLayout {
  /** Name that tells the array of the part from all others. */
  readonly name: string;
  /** Part and array, for messages. */
  readonly title: string;
  readonly chunkShape: readonly number[];
  readonly axisOrder: readonly number[];
  /** Bytes of an item of the part. */
  readonly itemSize: number;
  /** Steps that decode stored bytes, in that order. */
  readonly decode: readonly CodecStep[];
  /** Steps of stored chunks of the part that differ from its others, by variant: the first for 1. */
  readonly variants: readonly (readonly CodecStep[])[];
  /** Greatest length of a stored chunk; undefined if unknown. */
  readonly maxStoredByteLength: number | undefined;
  /** One item, in the part's type, for absent chunks; null for zero bytes. */
  readonly fillItem: Uint8Array | null;
  /** Whether absent chunks of the part mean another value than those of the joined array. Default false. */
  readonly hasOwnFill?: boolean;
  /** Change of items to those of the joined array; undefined if they are the same. */
  readonly conversion: ItemConversion | undefined;
}

/**
 * Returns the version of a chunk that is one chunk of one part.
 * @param version As the reader of the part returns it.
 */
export function versionOfPassed(
  { part, coords }: Pick<ChunkPiece, "part" | "coords">,
  version: string,
): string {
  return `${part}.${coords.join(".")}.${version}`;
}

/**
 * Combines the versions of the pieces of a chunk with their places, as `version` of the reader does.
 * @param versions In the order of the pieces; undefined for an absent one.
 * @returns Text of `[0-9a-z]`; undefined if all are absent, and mean the fill value of the joined array.
 */
export function versionOfPieces(
  pieces: readonly Omit<ChunkPiece, "reader">[],
  versions: readonly (string | undefined)[],
): string | undefined {
  if (pieces.every(({ layout }, index) => versions[index] === undefined && layout.hasOwnFill !== true))
    return undefined;
  const hash = createHash("sha256");
  for (const [index, { part, coords, origin, begin, end }] of pieces.entries())
    hash.update(`${[part, coords, origin, begin, end].join(".")} ${versions[index] ?? "-"}\n`);
  return hash.digest("hex").slice(0, 20);
}

/** Writes the name of a stored chunk below its array, in the array's own key encoding. */
export function encodeChunkKey(chunkCoords: readonly number[], encoding: ChunkKeyEncoding): string {
  if (encoding.name === "v2") return chunkCoords.length === 0 ? "0" : chunkCoords.join(encoding.separator);
  return chunkCoords.length === 0 ? "c" : `c${encoding.separator}${chunkCoords.join(encoding.separator)}`;
}

/**
 * Parses the key of a served chunk, `12.0.3`; a scalar's is `0`. Undefined unless it is the canonical key (no sign, no
 * leading zero, no other digits) of a chunk inside the grid, so that a chunk has one URL and one cache entry.
 */
export function parseChunkKey(text: string, gridShape: readonly number[]): number[] | undefined {
  const rank = gridShape.length;
  if (rank === 0) return text === "0" ? [] : undefined;
  const coords = new Array<number>(rank);
  const end = text.length;
  let position = 0;
  for (let axis = 0; axis < rank; axis++) {
    const start = position;
    let index = 0;
    while (position < end) {
      const digit = text.charCodeAt(position) - 48;
      if (digit < 0 || digit > 9) break;
      index = index * 10 + digit;
      position++;
    }
    const length = position - start;
    // Sixteen digits bound the work. The grid is smaller than 2^53, so a number that was rounded is outside of it.
    if (length === 0 || length > 16 || (length > 1 && text.charCodeAt(start) === 48)) return undefined;
    if (index >= gridShape[axis]! || index > Number.MAX_SAFE_INTEGER) return undefined;
    coords[axis] = index;
    if (axis < rank - 1 && text.charCodeAt(position++) !== 46) return undefined;
  }
  return position === end ? coords : undefined;
}
