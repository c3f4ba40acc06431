import type { ChunkCache } from "../cache/chunk-cache.js";
import { createNullCache } from "../cache/null-chunk-cache.js";
import { openChunkCache } from "../cache/open-chunk-cache.js";
import type { ChunkService } from "../chunk/chunk-service.js";
import { type ChunkServiceParts, createChunkService } from "../chunk/create-chunk-service.js";
import { isKernelUsed, kernelProblem } from "../codec/kernel/kernel-use.js";
import type { LimitsConfig } from "../config/config.js";
import { createReadiness, type Readiness } from "../health/readiness.js";
import { createHealthOperations } from "../http/health-operations.js";
import { createHttpServer, type HttpServer, type RequestLimits } from "../http/server.js";
import type { Log } from "../observe/log.js";
import type { MetricFamily } from "../observe/metric-family.js";
import { collectMetrics, METRICS_CONTENT_TYPE, observeProcess, renderMetrics } from "../observe/metrics.js";
import { packageVersion } from "../observe/package-version.js";
import { createEncodePool, type EncodePool } from "../pool/encode-pool.js";
import type { EncodePoolStats } from "../pool/pool-stats.js";
import { defaultMemoryBudget } from "../pool/task-memory.js";
import { createPreviewService } from "../preview/create-preview-service.js";
import type { PreviewService } from "../preview/preview.js";
import { settlesWithin } from "../settles-within.js";
import type { Site } from "../site/open-site.js";
import type { ServerConfig } from "../site/server-config.js";
import { tryMetadata } from "../site/try-metadata.js";
import { setSourceTimeout } from "../source/source-timeout.js";
import { limitsOfProcess } from "./limits-of-process.js";
import { once } from "./once.js";
import type { Sharing } from "./sharing.js";

/** How long metrics are held up by the look whether the server is ready. */
const METRICS_WAIT_MS = 1_000;

/** What lives as long as a server, whatever it publishes: listeners, pool, cache, and what is seen of them. */
export interface Engine {
  readonly http: HttpServer;
  /** Pool and cache start when somebody first asks for what needs them. */
  readonly chunks: () => ChunkService;
  readonly previews: () => PreviewService;
  readonly readiness: Readiness;
  /** Bounds requests otherwise from now on. @param limits Of the whole server. */
  limit(limits: LimitsConfig): void;
  /** Resolves when what was asked for is there. */
  started(): Promise<void>;
  /** Of this process. */
  metrics(): Promise<readonly MetricFamily[]>;
  /** Closes pool and cache. */
  close(): Promise<void>;
}

export interface EngineParts {
  readonly log: Log;
  readonly sharing: Sharing | undefined;
  /** What is answered with now; undefined before the first. */
  readonly site: () => Site | undefined;
}

/** @param config Only of what does not change while the server lives; see `keepFixed`. */
export function createEngine(config: ServerConfig, { log, sharing, site }: EngineParts): Engine {
  const problem = kernelProblem();
  if (problem !== undefined)
    log.warn({ err: problem }, "chunks are decoded and encoded without SIMD, slowly");
  let limits = limitsOfProcess(config.limits, sharing?.processes ?? 1);
  setSourceTimeout(limits.sourceTimeoutMs);
  const closers: (() => Promise<void>)[] = [];
  /** What has to be there before the first request. */
  const starting: Promise<void>[] = [];
  let cache: ChunkCache | undefined;

  const pool = once((): EncodePool => {
    const alone = createEncodePool({
      threads: config.workers,
      useKernel: isKernelUsed(),
      withChecksums: config.cache !== null,
      maxQueued: limits.maxQueuedChunks,
      taskTimeoutMs: limits.chunkTimeoutMs,
      sourceTimeoutMs: limits.sourceTimeoutMs,
      workerHeapBytes: limits.workerHeapBytes,
      memoryBudgetBytes: defaultMemoryBudget(sharing?.processes),
      log,
    });
    const created = sharing?.inTurn(alone) ?? alone;
    closers.push(() => created.close());
    return created;
  });
  const chunks = once((): ChunkService => {
    if (config.cache !== null) {
      const opening = openChunkCache({ ...config.cache, version: packageVersion, log });
      starting.push(
        opening.then((opened) => {
          cache = opened;
          closers.push(() => opened.close());
        }),
      );
    }
    const none = createNullCache();
    return createChunkService({
      cache: () => cache ?? none,
      makeChunk: (task, isWanted) => pool().makeChunk(task, isWanted),
      recycle: (bytes) => pool().recycle?.(bytes),
      isCurrent: (snapshot) => site()?.datasets.isCurrent(snapshot) ?? false,
      maxWaitingReads: limits.maxQueuedChunks,
    } satisfies ChunkServiceParts);
  });
  const previews = once((): PreviewService => createPreviewService((task) => pool().makeChunk(task)));

  /** What the last look at it found. */
  let isReady = false;
  const tried = createReadiness({
    metadata() {
      const used = site();
      return used === undefined ? "none" : tryMetadata(used.routes, used.datasets);
    },
    // Started if chunks are served at all.
    pool: () => (chunks.made === undefined ? undefined : pool()),
    cache: () => cache,
    chunkTimeoutMs: limits.chunkTimeoutMs,
    log,
  });
  const readiness: Readiness = {
    ...tried,
    async check() {
      const report = await tried.check();
      isReady = report.ready;
      return report;
    },
    drain() {
      isReady = false;
      tried.drain();
    },
  };

  const metrics = async () => {
    // Nobody may be asking /readyz. Where that takes long, it is as it was.
    await settlesWithin(readiness.check(), METRICS_WAIT_MS);
    return collectMetrics({
      http,
      limits,
      isReady: () => isReady,
      pool: () => pool.made?.stats,
      chunks: () => chunks.made?.stats,
      cache: () => cache?.stats,
      datasets: () => site()?.datasets.stats,
    });
  };
  const http = createHttpServer({
    limits: {
      ...requestLimits(limits),
      isSaturated: () =>
        isSaturated(pool.made?.stats, limits.maxQueuedChunks) ||
        (chunks.made?.stats.waitingReads ?? 0) >= limits.maxQueuedChunks,
    },
    maxConnections: limits.maxConnections,
    maxHeaderBytes: limits.maxHeaderBytes,
    tls: config.edge.tls,
    proxyProtocol: config.edge.proxyProtocol,
    admin: config.observe.admin,
    operations: createHealthOperations({
      readiness,
      metrics: config.observe.metrics
        ? {
            contentType: METRICS_CONTENT_TYPE,
            render: async () =>
              renderMetrics(
                sharing === undefined ? [{ families: await metrics() }] : await sharing.allMetrics(),
              ),
          }
        : undefined,
    }),
    sharesPort: sharing !== undefined,
    log,
  });
  if (config.observe.metrics) observeProcess();

  return {
    http,
    chunks,
    previews,
    readiness,
    limit(next) {
      limits = limitsOfProcess(next, sharing?.processes ?? 1);
      http.limit(requestLimits(limits));
    },
    metrics,
    async started() {
      await Promise.all(starting);
    },
    async close() {
      await Promise.all(starting);
      for (const closer of closers.splice(0).toReversed()) await closer();
    },
  };
}

/** Whether all that may wait for the workers do. */
function isSaturated(stats: EncodePoolStats | undefined, maxQueued: number): boolean {
  return stats !== undefined && stats.queued - stats.queuedSuspects >= maxQueued;
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
