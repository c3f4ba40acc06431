/**
 * Reader of an array's stored chunks. Callers check that coordinates are inside the stored grid.
 *
 * An absent chunk is `undefined`. A failure throws `source-unreadable` or `corrupt-chunk`, and names the chunk by its
 * store key, never by a path of the machine.
 */
export interface ChunkReader {
  /**
   * Returns what identifies the stored bytes of a chunk (modification time and size of its file) without reading them;
   * undefined if there is no file. A chunk in a shard has the version of the whole shard. Short, of `[0-9a-z.]`.
   * Waits out the clock tick in which a file was modified, so that a rewrite always changes the version.
   * @param allocate Allocates memory for the chunk's bytes if they come with the version; the next `read` returns them then.
   */
  version(chunkCoords: readonly number[], allocate?: ReadOptions["allocate"]): Promise<string | undefined>;
  /**
   * Returns the version at once, and a way to check it again. Undefined if that might have to wait (for another machine, a
   * slow disk, a link, a file just written), and if there is no file.
   * @param wasChecked Whether the chunk was checked before, so that a check waits for no disk. Default false.
   */
  versionNow?(chunkCoords: readonly number[], wasChecked?: boolean): VersionCheck | undefined;
  /**
   * Reads a chunk at once, from a local file system that answers quickly. Undefined if the caller has to call `read`, which
   * also tells what is wrong.
   */
  readNow?(chunkCoords: readonly number[], options?: ReadOptions): StoredChunk | undefined;
  /**
   * Reads a chunk, and the version that it had before and after the read; if the version changed, reads again. The caller
   * owns `bytes`, unless the source is in memory: then they are a view of the shared array.
   */
  read(chunkCoords: readonly number[], options?: ReadOptions): Promise<StoredChunk | undefined>;
  /**
   * Finds without I/O where a chunk lies in a local file, so that another thread can read it; undefined if it is absent. Only readers
   * of local files that have an index of all chunks have it.
   */
  readonly placeOf?: ((chunkCoords: readonly number[]) => LocalPlace | undefined) | undefined;
  /** The source of the chunks, if another thread can open it. Readers of local Zarr stores and of memory have it. */
  readonly source?: ThreadSource;
  /**
   * Tells without I/O if there is a chunk. Only readers that have an index of all chunks have it; their chunks have one version, so
   * that one check answers for all.
   */
  has?(chunkCoords: readonly number[]): boolean;
  /** Returns the variant of a chunk; see `StoredChunk`. Default: all are 0. */
  variantOf?(chunkCoords: readonly number[]): number;
  /** Returns the length of the stored chunk without reading it; undefined if there is none. */
  measure(chunkCoords: readonly number[]): Promise<StoredSize | undefined>;
  /**
   * Returns a URL from which a client can fetch the stored chunk itself for some seconds; undefined if it cannot. Only readers
   * of whole objects have it, if the operator wants clients to be redirected.
   */
  readonly urlFor?:
    | ((chunkCoords: readonly number[], seconds: number) => Promise<string | undefined>)
    | undefined;
}

/** A `ChunkSource` without functions, which crosses threads. */
export interface ThreadSource {
  readonly kind: "files" | "shards" | "memory";
}

/** Options of a read. */
export interface ReadOptions {
  /** Whether the chunk was checked just now, so that opening its file waits for no disk. Default false. */
  readonly wasChecked?: boolean;
  /** Aborts when nothing needs the chunk any more. Only readers of chunks that have to be made know it. */
  readonly signal?: AbortSignal | undefined;
  /** Allocates the memory for the bytes. Default: memory of their own. */
  readonly allocate?: (byteLength: number) => Uint8Array<ArrayBuffer>;
  /**
   * Maximum length of the stored chunk; a longer one is refused as `corrupt-chunk` before memory is allocated (see
   * `max-stored-byte-length.ts`). Memory sources ignore it. Default: what one read can take.
   */
  readonly maxByteLength?: number | undefined;
  /** Chooses the bytes to read by the length of the file. Only readers of whole files know it. Default: all. */
  readonly part?: (byteLength: number) => StoredPart;
}

/** Part of a stored file, in bytes. */
export interface StoredPart {
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

/** The version of a stored chunk, and a way to check it. */
export interface VersionCheck {
  readonly version: string;
  /** Whether the version is still the same. Takes microseconds and never waits. */
  isUnchanged(): boolean;
}

/** Length of a stored chunk, and its version when it had that length. */
export interface StoredSize {
  readonly byteLength: number;
  readonly version: string;
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
