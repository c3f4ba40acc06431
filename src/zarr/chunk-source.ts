/**
 * The place of an array's stored chunks: plain data that crosses threads, so that a worker opens its own reader.
 * `source/chunk-reader.ts` opens one.
 */
export type ChunkSource = FileChunks | ShardChunks | MemoryChunks;

/** The rule by which chunk coordinates become a file name below the array's directory. */
export interface ChunkKeyEncoding {
  /** `default` puts `c` before the indices (a scalar is `c`), `v2` does not (a scalar is `0`). */
  readonly name: "v2" | "default";
  readonly separator: "." | "/";
}

/** Files below the directory of one array. */
export interface ChunkFiles {
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

/** The whole array in shared memory, C order, as the one chunk of its grid. */
export interface MemoryChunks {
  readonly kind: "memory";
  readonly buffer: SharedArrayBuffer;
  readonly byteOffset: number;
  readonly byteLength: number;
}

/**
 * Reader of an array's stored chunks. Callers check that coordinates are inside the stored grid.
 *
 * An absent chunk is `undefined`. A failure throws `source-unreadable` or `corrupt-chunk`, and names the chunk by its
 * store key, never by a path of the machine.
 */
export interface ChunkReader {
  /**
   * What identifies the stored bytes behind a chunk without reading them (modification time and size of its file),
   * or undefined where there is nothing. Of a shard it is the whole shard's. Short, of `[0-9a-z.]`.
   * Waits out the clock tick in which a file was modified, so that a rewrite always changes the stamp.
   */
  stamp(chunkCoords: readonly number[]): Promise<string | undefined>;
  /**
   * The same at once, and a way to look again. Undefined if that might have to wait (for another machine, a slow disk, a
   * link, a file just written), and if there is nothing.
   * @param wasLookedAt Whether the chunk was looked at before, so that a look waits for no disk. Default false.
   */
  lookNow?(chunkCoords: readonly number[], wasLookedAt?: boolean): StampLook | undefined;
  /**
   * What `read` gives, at once: from a local file system only, while it answers quickly. Undefined if `read` has to be
   * asked, which also says what is wrong.
   */
  readNow?(chunkCoords: readonly number[], options?: ReadOptions): StoredChunk | undefined;
  /**
   * The stored bytes, and the stamp they had before and after the read (a read during which the stamp changed is
   * repeated). The caller owns `bytes`, except for memory sources, where it is a view of the shared array.
   */
  read(chunkCoords: readonly number[], options?: ReadOptions): Promise<StoredChunk | undefined>;
  /** How long the stored chunk is, without reading it; undefined where there is none. */
  measure(chunkCoords: readonly number[]): Promise<StoredSize | undefined>;
}

/** What makes a read cheaper. */
export interface ReadOptions {
  /** The chunk was looked at just now, so that opening its file waits for no disk. Default false. */
  readonly wasLookedAt?: boolean;
  /** Where the memory for the bytes comes from. Default: memory of their own. */
  readonly allocate?: (byteLength: number) => Uint8Array<ArrayBuffer>;
  /**
   * A longer chunk is refused before there is memory for it, as `corrupt-chunk`: see `max-stored-byte-length.ts`. Memory
   * sources need none. Default: none, but what one read can take.
   */
  readonly maxByteLength?: number | undefined;
}

/** What a look at a stored chunk found. */
export interface StampLook {
  readonly stamp: string;
  /** Whether a stamp now would be the same. Takes microseconds and never waits. */
  isUnchanged(): boolean;
}

/** Length of a stored chunk, and what {@link ChunkReader.stamp} was when it had that. */
export interface StoredSize {
  readonly byteLength: number;
  readonly stamp: string;
}

/** Bytes of a stored chunk. */
export interface StoredChunk {
  readonly bytes: Uint8Array;
  readonly stamp: string;
}
