import type { ChunkCache } from "./cache/chunk-cache.js";
import { createNullCache } from "./cache/null-chunk-cache.js";
import { openChunkCache } from "./cache/open-chunk-cache.js";
import type { ChunkService } from "./chunk/chunk-service.js";
import { type ChunkServiceParts, createChunkService } from "./chunk/create-chunk-service.js";
import { isKernelUsed, kernelProblem } from "./codec/kernel/kernel-use.js";
import type { Config, DatasetConfig, PluginConfig } from "./config/config.js";
import { type OpenProgress, openDatasets } from "./dataset/dataset-registry.js";
import { DEFAULT_LOAD_LIMITS, type LoadLimits } from "./http/load.js";
import type { Route } from "./http/route.js";
import { createHttpServer, type HttpServer } from "./http/server.js";
import type { Log } from "./observe/log.js";
import { packageVersion } from "./observe/package-version.js";
import { packageVersions } from "./observe/versions.js";
import { coreRoutes } from "./openapi/core-routes.js";
import { loadPlugins } from "./plugins/load-plugins.js";
import type { Plugin } from "./plugins/plugin.js";
import { createPluginContext } from "./plugins/plugin-context.js";
import { withReadyDataset } from "./plugins/with-ready-dataset.js";
import { createEncodePool, type EncodePool } from "./pool/encode-pool.js";
import { createPreviewService } from "./preview/create-preview-service.js";
import type { PreviewService } from "./preview/preview.js";
import { openSource } from "./source/open-source.js";
import type { Source } from "./source/source.js";

/** A configuration in which datasets and plugins may be objects already, as the library's users have them. */
export interface ServerConfig extends Omit<Config, "datasets" | "plugins" | "processes" | "simd"> {
  readonly datasets: readonly (DatasetConfig & { readonly source?: Source })[];
  readonly plugins: readonly (PluginConfig | Plugin)[];
}

export interface ServerParts {
  readonly log: Log;
  readonly progress?: ((progress: OpenProgress) => void) | undefined;
  /** Undefined: this server is alone. */
  readonly sharing?: Sharing;
}

/** That several processes are one server, which `processes/` keeps together: they share port, cache, limits and work. */
export interface Sharing {
  /** Of this process, 1 … `processes`. The first logs what all of them find out about datasets at start. */
  readonly process: number;
  readonly processes: number;
  /** The pool, made to wait for its turn. */
  readonly inTurn: (pool: EncodePool) => EncodePool;
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
export async function openServer(config: ServerConfig, parts: ServerParts): Promise<Server> {
  const { log, progress, sharing } = parts;
  let http: HttpServer | undefined;
  const useKernel = isKernelUsed();
  const problem = kernelProblem();
  if (problem !== undefined)
    log.warn({ err: problem }, "chunks are decoded and encoded without SIMD, slowly");
  const plugins = await loadPlugins(config.plugins);
  // All processes find out the same about what they open at start: the first says it.
  const datasetLog = sharing === undefined || sharing.process === 1 ? log : quiet(log);
  const datasets = await openDatasets(config.datasets, {
    cacheControl: config.cacheControl,
    skipInvalid: config.skipInvalid,
    log: datasetLog,
    progress,
    onChange: () => http?.forgetReplies(),
    openSource: (dataset) => {
      const { source } = dataset as ServerConfig["datasets"][number];
      return source === undefined ? openSource(dataset.location) : Promise.resolve(source);
    },
  });
  datasetLog.level = log.level;

  const closers: (() => Promise<void>)[] = [() => datasets.close()];
  const pool = once((): EncodePool => {
    const alone = createEncodePool({
      threads: config.workers,
      useKernel,
      withChecksums: config.cache !== null,
      log,
    });
    const created = sharing?.inTurn(alone) ?? alone;
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
    const isCurrent: ChunkServiceParts["isCurrent"] = (snapshot) => datasets.isCurrent(snapshot);
    const recycle: ChunkServiceParts["recycle"] = (bytes) => pool().recycle?.(bytes);
    return createChunkService({ cache: () => cache, makeChunk, recycle, isCurrent });
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
    const created = createHttpServer({
      routes: routes.map((route) => withReadyDataset(route, datasets)),
      rootPath: config.rootPath,
      corsOrigin: config.corsOrigin,
      cacheControl: config.cacheControl,
      limits: limitsOf(sharing?.processes ?? 1),
      sharesPort: sharing !== undefined,
      log,
    });
    http = created;
    await Promise.all(starting);
    datasets.refreshEvery(config.refreshSeconds);
    return {
      listen: ({ host = config.host, port = config.port } = {}) => created.listen(host, port),
      refresh: () => datasets.refresh(),
      async close() {
        await created.close();
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** A server that listens. */
export interface RunningServer extends Omit<Server, "listen"> {
  readonly url: string;
}

/** Opens a server and listens where the configuration says. */
export async function startServer(config: ServerConfig, parts: ServerParts): Promise<RunningServer> {
  const server = await openServer(config, parts);
  try {
    const { url } = await server.listen();
    return { url, refresh: server.refresh, close: server.close };
  } catch (error) {
    await server.close();
    throw error;
  }
}

/** A log of its own level: what is left of it where another process logs the same. */
function quiet(log: Log): Log {
  return log.child({}, log.isLevelEnabled("error") ? { level: "error" } : {});
}

/** The limits of one of several processes: together they have those of one. */
function limitsOf(processes: number): LoadLimits {
  const { maxRequestsInFlight, maxPagesInFlight, maxBodyBytesInFlight } = DEFAULT_LOAD_LIMITS;
  return {
    maxRequestsInFlight: Math.ceil(maxRequestsInFlight / processes),
    maxPagesInFlight: Math.ceil(maxPagesInFlight / processes),
    maxBodyBytesInFlight: Math.ceil(maxBodyBytesInFlight / processes),
  };
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
