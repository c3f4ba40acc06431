import type { ChunkCacheStats } from "../cache/chunk-cache.js";
import type { ChunkServiceStats } from "../chunk/chunk-service.js";
import type { LimitsConfig } from "../config/config.js";
import type { ProviderStats } from "../dataset/providers/provider-handle.js";
import type { HttpServer } from "../http/server.js";
import { logStats } from "../observe/log.js";
import { counter, gauge, histogram, type MetricFamily } from "../observe/metric-family.js";
import { packageVersions } from "../observe/versions.js";
import { type EncodePoolStats, IDLE_POOL_STATS } from "../pool/pool-stats.js";
import { sourceReadSeconds } from "../stores/files/direct-reads.js";
import { httpMetrics } from "./http-metrics.js";
import { providerMetrics } from "./provider-metrics.js";
import { storeMetrics } from "./store-metrics.js";

/** The parts of a server that are measured. Parts that have not started have counted nothing. */
export interface MetricSources {
  readonly http: Pick<HttpServer, "stats" | "metrics">;
  readonly limits: LimitsConfig;
  readonly isReady: () => boolean;
  readonly pool: () => EncodePoolStats | undefined;
  readonly chunks: () => ChunkServiceStats | undefined;
  /** Undefined if there is no cache. */
  readonly cache: () => (ChunkCacheStats & CacheState) | undefined;
  readonly datasets: () => DatasetStats | undefined;
}

/** State and content of a cache. */
export interface CacheState {
  readonly isOff?: boolean;
  readonly entries?: number;
}

/** Counts about the datasets of a server. */
export interface DatasetStats {
  readonly datasets: number;
  /** Datasets that have been read. */
  readonly open: number;
  /** Number of refreshes that failed. */
  readonly failedRefreshes: number;
  /** Collections, and plugins that publish datasets. */
  readonly providers: readonly ProviderStats[];
}

/** Returns the current metrics of one server, without those of its process. */
export function serverMetrics(sources: MetricSources): MetricFamily[] {
  return [
    ...aboutServer(sources),
    ...httpMetrics(sources.http, sources.limits),
    ...aboutChunks(sources),
    ...aboutPool(sources),
    ...aboutCache(sources.cache()),
    ...aboutSources(sources.datasets()),
    ...storeMetrics(),
  ];
}

function aboutServer({ isReady, http }: MetricSources): MetricFamily[] {
  const { zpublish: version = "unknown", node = "unknown", v8 = "unknown" } = packageVersions();
  const build = { version, node, v8, uwebsockets: packageVersions()["uWebSockets.js"] ?? "unknown" };
  return [
    gauge("zpublish_build_info", "Always 1; its labels say what runs.", [[build, 1]]),
    gauge(
      "zpublish_ready",
      "1 if the server is ready, else 0; checked for these metrics.",
      Number(isReady()),
    ),
    counter(
      "zpublish_log_dropped_lines_total",
      "Lines of the log that were dropped because standard error was not read.",
      logStats.dropped,
    ),
    ...aboutCertificate(http.stats.certificateExpiresMs),
  ];
}

function aboutCertificate(expiresMs: number | undefined): MetricFamily[] {
  if (expiresMs === undefined) return [];
  const help = "When the certificate in use expires, in seconds since 1970.";
  return [gauge("zpublish_tls_certificate_expiry_timestamp_seconds", help, expiresMs / 1_000)];
}

function aboutChunks({ chunks, pool, http }: MetricSources): MetricFamily[] {
  const { stages, wait } = pool() ?? IDLE_POOL_STATS;
  const served = chunks();
  return [
    histogram(
      "zpublish_chunk_stage_duration_seconds",
      "Stages of chunks that are made (queue, read, decode, encode); send: of any answer that the socket did not take at once.",
      [
        [{ stage: "queue" }, wait],
        ...Object.entries(stages).map(([stage, durations]) => [{ stage }, durations] as const),
        [{ stage: "send" }, http.metrics.counts.send],
      ],
    ),
    gauge(
      "zpublish_chunk_reads_waiting",
      "Chunks served as they are stored that wait for others to be read; at most zpublish_pool_max_queued_tasks.",
      served?.waitingReads ?? 0,
    ),
    counter(
      "zpublish_chunks_total",
      "Chunks answered, by where they came from: hit the cache, pass the source as stored, miss made.",
      Object.entries(served?.answered ?? {}).map(([origin, count]) => [{ origin }, count]),
    ),
    counter(
      "zpublish_chunk_bytes_total",
      "Bytes of the whole chunks behind zpublish_chunks_total.",
      Object.entries(served?.bytes ?? {}).map(([origin, bytes]) => [{ origin }, bytes]),
    ),
  ];
}

/** Label of each cause of death that the pool counts. */
const REASONS = {
  crashed: "crashed",
  outOfMemory: "out_of_memory",
  timedOut: "timed_out",
  couldNotStart: "could_not_start",
} as const;

function aboutPool({ pool, limits }: MetricSources): MetricFamily[] {
  // Autoscalers need values before the first chunk is made.
  const stats = pool() ?? IDLE_POOL_STATS;
  const deaths = Object.entries(REASONS) as [keyof typeof REASONS, string][];
  return [
    gauge("zpublish_pool_queued_tasks", "Chunks that wait for a worker.", stats.queued),
    gauge("zpublish_pool_max_queued_tasks", "Bound of zpublish_pool_queued_tasks.", limits.maxQueuedChunks),
    gauge("zpublish_pool_running_tasks", "Chunks being made.", stats.running),
    gauge("zpublish_pool_threads", "Workers that have a thread.", stats.threads),
    histogram("zpublish_pool_wait_seconds", "Time that chunks waited for a worker.", [[{}, stats.wait]]),
    counter(
      "zpublish_pool_completed_tasks_total",
      "Chunks that a worker finished, with or without an error.",
      stats.completed,
    ),
    counter("zpublish_pool_failed_tasks_total", "Chunks that could not be made.", stats.failed),
    counter(
      "zpublish_pool_retried_tasks_total",
      "Chunks tried a second time because a worker died.",
      stats.retried,
    ),
    counter(
      "zpublish_pool_worker_restarts_total",
      "Workers that had to be replaced, by reason.",
      deaths.map(([kind, reason]) => [{ reason }, stats.workerDeaths[kind]]),
    ),
    counter(
      "zpublish_pool_quarantined_chunks_total",
      "Chunks not tried for a while, because workers died over them.",
      stats.quarantined,
    ),
    gauge("zpublish_pool_broken", "1 if no worker lives and none can be started.", Number(stats.isBroken)),
  ];
}

function aboutCache(stats: (ChunkCacheStats & CacheState) | undefined): MetricFamily[] {
  if (stats === undefined) return [];
  return [
    counter("zpublish_cache_hits_total", "Chunks found in the cache on disk.", stats.hits),
    counter("zpublish_cache_misses_total", "Chunks not found in it.", stats.misses),
    counter("zpublish_cache_writes_total", "Chunks written to it.", stats.puts),
    counter(
      "zpublish_cache_dropped_writes_total",
      "Chunks not written: the queue or the disk was full.",
      stats.drops,
    ),
    counter("zpublish_cache_evictions_total", "Chunks removed from it for others.", stats.evictions),
    counter(
      "zpublish_cache_errors_total",
      "Failures of the cache: a miss each, and never a failed request.",
      stats.errors,
    ),
    gauge(
      "zpublish_cache_bytes",
      "Pages in use in its file, of all processes that share it; the file takes 1.1 to 1.5 times as much, and never shrinks.",
      stats.byteLength,
    ),
    gauge("zpublish_cache_max_bytes", "Bound of zpublish_cache_bytes.", stats.maxBytes),
    gauge(
      "zpublish_cache_off",
      "1 if the cache cannot be used, and all chunks are made or read.",
      Number(stats.isOff ?? false),
    ),
    ...(stats.entries === undefined ? [] : [gauge("zpublish_cache_entries", "Chunks in it.", stats.entries)]),
  ];
}

function aboutSources(datasets: DatasetStats | undefined): MetricFamily[] {
  const families = [
    histogram(
      "zpublish_source_read_seconds",
      "Reads of stored chunks by the server: direct in its own thread, or by libuv's threads, if the store is slow or not local.",
      Object.entries(sourceReadSeconds).map(([way, seconds]) => [{ way }, seconds]),
    ),
  ];
  if (datasets === undefined) return families;
  return [
    ...families,
    gauge("zpublish_datasets", "Datasets that are published.", datasets.datasets),
    gauge("zpublish_open_datasets", "Of those, datasets that have been read.", datasets.open),
    counter(
      "zpublish_dataset_failed_refreshes_total",
      "Refreshes of datasets that failed.",
      datasets.failedRefreshes,
    ),
    ...providerMetrics(datasets.providers),
  ];
}
