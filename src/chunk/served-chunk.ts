import type { CacheKey } from "../cache/cache-key.js";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import type { BodyReply } from "../http/reply.js";
import type { ChunkReader, VersionCheck } from "../zarr/chunk-reader.js";

/** One chunk of a served array: resolved at its first request, remembered for the next. */
export interface ServedChunk {
  readonly snapshot: DatasetSnapshot;
  readonly array: ServedArray;
  readonly access: ChunkAccess;
  /** Canonical: `0.12.3`. */
  readonly key: string;
  readonly coords: readonly number[];
  /** Checks without waiting if `version` still holds; undefined if that takes an asynchronous check. */
  check: VersionCheck | undefined;
  /** Iteration of the event loop in which `version` was checked without waiting; -1 if never. */
  checkedIn: number;
  /** Version of the stored bytes at the last request. */
  version: ChunkVersion | undefined;
  /** Reply for `version`. */
  reply: BodyReply | undefined;
}

/** Properties that all chunks of one array share while its snapshot lives. */
export interface ChunkAccess {
  readonly reader: ChunkReader;
  /** First part of every ETag: the same on all instances whose encoders write the same bytes. */
  readonly tag: string;
  /** First part of every cache key: identifies the place of the data, too. */
  readonly cachePrefix: string;
  /** Estimated bytes of a chunk in memory: uncompressed, and a guess if items have no fixed size. */
  readonly expectedByteLength: number;
  /** Greatest length of a stored chunk that is passed through; undefined if it is not known, or not passed through. */
  readonly maxStoredByteLength: number | undefined;
}

/** Version of the stored bytes behind a served chunk, known without reading them. */
export interface ChunkVersion {
  /** False if the dataset is immutable: then nothing was checked. */
  readonly wasChecked: boolean;
  /** Token that identifies the bytes; undefined if nothing is stored, or nothing was checked. */
  readonly token: string | undefined;
}

/** A request for one version of a chunk. */
export interface ChunkRequest {
  readonly chunk: ServedChunk;
  readonly version: ChunkVersion;
  readonly cacheKey: CacheKey;
}
