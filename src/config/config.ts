import type { Joining } from "../join/join-source.js";
import type { StoreSettings } from "../stores/byte-store.js";
import type { CodecSpec } from "../zarr/codec-step.js";
import type { CoarsenMethod } from "../zarr/plan/encoding-plan.js";
import type { OptionConfig } from "./options.js";

/** The validated configuration: argv over environment over file over defaults. Frozen. `options.ts` describes its options. */
export interface Config extends OptionConfig {
  /** In the order configured. */
  readonly datasets: readonly DatasetConfig[];
  /** Folders and prefixes whose datasets come and go, in the order configured. */
  readonly collections: readonly CollectionConfig[];
  /** Defaults of datasets of plugins; datasets and collections have them already. Default: none. */
  readonly datasetDefaults?: DatasetDefaults;
  readonly plugins: readonly PluginConfig[];
}

/** Bounds of one server. Several processes share them. */
export type LimitsConfig = OptionConfig["limits"];

/** Place and size of the chunk cache. The directory is an absolute path. */
export type CacheConfig = NonNullable<OptionConfig["cache"]>;

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
  /** Zarr v3 store of the dataset: whether it has only codecs and types that readers commonly have. Default: as it is stored. */
  readonly zarr3?: { readonly portable: boolean };
  /** Encoding of every array of the dataset. */
  readonly encoding: EncodingConfig;
  /** Encodings by variable path without a leading slash. They win over `encoding`. */
  readonly variables: Readonly<Record<string, EncodingConfig>>;
  /** Further encodings by name, each published as a store of its own beside the dataset. They win over `encoding` and `variables`. */
  readonly encodings?: Readonly<Record<string, EncodingConfig>>;
  /** Coarser levels that are published beside the dataset; false for none. Default: that of `--overviews`. */
  readonly overviews?: OverviewsConfig | false;
  /** Whether the file itself is published, too: the dataset must be one file. Of a collection, those that are files. Default false. */
  readonly file?: boolean;
  /**
   * Name of the collection that the location is if it turns out to be a folder of files and stores, and no store itself; may be empty.
   * Default: such a folder cannot be opened.
   */
  readonly asCollection?: string;
  /** Join of files into one dataset. If given, `location` is a pattern, such as `/data/sst-*.nc`, or a folder. */
  readonly join?: Joining;
}

/** Parts of a dataset's configuration that hold for all datasets. */
export type DatasetDefaults = Pick<DatasetConfig, "stores" | "references" | "zarr3" | "overviews">;

/** A folder or prefix below which datasets come and go. */
export interface CollectionConfig extends Omit<DatasetConfig, "id" | "location" | "asCollection" | "join"> {
  /** Ids of its datasets begin with it and a `~`. Empty for no prefix. */
  readonly name: string;
  /** Absolute path of a directory, or `s3://bucket/prefix/`. */
  readonly root: string;
  /** Patterns of paths below the root. Default: files and stores of all known formats. */
  readonly include?: readonly string[];
  /** Patterns of paths that are left out. */
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
