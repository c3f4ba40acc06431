import { join } from "node:path";
import { type ChunkCache, type ChunkCacheStats, createNullCache } from "../cache/chunk-cache.js";
import { openChunkCache } from "../cache/open-cache.js";
import { type ChunkServiceParts, createChunkService } from "../chunk/serve-chunk.js";
import { createWorkerFeed } from "../chunk/worker-feed.js";
import { compileKernel } from "../codec/kernel/wasm-memory.js";
import type { LimitsConfig } from "../config/config.js";
import { datasetPathOf } from "../dataset/dataset.js";
import { createHttpServer, type RequestLimits } from "../http/server.js";
import { createMaps } from "../maps/create-maps.js";
import type { Maps } from "../maps/maps.js";
import type { Log } from "../observe/log.js";
import {
  METRICS_CONTENT_TYPE,
  type ProcessMetrics,
  processMetrics,
  renderMetrics,
} from "../observe/metrics.js";
import { packageVersion } from "../observe/versions.js";
import { createPreviewService, type PreviewService } from "../pages/preview-service.js";
import { defaultMemoryBudget } from "../pool/chunk-task.js";
import {
  createEncodePool,
  type EncodePool,
  type EncodePoolOptions,
  type EncodePoolStats,
} from "../pool/encode-pool.js";
import { setSourceTimeout } from "../stores/file-calls.js";
import { createValues } from "../values/create-values.js";
import type { Values } from "../values/values.js";
import { createErrorPage } from "./error-page.js";
import { type MetricSources, serverMetrics } from "./metrics.js";
import type { App, ServerConfig } from "./open-app.js";
import { createHealthEndpoints, createReadiness } from "./readiness.js";

/** The parts that live as long as a server: listeners, pool, cache, metrics, readiness. */
export type Runtime = ReturnType<typeof createRuntime>;

/** Parts that a runtime gets besides its configuration. */
export interface RuntimeParts {
  readonly log: Log;
  /** Undefined if this process is the only one. */
  readonly supervisor: SupervisorLink | undefined;
  /** Creates the pool; another function only in tests. */
  readonly createPool?: typeof createEncodePool | undefined;
  /** The app that answers requests now; undefined before the first. */
  readonly app: () => App | undefined;
}

/** Creates a runtime; nothing is started yet. @param config Only what does not change at a reload counts. */
export function createRuntime(
  config: ServerConfig,
  { log, supervisor, createPool = createEncodePool, app }: RuntimeParts,
) {
  // Workers need it: without SIMD the server does not start.
  compileKernel();
  let limits = limitsOfProcess(config.limits, supervisor?.processes ?? 1);
  setSourceTimeout(limits.sourceTimeoutMs);
  const closers: (() => Promise<void>)[] = [];
  /** Parts that have to start before the first request. */
  const starting: Promise<void>[] = [];
  /** Those that are open. */
  const caches = new Map<string, ChunkCache>();
  const cacheOf = cacheOpener(config.cache, caches, starting, closers, log);

  const pool = once((): EncodePool => {
    const created = createPool(poolOptions(config, limits, supervisor, log));
    closers.push(() => created.close());
    return created;
  });
  const makeChunk = createWorkerFeed((task, signal) => pool().makeChunk(task, signal));
  const chunks = once(
    (): ReturnType<typeof createChunkService> =>
      createChunkService({
        cache: cacheOf("chunks"),
        makeChunk,
        recycle: (bytes) => pool().recycle?.(bytes),
        maxWaitingReads: limits.maxQueuedChunks,
      } satisfies ChunkServiceParts),
  );
  const values = once((): Values => openValues(pool, makeChunk, limits.maxChunkBytes));
  const maps = once((): Maps => createMaps({ values: values(), cache: cacheOf("pictures") }));
  const previews = once((): PreviewService => createPreviewService(values()));

  const readiness = createReadiness({
    // A server without chunks needs no worker.
    pool: () => (chunks.made === undefined ? undefined : pool()),
    cacheState: () => stateOf(caches.get("chunks")?.stats),
    log,
  });

  const metrics = async () => {
    // Probes run even if only metrics are asked for.
    void readiness.check();
    const sources: MetricSources = {
      http,
      limits,
      isReady: () => readiness.isReady,
      pool: () => pool.made?.stats,
      chunks: () => chunks.made?.stats,
      caches: () => Array.from(caches, ([content, { stats }]) => [content, stats] as const),
      datasets: () => app()?.datasets.stats,
    };
    return [...(await processMetrics()), ...serverMetrics(sources)];
  };
  const http = createHttpServer({
    limits: {
      ...requestLimits(limits),
      isSaturated: () =>
        isSaturated(pool.made?.stats, limits.maxQueuedChunks) ||
        (chunks.made?.stats.reads.waiting ?? 0) >= limits.maxQueuedChunks,
    },
    maxConnections: limits.maxConnections,
    maxHeaderBytes: limits.maxHeaderBytes,
    tls: config.access.tls,
    admin: config.observe.admin,
    endpoints: createHealthEndpoints({
      readiness,
      metrics: config.observe.metrics
        ? {
            contentType: METRICS_CONTENT_TYPE,
            render: async () =>
              renderMetrics(
                supervisor === undefined ? [{ families: await metrics() }] : await supervisor.allMetrics(),
              ),
          }
        : undefined,
    }),
    sharesPort: supervisor !== undefined,
    // Before the first app, no dataset has a page.
    errorPage: createErrorPage(config.title, datasetPathOf(config), () => false),
    log,
  });

  return {
    http,
    /** Pool and cache start with the first call. */
    chunks,
    /** Counts of the cache of chunks; undefined before it is open. */
    cacheStats: () => caches.get("chunks")?.stats,
    previews,
    values,
    maps,
    readiness,
    /** Updates the request limits. @param next Limits of all processes together. */
    limit(next: LimitsConfig) {
      limits = limitsOfProcess(next, supervisor?.processes ?? 1);
      http.limit(requestLimits(limits));
    },
    /** Collects the metrics of this process. */
    metrics,
    /** Resolves when the cache is open, if it is needed. */
    async started() {
      await Promise.all(starting);
    },
    /** Closes pool and cache. */
    async close() {
      await Promise.all(starting);
      for (const closer of closers.splice(0).toReversed()) await closer();
    },
  };
}

/** Part of the size of the cache that pictures of maps have beside it. */
const PICTURES = 1 / 16;

/**
 * Returns a function that opens a cache, unless the configuration has none: until it is open, every get is a miss. That of pictures lies
 * apart from that of chunks, so that no number of pictures drives chunks out.
 */
function cacheOpener(
  options: ServerConfig["cache"],
  caches: Map<string, ChunkCache>,
  starting: Promise<void>[],
  closers: (() => Promise<void>)[],
  log: Log,
) {
  return (content: "chunks" | "pictures"): { readonly current: ChunkCache } => {
    const cache = { current: createNullCache() };
    if (options === null) return cache;
    const { directory, maxBytes } = options;
    const place =
      content === "chunks"
        ? options
        : { directory: join(directory, content), maxBytes: Math.ceil(maxBytes * PICTURES) };
    const opening = openChunkCache({ ...place, version: packageVersion, log });
    starting.push(
      opening.then((opened) => {
        cache.current = opened;
        caches.set(content, opened);
        closers.push(() => opened.close());
      }),
    );
    return cache;
  };
}

function openValues(
  pool: () => EncodePool,
  makeChunk: EncodePool["makeChunk"],
  maxChunkBytes: number | undefined,
): Values {
  return createValues({
    makeChunk,
    callModule: (call, signal) => pool().callModule(call, signal),
    recycle: (bytes) => pool().recycle?.(bytes),
    maxChunkBytes,
  });
}

function poolOptions(
  { workers, cache }: ServerConfig,
  { maxQueuedChunks, chunkTimeoutMs, sourceTimeoutMs, workerHeapBytes }: LimitsConfig,
  supervisor: SupervisorLink | undefined,
  log: Log,
): EncodePoolOptions {
  return {
    threads: workers,
    withChecksums: cache !== null,
    maxQueued: maxQueuedChunks,
    taskTimeoutMs: chunkTimeoutMs,
    sourceTimeoutMs,
    workerHeapBytes,
    memoryBudgetBytes: defaultMemoryBudget(supervisor?.processes),
    log,
  };
}

/** Tells whether the queue of the pool is full. */
function isSaturated(stats: EncodePoolStats | undefined, maxQueued: number): boolean {
  return stats !== undefined && stats.queued >= maxQueued;
}

function requestLimits(limits: LimitsConfig): Omit<RequestLimits, "isSaturated"> {
  return {
    maxRequestsInFlight: limits.maxRequests,
    maxPagesInFlight: limits.maxPages,
    maxBodyBytesInFlight: limits.maxResponseBytes,
    maxUrlBytes: limits.maxUrlBytes,
    stallTimeoutMs: limits.stallTimeoutMs,
    requestTimeoutMs: limits.requestTimeoutMs,
  };
}

/** Divides limits among processes, which together have those of one server. Limits per request or worker stay. */
function limitsOfProcess(limits: LimitsConfig, processes: number): LimitsConfig {
  const share = (whole: number): number => Math.ceil(whole / processes);
  return {
    ...limits,
    maxConnections: share(limits.maxConnections),
    maxRequests: share(limits.maxRequests),
    maxPages: share(limits.maxPages),
    maxResponseBytes: share(limits.maxResponseBytes),
    maxQueuedChunks: share(limits.maxQueuedChunks),
  };
}

/** Returns a function that makes something at its first call. Its property `made` is undefined before that. */
function once<T extends object>(make: () => T): { (): T; readonly made: T | undefined } {
  let made: T | undefined;
  const get = (): T => {
    made ??= make();
    return made;
  };
  return Object.defineProperty(get, "made", { get: () => made }) as ReturnType<typeof once<T>>;
}

function stateOf(cache: ChunkCacheStats | undefined): string {
  if (cache === undefined) return "none";
  if (cache.isOff) return "off";
  return cache.isWriteFailing ? "not writing" : "ok";
}

/** Link of a server process to its supervisor, with `--processes`. */
export interface SupervisorLink {
  /** Number of this process, from 1 to `processes`. The first logs what all of them find out about datasets. */
  readonly process: number;
  readonly processes: number;
  /** Signs tickets that all processes take. */
  readonly signingKey: string;
  /** Collects the metrics of all processes, this one included. Never rejects. */
  readonly allMetrics: () => Promise<readonly ProcessMetrics[]>;
}
