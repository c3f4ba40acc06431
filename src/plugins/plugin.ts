import type { ChunkService } from "../chunk/chunk-service.js";
import type { DatasetPath, Datasets } from "../dataset/dataset.js";
import type { DocumentPieces } from "../http/create-document.js";
import type { Document } from "../http/headers.js";
import type { Route } from "../http/router.js";
import type { Log } from "../observe/log.js";
import type { PreviewService } from "../pages/preview-service.js";
import type { PluginDatasets, ProviderContext } from "./plugin-datasets.js";

/**
 * A named set of routes, of datasets, or of both. Built-in plugins use only what other plugins can use.
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
  readonly datasets: Datasets;
  /** Chunks as served. Pool and cache start at first use. */
  readonly chunks: ChunkService;
  /** The first and last values of variables, decoded for people. */
  readonly previews: PreviewService;
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
  /** Returns the path of a dataset's endpoints below {@link rootPath}, for links: a server may publish one dataset at its root. */
  readonly datasetPath: DatasetPath;
  /** Prefix of all paths, empty or `/prefix`; templates do not contain it. */
  readonly rootPath: string;
  readonly log: Log;
}
