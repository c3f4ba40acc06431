import type { ChunkReader } from "./chunk-reader.js";
import type { PartChunks } from "./part-chunks.js";

export type {
  ChunkPlace,
  ChunkReader,
  LocalPlace,
  ReadOptions,
  StoredChunk,
  StoredPart,
  StoredSize,
  ThreadSource,
  VersionCheck,
} from "./chunk-reader.js";

/**
 * The place of an array's stored chunks: plain data that crosses threads, so that a worker opens its own reader.
 * `open/chunk-reader.ts` opens one.
 */
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
   * Absolute path of a metadata document of the array. While it is there, a missing file is an absent chunk. If it is
   * missing too, the store is gone (unmounted, deleted), which is a failure. Undefined if that is not checked.
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

/**
 * Ranges of a file in another format, at the places in its index. The server's thread has the index, and reads for workers. All fields
 * but the function are a name that no other array has.
 */
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
export interface GivenChunks {
  readonly kind: "given";
  /** Name that tells the array's chunks from others'. */
  readonly name: string;
}

/** The axis along which a joined array grows, and the name of its dataset. */
export type JoinedAxis = Pick<PartChunks, "store" | "axis">;

/**
 * Chunks that this server makes itself, of a coarser level. The server's thread gets them from the cache, or has them made, and hands
 * them to workers. All fields but the function are a name that no other array has.
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
