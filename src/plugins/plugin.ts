import type { ChunkService } from "../chunk/chunk-service.js";
import type { DatasetSnapshot, Datasets } from "../dataset/dataset.js";
import type { DocumentPieces } from "../http/create-document.js";
import type { Document } from "../http/document.js";
import type { Route } from "../http/route.js";
import type { Log } from "../observe/log.js";
import type { PreviewService } from "../preview/preview.js";

/**
 * What gives the service its functions. A plugin names itself and returns routes; the built-in ones use nothing a
 * third party's could not.
 */
export interface Plugin {
  /** Unique in a server: `[a-z][a-z0-9_]*`. */
  readonly name: string;
  readonly version: string;
  /** Where its code comes from, as `/plugins` shows it: a module specifier, never a path of the machine. */
  readonly path: string;
  /**
   * Called before the server listens, and again when its configuration is reloaded: with another context, while requests in
   * flight are still answered by the routes of the one before. A route another plugin has already is refused, at start and
   * at a reload.
   */
  routes(context: PluginContext): readonly Route[] | Promise<readonly Route[]>;
  /** Called when the server closes, or does without the plugin after a reload, and its last request is answered. */
  close?(): Promise<void>;
}

/** A module of a plugin exports one as default, or a function that makes one of its configured options. */
export type PluginModule = { readonly default: Plugin | ((options: unknown) => Plugin | Promise<Plugin>) };

/** The dependencies a plugin gets. */
export interface PluginContext {
  readonly datasets: Datasets;
  /** Chunks as served. Pool and cache start at first use. */
  readonly chunks: ChunkService;
  /** Decoded values of small or leading parts of variables, for people to look at. */
  readonly previews: PreviewService;
  /** Names, versions and origins of all loaded plugins. */
  plugins(): readonly Pick<Plugin, "name" | "version" | "path">[];
  /** Package and system versions, as `/versions` shows them. */
  readonly versions: Readonly<Record<string, string>>;
  /** Makes a document of bytes or text. */
  createDocument(content: Uint8Array | string, contentType: string): Document;
  /**
   * A document about a snapshot: made once per key, however many ask, and kept as long as the snapshot lives. What takes
   * longer than a few milliseconds is made while other requests are answered.
   * @param pieces Makes the text; a large one not all at once. What it throws is thrown to all who wait.
   */
  document(
    snapshot: DatasetSnapshot,
    key: string,
    contentType: string,
    pieces: () => DocumentPieces,
  ): Document | Promise<Document>;
  /** `value()` once per snapshot and key, kept as long as the snapshot lives. */
  memo<T>(snapshot: DatasetSnapshot, key: string, value: () => T): T;
  /** All routes of the server, those of other plugins too; complete once they are asked for. */
  routes(): readonly Route[];
  /** Title of the service, for pages. */
  readonly title: string;
  /** Before every path of the service as clients see it: empty, or `/prefix`. Routes do not hold it. */
  readonly rootPath: string;
  readonly log: Log;
}
