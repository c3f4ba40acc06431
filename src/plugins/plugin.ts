import type { ChunkService } from "../chunk/chunk-service.js";
import type { DatasetConfig, OverviewsConfig } from "../config/config.js";
import type { DatasetPath, Datasets, DatasetView } from "../dataset/dataset.js";
import type { CreateDataTreeOptions, GroupInput, ServableTree } from "../dataset/in-memory-tree.js";
import type { DocumentPieces } from "../http/create-document.js";
import type { Document, DocumentReply, RouteRequest } from "../http/reply.js";
import type { Route } from "../http/router.js";
import type { Maps } from "../maps/maps.js";
import type { Group } from "../model/data-tree.js";
import type { Log } from "../observe/log.js";
import type { DatasetSummary } from "../pages/dataset-summary.js";
import type { PreviewService } from "../pages/preview-service.js";
import type { Values } from "../values/values.js";

/**
 * A named set of routes, of datasets, or of both.
 */
export interface Plugin {
  /** Unique in a server: `[a-z][a-z0-9_]*`. */
  readonly name: string;
  readonly version: string;
  /** Origin of its code, as `/plugins` shows it: a module specifier, never a path of the machine. */
  readonly path: string;
  /**
   * Returns its routes. The server calls it before it listens, and with another context at each reload, while the former routes
   * answer requests in flight. It refuses a route that another plugin has.
   */
  routes?(context: PluginContext): readonly Route[] | Promise<readonly Route[]>;
  /**
   * Returns the datasets that it publishes. The server calls it before `routes`, and does not start if it throws. At a reload, it is
   * called again only if the plugin's configuration or what holds for all datasets has changed.
   */
  datasets?(context: ProviderContext): PluginDatasets | Promise<PluginDatasets>;
  /** Closes the plugin, after its last request is answered: the server closes, or a reload drops the plugin. */
  close?(): Promise<void>;
}

/** A module whose default export is a plugin, or a function that makes one from its configured options. */
export type PluginModule = { readonly default: Plugin | ((options: unknown) => Plugin | Promise<Plugin>) };

/** Dependencies of a plugin. */
export interface PluginContext {
  readonly datasets: Datasets<DatasetView>;
  /** Values of any selection, stored or decoded; functions in the pool. */
  readonly values: Values;
  /** Pictures of variables on the Earth, drawn in the pool and cached. */
  readonly maps: Maps;
  /** Pages for people, as this server shows them. */
  readonly pages: DatasetPages;
  /**
   * Returns title, period, extent, picture and file of datasets, as far as they are known without opening any: of those that are open, or
   * were described before.
   * @param timeoutMs Milliseconds for which open ones are waited for. Default 1,000.
   */
  summaries(ids: readonly string[], timeoutMs?: number): Promise<ReadonlyMap<string, DatasetSummary>>;
  /** Names, versions and origins of all loaded plugins. */
  plugins(): readonly Pick<Plugin, "name" | "version" | "path">[];
  /** Package and system versions, as `/versions` shows them. */
  readonly versions: Readonly<Record<string, string>>;
  /** Makes a document of bytes or text. */
  createDocument(content: Uint8Array | string, contentType: string): Document;
  /**
   * Returns a document about a snapshot, or the array of `datasets.ids()`, made once per key and kept as long as that object. If that
   * takes longer than a few milliseconds, other requests are answered in between.
   * @param pieces Makes the text, a large one piece by piece. All requests that wait get its error.
   */
  document(
    snapshot: object,
    key: string,
    contentType: string,
    pieces: () => DocumentPieces,
  ): Document | Promise<Document>;
  /** Returns `value()`, made once per snapshot, or array of ids, and key, and kept as long as that object. */
  memo<T>(snapshot: object, key: string, value: () => T): T;
  /** Returns all routes of the server, complete once it answers requests. */
  routes(): readonly Route[];
  /** Title of the service, for pages. */
  readonly title: string;
  /** Greatest number of bytes of values that one answer should be made of; refuse more as `too-large` before anything is read. */
  readonly maxSelectionBytes: number;
  /** Returns the path of a dataset's endpoints below {@link rootPath}, for links: a server may publish one dataset at its root. */
  readonly datasetPath: DatasetPath;
  /** Prefix of all paths, empty or `/prefix`; templates do not contain it. */
  readonly rootPath: string;
  readonly log: Log;
}

/** Pages for people, about datasets and groups. */
export interface DatasetPages {
  /** Replies with the page of a group, or of the whole tree below it if `isNested`. To be called before the first `await` of a handler. */
  reply(
    snapshot: DatasetView,
    group: Group,
    isNested: boolean,
    request: RouteRequest,
  ): Promise<DocumentReply>;
  /**
   * Replies with the listing of the stores of a dataset, of its overviews or of another encoding of it.
   * @param below Path of the listing below the dataset: `overviews/`.
   */
  listing(snapshot: DatasetView, below: string): DocumentReply | Promise<DocumentReply>;
}

/**
 * Context of built-in plugins that are faces of the core: they see how arrays are stored and planned. `test/architecture.test.ts` names
 * them; all others have no more than {@link PluginContext}.
 */
export interface CoreContext extends PluginContext {
  readonly datasets: Datasets;
  /** Chunks as served. Pool and cache start at first use. */
  readonly chunks: ChunkService;
  /** The first and last values of variables, decoded for people. */
  readonly previews: PreviewService;
}

/**
 * Datasets of a plugin, which come and go while the server runs. Their ids begin with the plugin's name and `~`; these functions get
 * and return ids without that prefix.
 */
export interface PluginDatasets {
  /**
   * Lists the ids of all datasets, in any order, without opening any. The server calls it at start, in every period of `--refresh`, and
   * before it answers 404, never twice at a time. A dataset goes when a list does not have it.
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
export interface ProvidedDataset
  extends Partial<
    Pick<
      DatasetConfig,
      "cacheControl" | "immutable" | "encoding" | "variables" | "encodings" | "references" | "zarr3" | "file"
    >
  > {
  /** Path, URL or pattern, as in the configuration file; relative ones begin in the working directory. */
  readonly location?: string;
  /** A tree of `createDataTree()`, `openDataTree()` or `zarrStoreSource()`, instead of a location. */
  readonly tree?: ServableTree;
  /** As in the configuration file. Default: the time between refreshes. */
  readonly freshness?: DatasetConfig["freshness"];
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
