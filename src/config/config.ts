import type { Joining } from "../join/join-source.js";
import type { LogLevel } from "../observe/log.js";
import type { StoreSettings } from "../stores/byte-store.js";
import type { CodecSpec } from "../zarr/codec-step.js";
import type { CoarsenMethod } from "../zarr/plan/encoding-plan.js";

/** The validated configuration: argv over environment over file over defaults. Frozen. */
export interface Config {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  /** Worker threads, divided among the processes and rounded up. */
  readonly workers: number;
  /** Number of processes that answer requests on one port. With 1, the process that was started does. */
  readonly processes: number;
  readonly cache: CacheConfig | null;
  /** In the order configured. */
  readonly datasets: readonly DatasetConfig[];
  /** Folders and prefixes whose datasets come and go, in the order configured. */
  readonly collections: readonly CollectionConfig[];
  /** Defaults of datasets of plugins; datasets and collections have them already. Default: none. */
  readonly datasetDefaults?: DatasetDefaults;
  readonly plugins: readonly PluginConfig[];
  /** Empty, or begins with a slash and ends without one. */
  readonly rootPath: string;
  /** Seconds between refreshes; 0 for none. */
  readonly refreshSeconds: number;
  /** `*`, origins separated by commas, or empty if no other origin may read. */
  readonly corsOrigin: string;
  /** Default for datasets without their own. */
  readonly cacheControl: string;
  readonly logLevel: LogLevel;
  readonly skipInvalid: boolean;
  /** Whether the endpoints of the one dataset are at the root instead of below `/datasets/{id}`. */
  readonly single: boolean;
  readonly title: string;
  readonly limits: LimitsConfig;
  readonly drain: DrainConfig;
  readonly access: AccessConfig;
  readonly observe: ObserveConfig;
}

/** Bounds of one server. Several processes share them. */
export interface LimitsConfig {
  readonly maxConnections: number;
  /** Requests in flight. */
  readonly maxRequests: number;
  /** Requests in flight from which on pages and metadata are shed. */
  readonly maxPages: number;
  /** Bytes of bodies that are being made, or that clients have not received yet. */
  readonly maxResponseBytes: number;
  /** Chunks that wait for a worker, or for the disk. */
  readonly maxQueuedChunks: number;
  /** Length of a request line and its headers. */
  readonly maxHeaderBytes: number;
  /** Length of path and query, percent-encoded. */
  readonly maxUrlBytes: number;
  /** Time until an answer begins. */
  readonly requestTimeoutMs: number;
  /** Time without progress after which a client that does not read its answer is dropped. */
  readonly stallTimeoutMs: number;
  /** Time of one chunk in a worker. */
  readonly chunkTimeoutMs: number;
  /** Time of one call to a source. */
  readonly sourceTimeoutMs: number;
  /** JavaScript heap of one worker. */
  readonly workerHeapBytes: number;
  /** Datasets of collections and plugins that are open at a time, in each process. */
  readonly maxOpenDatasets: number;
  /** Decoded size of a chunk that is not passed through. */
  readonly maxChunkBytes: number;
}

/** Times of draining a server. */
export interface DrainConfig {
  /** Time in which the server is not ready, but answers as before. */
  readonly delayMs: number;
  /** Time for requests in flight after that. */
  readonly timeoutMs: number;
}

/** Access of clients, and trust in proxies. */
export interface AccessConfig {
  /** Addresses and networks (CIDR), without names such as `loopback`. */
  readonly trustedProxies: readonly string[];
  /** Absolute paths of PEM files; null for plain HTTP. */
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null;
  /** Absolute path; null if every client may read. */
  readonly tokenFile: string | null;
}

/** Metrics, admin port and logging of requests. */
export interface ObserveConfig {
  readonly metrics: boolean;
  /** Listener of health and metrics; null if they are on the port of all other routes. */
  readonly admin: { readonly host: string; readonly port: number } | null;
  /** Share of requests that are logged, 0 to 1. */
  readonly accessLogShare: number;
  /** In lower case. */
  readonly requestIdHeader: string;
}

/** Place and size of the chunk cache. */
export interface CacheConfig {
  /** Absolute path. */
  readonly directory: string;
  readonly maxBytes: number;
}

/** One plugin to load. */
export interface PluginConfig {
  /** Name of a built-in plugin, or the plugin's key in the file. */
  readonly name: string;
  /** Module specifier or absolute path of a third-party plugin; undefined for a built-in one. */
  readonly module?: string;
  readonly options?: unknown;
}

/** One dataset to publish. */
export interface DatasetConfig {
  readonly id: string;
  readonly location: string;
  readonly cacheControl?: string;
  readonly immutable: boolean;
  /**
   * Time for which an answer of a remote store is believed, in seconds. `always` asks each time, `immutable` never again. Default:
   * the time between refreshes.
   */
  readonly freshness?: number | "always" | "immutable";
  /** How remote places are reached. */
  readonly stores?: readonly StoreSettings[];
  /** URLs and absolute paths below which references may lead. Default: the folder of the reference file. */
  readonly references?: { readonly allow: readonly string[] };
  /** Encoding of every array of the dataset. */
  readonly encoding: EncodingConfig;
  /** Encodings by variable path without a leading slash. They win over `encoding`. */
  readonly variables: Readonly<Record<string, EncodingConfig>>;
  /** Coarser levels that are published beside the dataset; false for none. Default: that of `--overviews`. */
  readonly overviews?: OverviewsConfig | false;
  /**
   * Name of the collection that the location is if it turns out to be a folder of files and stores, and no store itself; may be empty.
   * Default: such a folder cannot be opened.
   */
  readonly asCollection?: string;
  /** Join of files into one dataset. If given, `location` is a pattern, such as `/data/sst-*.nc`, or a folder. */
  readonly join?: Joining;
}

/** Parts of a dataset's configuration that hold for all datasets. */
export type DatasetDefaults = Pick<DatasetConfig, "stores" | "references" | "overviews">;

/** A folder or prefix below which datasets come and go. */
export interface CollectionConfig extends Omit<DatasetConfig, "id" | "location" | "asCollection" | "join"> {
  /** Ids of its datasets begin with it and a `~`. Empty for no prefix. */
  readonly name: string;
  /** Absolute path of a directory, or `s3://bucket/prefix/`. */
  readonly root: string;
  /** Patterns of paths below the root. Default: files and stores of all known formats. */
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
  /** Whether the root is a Zarr hierarchy whose groups with arrays are datasets of their own, read when asked for. */
  readonly groups?: boolean;
}

/** Coarser levels of a dataset: each has half as many cells along the horizontal axes as the one before. */
export interface OverviewsConfig {
  /** Number of levels above the dataset itself; `auto` for as many as it takes until a plane is one chunk. */
  readonly levels: number | "auto";
  /** How cells become one. Categories are never averaged: for them, `mean` is `mode`. */
  readonly method: CoarsenMethod;
  /** Convention of the metadata in Zarr v2. Default: `geo` for latitudes, longitudes and projected grids, else `ome`. */
  readonly metadata?: "geo" | "ome";
}

/** Encoding of a served array; omitted parts stay as stored. */
export interface EncodingConfig {
  /** Elements per axis, by dimension name (others stay as stored), or one per axis. -1 means the whole axis. */
  readonly chunks?: Readonly<Record<string, number>> | readonly number[];
  readonly compressor?: CodecSpec | null;
  readonly filters?: readonly CodecSpec[] | null;
}
