import type { LogLevel } from "../observe/log.js";
import type { CodecSpec } from "../zarr/codec-spec.js";

/** What the operator wants: argv over environment over file over defaults, validated. Frozen. */
export interface Config {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  /** Threads of the pool; with several processes, those of them that work at a time. */
  readonly workers: number;
  /** That answer requests on one port; 1: the one that was started. */
  readonly processes: number;
  /** Whether chunks are decoded and encoded with SIMD, in WebAssembly of our own. */
  readonly simd: boolean;
  readonly cache: CacheConfig | null;
  /** In the order configured. */
  readonly datasets: readonly DatasetConfig[];
  readonly plugins: readonly PluginConfig[];
  /** Empty, or begins with a slash and ends without one. */
  readonly rootPath: string;
  /** 0: never. */
  readonly refreshSeconds: number;
  /** `*`, origins separated by commas, or empty: other origins may read nothing. */
  readonly corsOrigin: string;
  /** Default for datasets that say nothing. */
  readonly cacheControl: string;
  readonly logLevel: LogLevel;
  readonly skipInvalid: boolean;
  readonly title: string;
  readonly limits: LimitsConfig;
  readonly drain: DrainConfig;
  readonly edge: EdgeConfig;
  readonly observe: ObserveConfig;
}

/** The bounds of one server; with several processes, of all together. */
export interface LimitsConfig {
  readonly maxConnections: number;
  /** Being answered at once. */
  readonly maxRequests: number;
  /** The same of pages and metadata. */
  readonly maxPages: number;
  /** Bodies being made or not taken yet by clients. */
  readonly maxResponseBytes: number;
  /** Waiting for a worker, or for the disk. */
  readonly maxQueuedChunks: number;
  /** Request line and headers. */
  readonly maxHeaderBytes: number;
  /** Path and query, as they come. */
  readonly maxUrlBytes: number;
  /** Until an answer begins. */
  readonly requestTimeoutMs: number;
  /** That a client takes nothing of its answer. */
  readonly stallTimeoutMs: number;
  /** One chunk in a worker. */
  readonly chunkTimeoutMs: number;
  /** One look at, or read from, a source. */
  readonly sourceTimeoutMs: number;
  /** JavaScript heap of one worker. */
  readonly workerHeapBytes: number;
  /** What a chunk that is not served as stored may decode to. */
  readonly maxChunkBytes: number;
}

/** How a server takes its leave. */
export interface DrainConfig {
  /** Not ready, but as before in all else. */
  readonly delayMs: number;
  /** Then, for what is in flight. */
  readonly timeoutMs: number;
}

/** What stands between a server and the open network. */
export interface EdgeConfig {
  /** Addresses and networks (CIDR); words are replaced by what they stand for. */
  readonly trustedProxies: readonly string[];
  readonly proxyProtocol: boolean;
  /** Absolute paths of PEM files; null: plain HTTP. */
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null;
  /** Absolute; null: everybody may read. */
  readonly tokenFile: string | null;
}

/** How a server is seen from outside. */
export interface ObserveConfig {
  readonly metrics: boolean;
  /** Null: health and metrics are on the port of all else. */
  readonly admin: { readonly host: string; readonly port: number } | null;
  /** Share of requests that are logged, 0 to 1. */
  readonly accessLogShare: number;
  /** In lower case. */
  readonly requestIdHeader: string;
}

export interface CacheConfig {
  /** Absolute. */
  readonly directory: string;
  readonly maxBytes: number;
  /** How long the checksum of a kept chunk is believed once it was looked at; 0: looked at each time. Default 2,000. */
  readonly verifiedForMs?: number;
}

/** One plugin to load. */
export interface PluginConfig {
  /** A built-in plugin's name, or the name it is listed under in the file. */
  readonly name: string;
  /** Module specifier or absolute path of a third party's plugin; undefined for built-in ones. */
  readonly module?: string;
  readonly options?: unknown;
}

export interface DatasetConfig {
  readonly id: string;
  readonly location: string;
  readonly cacheControl?: string;
  readonly immutable: boolean;
  /** Holds for every array of the dataset. */
  readonly encoding: EncodingConfig;
  /** By variable path without a leading slash; over `encoding`. */
  readonly variables: Readonly<Record<string, EncodingConfig>>;
}

/** How an array is to be served; what is not said stays as stored. */
export interface EncodingConfig {
  /** Elements per axis: by dimension name (dimensions not named stay as stored), or one per axis. -1: the whole axis. */
  readonly chunks?: Readonly<Record<string, number>> | readonly number[];
  readonly compressor?: CodecSpec | null;
  readonly filters?: readonly CodecSpec[] | null;
}
