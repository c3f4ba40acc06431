import type { EncodingConfig, OverviewsConfig } from "../config/config.js";
import type { CreateDataTreeOptions, GroupInput, ServableTree } from "../dataset/in-memory-tree.js";
import type { Log } from "../observe/log.js";

/**
 * Datasets of a plugin, which come and go while the server runs. Their ids begin with the plugin's name and `~`; these functions get
 * and return ids without that prefix.
 */
export interface PluginDatasets {
  /**
   * Lists the ids of all datasets, in any order, without opening any. The server calls it at start, in every period of `--refresh`, and
   * before it answers 404, never twice at a time. A dataset goes when two lists in a row do not have it.
   * @param signal Aborts when the server waits no longer.
   * @throws if it cannot tell: the list before stays.
   */
  list(signal: AbortSignal): readonly string[] | Promise<readonly string[]>;
  /**
   * Returns a dataset that was listed, when it is first asked for; undefined if there is none of that id any more. A dataset that was
   * not asked for lately is closed, and opened again by another call.
   * @throws if it cannot tell: the request fails, and is not answered with 404.
   */
  open(id: string): ProvidedDataset | undefined | Promise<ProvidedDataset | undefined>;
  /**
   * Returns what it found but cannot publish, each with the reason. The server asks after each list, and logs each name once, and only
   * the first ones. Default: nothing.
   */
  problems?(): readonly { readonly name: string; readonly reason: string }[];
  /** Gets a function to call when the list has changed, so that the server asks for it before the period is over. */
  onChange?(changed: () => void): void;
  /** Closes what `list` and `open` use, after the last request. The plugin's own `close` comes after it. */
  close?(): void | Promise<void>;
}

/** A dataset of a plugin: a location or a tree, and options as in the configuration file. */
export interface ProvidedDataset {
  /** Path, URL or pattern, as in the configuration file; relative ones begin in the working directory. */
  readonly location?: string;
  /** A tree of `createDataTree()`, `openDataTree()` or `zarrStoreSource()`, instead of a location. */
  readonly tree?: ServableTree;
  readonly cacheControl?: string;
  /** True if chunks are never rewritten in place. */
  readonly immutable?: boolean;
  /**
   * Time for which an answer of a remote store is believed, in seconds; `always` asks each time, `immutable` never again. Default: the
   * time between refreshes.
   */
  readonly freshness?: number | "always" | "immutable";
  /** URLs and paths below which references may lead. Default: as configured, or the folder of the reference file. */
  readonly references?: { readonly allow: readonly string[] };
  /** Encoding of every array. */
  readonly encoding?: EncodingConfig;
  /** Encodings by variable path. They win over `encoding`. */
  readonly variables?: Readonly<Record<string, EncodingConfig>>;
  /** Coarser levels; true for all defaults. Default: as configured for all datasets. */
  readonly overviews?: boolean | Partial<OverviewsConfig>;
}

/** Parts of the server that a plugin's `datasets` function may use. */
export interface ProviderContext {
  readonly log: Log;
  /** Package and system versions, as `/versions` shows them. */
  readonly versions: Readonly<Record<string, string>>;
  /** Makes a tree of typed arrays; the same as the function that the package exports. */
  createDataTree(root: GroupInput, options?: CreateDataTreeOptions): Promise<ServableTree>;
}
