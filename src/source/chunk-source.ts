/**
 * Where the chunks of one stored array are: plain data that crosses threads, so that a worker opens and keeps
 * the source itself. `chunk-reader.ts` turns one into a reader.
 */
export type ChunkSource = FileChunks | ShardChunks | MemoryChunks;

/** How chunk coordinates become a file name below the array's directory. */
export interface ChunkKeyEncoding {
  /** `default` puts `c` before the indices (a scalar is `c`), `v2` does not (a scalar is `0`). */
  readonly name: "v2" | "default";
  readonly separator: "." | "/";
}

/** Files below the directory of one array. */
export interface ChunkFiles {
  /** Absolute path of the array's directory. */
  readonly directory: string;
  /** Absolute real path of the store; a file that resolves outside of it is refused. Undefined: `directory`. */
  readonly root?: string;
  /**
   * Absolute path of a metadata document that describes the array. While it is there, a file that is not there is an
   * absent chunk; when it is gone, so is the store (unmounted, deleted), which is a failure. Undefined: not checked.
   */
  readonly metadataFile?: string;
}

/** One file per chunk. */
export interface FileChunks extends ChunkFiles {
  readonly kind: "files";
  readonly keyEncoding: ChunkKeyEncoding;
}

/** Zarr v3 sharding: many chunks in one file behind an index of (offset, length) pairs of uint64. */
export interface ShardChunks extends ChunkFiles {
  readonly kind: "shards";
  /** Of the shard's file. */
  readonly keyEncoding: ChunkKeyEncoding;
  /** Inner chunks per axis of one shard. */
  readonly chunksPerShard: readonly number[];
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
 * Reads the stored chunks of one array. Coordinates are always inside the stored grid; callers check that.
 * Absent is `undefined`; everything else that goes wrong throws `source-unreadable` or `corrupt-chunk`, naming
 * the chunk by its store key and never by a path of the machine.
 */
export interface ChunkReader {
  /**
   * What identifies the stored bytes behind a chunk without reading them (modification time and size of its file),
   * or undefined where there is nothing. Of a shard it is the whole shard's. Short, of `[0-9a-z.]`.
   * Waits out the clock tick in which a file was modified, so that a rewrite always changes the stamp.
   */
  stamp(chunkCoords: readonly number[]): Promise<string | undefined>;
  /**
   * The same at once, for chunks that were looked at before, and a way to look again; undefined where that might have
   * to wait (for another machine, a link, a file just written), and where there is nothing.
   */
  lookNow?(chunkCoords: readonly number[]): StampLook | undefined;
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

export interface StoredChunk {
  readonly bytes: Uint8Array;
  readonly stamp: string;
}
