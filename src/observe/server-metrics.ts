import type { ChunkCacheStats } from "../cache/chunk-cache.js";
import type { ChunkServiceStats } from "../chunk/chunk-service.js";
import type { LimitsConfig } from "../config/config.js";
import { METHOD_LABELS, type RouteCounts } from "../http/request-counts.js";
import type { HttpServer } from "../http/server.js";
import { type EncodePoolStats, IDLE_POOL_STATS } from "../pool/pool-stats.js";
import { sourceStats } from "../source/source-stats.js";
import { logStats } from "./log-sink.js";
import { counter, gauge, histogram, type MetricFamily } from "./metric-family.js";
import { packageVersions } from "./versions.js";

/** Where the metrics of one server come from. What has not been started has counted nothing yet. */
export interface MetricSources {
  readonly http: Pick<HttpServer, "stats" | "watch">;
  readonly limits: LimitsConfig;
  readonly isReady: () => boolean;
  readonly pool: () => EncodePoolStats | undefined;
  readonly chunks: () => ChunkServiceStats | undefined;
  /** Undefined: nothing is kept. */
  readonly cache: () => (ChunkCacheStats & CacheState) | undefined;
  readonly datasets: () => DatasetStats | undefined;
}

/** Whether a cache can be used, and what is in it. */
export interface CacheState {
  readonly isOff?: boolean;
  readonly entries?: number;
}

/** Of the datasets of a server. */
export interface DatasetStats {
  readonly datasets: number;
  /** Of those, how many are open. */
  readonly open: number;
  /** Looks for new metadata that failed. */
  readonly failedLooks: number;
}

/** All metrics of one server but those of its process, as they are now. */
export function serverMetrics(sources: MetricSources): MetricFamily[] {
  return [
    ...aboutServer(sources),
    ...aboutRequests(sources),
    ...aboutLoad(sources),
    ...aboutChunks(sources),
    ...aboutPool(sources),
    ...aboutCache(sources.cache()),
    ...aboutSources(sources.datasets()),
  ];
}

function aboutServer({ isReady, http }: MetricSources): MetricFamily[] {
  const { zpublish: version = "unknown", node = "unknown", v8 = "unknown" } = packageVersions();
  const build = { version, node, v8, uwebsockets: packageVersions()["uWebSockets.js"] ?? "unknown" };
  return [
    gauge("zpublish_build_info", "Always 1; its labels say what runs.", [[build, 1]]),
    gauge(
      "zpublish_ready",
      "1 where the server is ready, 0 where not; looked at for these metrics.",
      Number(isReady()),
    ),
    counter(
      "zpublish_log_dropped_lines_total",
      "Lines of the log that were dropped because nobody took them from standard error.",
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

function aboutRequests({ http }: MetricSources): MetricFamily[] {
  const { counts, overdue } = http.watch;
  const routes = [...counts.all()];
  const asked = routes.filter(({ whole }) => whole.counts.some((count) => count > 0));
  return [
    counter(
      "zpublish_http_requests_total",
      "Requests answered, by route template; status 499: the client went away before the answer began.",
      asked.flatMap(requestsOf),
    ),
    histogram(
      "zpublish_http_request_duration_seconds",
      "From a request to the end of its answer, as far as the system has taken it.",
      asked.map(({ route, whole }) => [{ route }, whole]),
    ),
    histogram(
      "zpublish_http_time_to_first_byte_seconds",
      "From a request to the beginning of its answer.",
      asked.map(({ route, firstByte }) => [{ route }, firstByte]),
    ),
    counter(
      "zpublish_http_response_bytes_total",
      "Bytes of bodies that were sent whole, headers left out.",
      asked.map(({ route, bytes }) => [{ route }, bytes]),
    ),
    counter(
      "zpublish_http_responses_broken_off_total",
      "Answers that had begun and were not sent whole: the client went away, stalled, or the body could not be read on.",
      asked.map(({ route, brokenOff }) => [{ route }, brokenOff]),
    ),
    counter(
      "zpublish_http_requests_timed_out_total",
      "Requests answered 503 because their answer did not begin in time.",
      overdue.count,
    ),
  ];
}

function requestsOf({ route, requests, ok }: RouteCounts): (readonly [Record<string, string>, number])[] {
  const found = METHOD_LABELS.flatMap((method) =>
    Array.from(
      requests[method],
      ([status, count]) => [{ route, method, status: status.slice(0, 3) }, count] as const,
    ),
  );
  return ok === 0 ? found : [[{ route, method: "GET", status: "200" }, ok], ...found];
}

function aboutLoad({ http: { stats, watch }, limits }: MetricSources): MetricFamily[] {
  return [
    gauge("zpublish_connections", "Connections that are open.", stats.connections),
    gauge("zpublish_max_connections", "Bound of zpublish_connections.", stats.maxConnections),
    counter(
      "zpublish_connections_refused_total",
      "Connections closed at once because as many were open as may be.",
      stats.connectionsRefused,
    ),
    counter(
      "zpublish_http_clients_dropped_total",
      "Clients dropped in the middle of a body: stalled, or slow while others waited for the memory.",
      stats.clientsDropped,
    ),
    gauge("zpublish_http_requests_in_flight", "Requests being answered.", stats.requestsInFlight),
    gauge(
      "zpublish_http_max_requests_in_flight",
      "Bound of zpublish_http_requests_in_flight, by what is turned away beyond it.",
      [
        [{ weight: "page" }, Math.min(limits.maxPages, limits.maxRequests)],
        [{ weight: "chunk" }, limits.maxRequests],
      ],
    ),
    counter(
      "zpublish_shed_requests_total",
      "Requests turned away with 503 at a bound; pages and metadata are shed before chunks.",
      [
        [{ weight: "page" }, watch.turnedAway.counts.page],
        [{ weight: "chunk" }, watch.turnedAway.counts.chunk],
      ],
    ),
    gauge(
      "zpublish_http_response_bytes_in_flight",
      "Bytes of bodies being made, or not taken yet by clients.",
      stats.bodyBytesInFlight,
    ),
    gauge(
      "zpublish_http_max_response_bytes_in_flight",
      "Bound of zpublish_http_response_bytes_in_flight; beyond it chunks wait.",
      limits.maxResponseBytes,
    ),
    gauge("zpublish_http_waiting_chunks", "Chunk requests that wait for that room.", stats.waiting),
  ];
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
        [{ stage: "send" }, http.watch.counts.send],
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

/** By what the pool calls them. */
const REASONS = {
  crashed: "crashed",
  outOfMemory: "out_of_memory",
  timedOut: "timed_out",
  couldNotStart: "could_not_start",
} as const;

function aboutPool({ pool, limits }: MetricSources): MetricFamily[] {
  // What scales by them needs values before the first chunk is made.
  const stats = pool() ?? IDLE_POOL_STATS;
  const deaths = Object.entries(REASONS) as [keyof typeof REASONS, string][];
  return [
    gauge("zpublish_pool_queued_tasks", "Chunks that wait for a worker.", stats.queued),
    gauge("zpublish_pool_max_queued_tasks", "Bound of zpublish_pool_queued_tasks.", limits.maxQueuedChunks),
    gauge(
      "zpublish_pool_queued_suspect_tasks",
      "Of zpublish_pool_queued_tasks, those of arrays that workers died over; at most half of the bound is theirs.",
      stats.queuedSuspects,
    ),
    gauge("zpublish_pool_running_tasks", "Chunks being made.", stats.running),
    gauge("zpublish_pool_threads", "Workers that have a thread.", stats.threads),
    histogram("zpublish_pool_wait_seconds", "Time that chunks waited for a worker.", [[{}, stats.wait]]),
    counter(
      "zpublish_pool_completed_tasks_total",
      "Chunks that a worker came to an end with, well or with an error.",
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
      "Workers that had to be replaced, by why.",
      deaths.map(([kind, reason]) => [{ reason }, stats.workerDeaths[kind]]),
    ),
    counter(
      "zpublish_pool_quarantined_chunks_total",
      "Chunks not tried for a while, because workers died over them.",
      stats.quarantined,
    ),
    gauge(
      "zpublish_pool_suspect_arrays",
      "Arrays made apart from others, because workers died over their chunks.",
      stats.suspects,
    ),
    gauge(
      "zpublish_pool_lingering_threads",
      "Threads that were ended and wait for the system.",
      stats.lingering,
    ),
    gauge("zpublish_pool_broken", "1 where no worker lives and none can be started.", Number(stats.isBroken)),
  ];
}

function aboutCache(stats: (ChunkCacheStats & CacheState) | undefined): MetricFamily[] {
  if (stats === undefined) return [];
  return [
    counter("zpublish_cache_hits_total", "Chunks found in the cache on disk.", stats.hits),
    counter("zpublish_cache_misses_total", "Chunks looked for in it and not found.", stats.misses),
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
      "1 where the cache cannot be used, and all chunks are made or read.",
      Number(stats.isOff ?? false),
    ),
    ...(stats.entries === undefined ? [] : [gauge("zpublish_cache_entries", "Chunks in it.", stats.entries)]),
  ];
}

function aboutSources(datasets: DatasetStats | undefined): MetricFamily[] {
  const families = [
    counter(
      "zpublish_source_timeouts_total",
      "Calls to file systems that did not answer in time.",
      sourceStats.timeouts,
    ),
    gauge("zpublish_source_hanging_calls", "Of those, calls that have not come back.", sourceStats.hanging),
  ];
  if (datasets === undefined) return families;
  return [
    ...families,
    gauge("zpublish_datasets", "Datasets that are published.", datasets.datasets),
    gauge("zpublish_open_datasets", "Of those, datasets that have been read.", datasets.open),
    counter(
      "zpublish_dataset_failed_looks_total",
      "Looks for new metadata that failed.",
      datasets.failedLooks,
    ),
  ];
}
