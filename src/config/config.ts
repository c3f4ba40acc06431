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
}

export interface CacheConfig {
  /** Absolute. */
  readonly directory: string;
  readonly maxBytes: number;
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
