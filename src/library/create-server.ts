import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import type { DatasetConfig, EncodingConfig, PluginConfig } from "../config/config.js";
import { problemOfDatasetId } from "../config/dataset-id.js";
import { BUILT_IN_PLUGINS, isBuiltIn } from "../config/select-plugins.js";
import { ZpublishError } from "../errors.js";
import { createLog, type Log, type LogLevel } from "../observe/log.js";
import type { Plugin } from "../plugins/plugin.js";
import { openServer, type Server, type ServerConfig } from "../server.js";
import type { Source } from "../source/source.js";
import { type ServableTree, sourceOf } from "./data-tree.js";

/** How one dataset is served; what is not said stays as stored. */
export interface DatasetOptions {
  /** A location, or a tree that was opened or built. */
  readonly source: string | ServableTree;
  readonly cacheControl?: string;
  /** Promises that chunks are never rewritten in place. */
  readonly immutable?: boolean;
  /** Holds for every array. */
  readonly encoding?: EncodingConfig;
  /** By variable path; over `encoding`. */
  readonly variables?: Readonly<Record<string, EncodingConfig>>;
}

export interface ServerOptions {
  /** By dataset id: a location, a tree, or either with options. */
  readonly datasets: Readonly<Record<string, string | ServableTree | DatasetOptions>>;
  /** Names of built-in plugins, modules to load, or plugins. Default: the four built-in ones. */
  readonly plugins?: readonly (string | PluginConfig | Plugin)[];
  /** Default `127.0.0.1`. */
  readonly host?: string;
  /** Default 9000; 0 picks a free one. */
  readonly port?: number;
  /** Threads of the pool. Default: one less than the machine has, at least one. */
  readonly workers?: number;
  /** Where encoded chunks are kept, and how many bytes of them (default 10 GiB). Default: nowhere. */
  readonly cache?: { readonly directory: string; readonly maxBytes?: number };
  /** Before every path, `/prefix`. Default: none. */
  readonly rootPath?: string;
  /** Seconds between looks for new metadata; 0: never. Default 5. */
  readonly refresh?: number;
  /** Default `*`. */
  readonly corsOrigin?: string;
  /** Default `public, max-age=0, must-revalidate`. */
  readonly cacheControl?: string;
  readonly title?: string;
  /** A dataset that cannot be opened is a warning in the log instead of an error. Default false. */
  readonly skipInvalid?: boolean;
  /** A level of the log on standard error, or a pino logger. Default `warn`. */
  readonly log?: LogLevel | Log;
}

const DEFAULT_CACHE_BYTES = 10 * 2 ** 30;

/**
 * Opens all datasets and prepares a server; `listen()` makes it accept connections.
 * @throws ZpublishError `invalid-config`, `invalid-metadata` or `source-unreadable`, naming the dataset.
 */
export async function createServer(options: ServerOptions): Promise<Server> {
  const { log = "warn", cache } = options;
  const config: ServerConfig = {
    host: options.host ?? "127.0.0.1",
    port: options.port ?? 9000,
    workers: options.workers ?? Math.max(1, availableParallelism() - 1),
    cache:
      cache === undefined
        ? null
        : { directory: resolve(cache.directory), maxBytes: cache.maxBytes ?? DEFAULT_CACHE_BYTES },
    datasets: Object.entries(options.datasets).map(([id, dataset]) => datasetConfig(id, dataset)),
    plugins: (options.plugins ?? BUILT_IN_PLUGINS).map((plugin) =>
      typeof plugin === "string" ? pluginConfig(plugin) : plugin,
    ),
    rootPath: options.rootPath ?? "",
    refreshSeconds: options.refresh ?? 5,
    corsOrigin: options.corsOrigin ?? "*",
    cacheControl: options.cacheControl ?? "public, max-age=0, must-revalidate",
    logLevel: typeof log === "string" ? log : "info",
    skipInvalid: options.skipInvalid ?? false,
    title: options.title ?? "zpublish",
  };
  return openServer(config, { log: typeof log === "string" ? createLog(log) : log });
}

function pluginConfig(name: string): PluginConfig {
  return isBuiltIn(name) ? { name } : { name, module: name };
}

function datasetConfig(
  id: string,
  dataset: string | ServableTree | DatasetOptions,
): DatasetConfig & { readonly source?: Source } {
  const problem = problemOfDatasetId(id);
  if (problem !== undefined) throw new ZpublishError("invalid-config", `dataset '${id}': ${problem}`);
  const said: DatasetOptions =
    typeof dataset === "string" || "root" in dataset ? { source: dataset } : dataset;
  const { source, cacheControl, immutable = false, encoding = {}, variables = {} } = said;
  return {
    id,
    ...(typeof source === "string"
      ? { location: source }
      : { location: source.location, source: given(id, source) }),
    ...(cacheControl === undefined ? {} : { cacheControl }),
    immutable,
    encoding,
    variables,
  };
}

/** The source of a tree that was given; it stays open when the server closes, for whoever gave it. */
function given(id: string, tree: ServableTree): Source {
  const source = sourceOf(tree);
  if (source === undefined) {
    throw new ZpublishError(
      "invalid-config",
      `dataset '${id}': expected a location, or a tree of openDataTree() or createDataTree()`,
    );
  }
  return { ...source, close: async () => {} };
}
