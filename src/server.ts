import type { ChunkCache } from "./cache/chunk-cache.js";
import { createNullCache } from "./cache/null-chunk-cache.js";
import { openChunkCache } from "./cache/open-chunk-cache.js";
import type { ChunkService } from "./chunk/chunk-service.js";
import { type ChunkServiceParts, createChunkService } from "./chunk/create-chunk-service.js";
import type { Config, DatasetConfig, PluginConfig } from "./config/config.js";
import { type OpenProgress, openDatasets } from "./dataset/dataset-registry.js";
import type { Route } from "./http/route.js";
import { createHttpServer } from "./http/server.js";
import type { Log } from "./observe/log.js";
import { packageVersion } from "./observe/package-version.js";
import { packageVersions } from "./observe/versions.js";
import { coreRoutes } from "./openapi/core-routes.js";
import { loadPlugins } from "./plugins/load-plugins.js";
import type { Plugin } from "./plugins/plugin.js";
import { createPluginContext } from "./plugins/plugin-context.js";
import { createEncodePool, type EncodePool } from "./pool/encode-pool.js";
import { createPreviewService } from "./preview/create-preview-service.js";
import type { PreviewService } from "./preview/preview.js";
import { openSource } from "./source/open-source.js";
import type { Source } from "./source/source.js";

/** A configuration in which datasets and plugins may be objects already, as the library's users have them. */
export interface ServerConfig extends Omit<Config, "datasets" | "plugins"> {
  readonly datasets: readonly (DatasetConfig & { readonly source?: Source })[];
  readonly plugins: readonly (PluginConfig | Plugin)[];
}

export interface ServerParts {
  readonly log: Log;
  readonly progress?: ((progress: OpenProgress) => void) | undefined;
}

/** A server whose datasets are open. */
export interface Server {
  /**
   * Begins to accept connections.
   * @throws ZpublishError `invalid-config` where host and port cannot be listened on.
   */
  listen(address?: { readonly host?: string; readonly port?: number }): Promise<{ readonly url: string }>;
  /** Looks for new metadata of every dataset now. Never throws. */
  refresh(): Promise<void>;
  /** Finishes what is in flight (5 seconds at most), then closes datasets, pool and cache. */
  close(): Promise<void>;
}

/**
 * The composition root: opens datasets, puts the plugins' routes together, and wires cache and pool to them.
 * @throws ZpublishError `invalid-config`, `invalid-metadata` or `source-unreadable`.
 */
export async function openServer(config: ServerConfig, { log, progress }: ServerParts): Promise<Server> {
  const plugins = await loadPlugins(config.plugins);
  const datasets = await openDatasets(config.datasets, {
    cacheControl: config.cacheControl,
    skipInvalid: config.skipInvalid,
    log,
    progress,
    openSource: (dataset) => {
      const { source } = dataset as ServerConfig["datasets"][number];
      return source === undefined ? openSource(dataset.location) : Promise.resolve(source);
    },
  });

  const closers: (() => Promise<void>)[] = [() => datasets.close()];
  const pool = once((): EncodePool => {
    const created = createEncodePool({ threads: config.workers, log });
    closers.push(() => created.close());
    return created;
  });
  /** What has to be there before the first request. */
  const starting: Promise<void>[] = [];
  const chunks = once((): ChunkService => {
    let cache: ChunkCache = createNullCache();
    if (config.cache !== null) {
      const opening = openChunkCache({ ...config.cache, version: packageVersion, log });
      starting.push(
        opening.then((opened) => {
          cache = opened;
          closers.push(() => opened.close());
        }),
      );
    }
    const makeChunk: EncodePool["makeChunk"] = (task, isWanted) => pool().makeChunk(task, isWanted);
    const isCurrent: ChunkServiceParts["isCurrent"] = (snapshot) => datasets.get(snapshot.id) === snapshot;
    return createChunkService({ cache: () => cache, makeChunk, isCurrent });
  });
  const previews = once((): PreviewService => createPreviewService((task) => pool().makeChunk(task)));

  async function close(): Promise<void> {
    for (const plugin of plugins) await plugin.close?.();
    for (const closer of closers.toReversed()) await closer();
  }

  try {
    const routes: Route[] = [];
    const context = createPluginContext({
      datasets,
      chunks,
      previews,
      plugins,
      routes: () => routes,
      versions: packageVersions(),
      title: config.title,
      rootPath: config.rootPath,
      log,
    });
    routes.push(...coreRoutes(context));
    for (const plugin of plugins) routes.push(...(await plugin.routes(context)));
    const http = createHttpServer({
      routes,
      rootPath: config.rootPath,
      corsOrigin: config.corsOrigin,
      cacheControl: config.cacheControl,
      log,
    });
    await Promise.all(starting);
    datasets.refreshEvery(config.refreshSeconds);
    return {
      listen: ({ host = config.host, port = config.port } = {}) => http.listen(host, port),
      refresh: () => datasets.refresh(),
      async close() {
        await http.close();
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Opens a server and listens where the configuration says. */
export async function startServer(
  config: ServerConfig,
  parts: ServerParts,
): Promise<{ readonly url: string; refresh(): Promise<void>; close(): Promise<void> }> {
  const server = await openServer(config, parts);
  try {
    const { url } = await server.listen();
    return { url, refresh: server.refresh, close: server.close };
  } catch (error) {
    await server.close();
    throw error;
  }
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
