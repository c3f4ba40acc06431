import type { ChunkCacheStats } from "../cache/chunk-cache.js";
import type { ChunkServiceStats } from "../chunk/chunk-service.js";
import type { LimitsConfig } from "../config/config.js";
import type { DatasetStats } from "../dataset/dataset-registry.js";
import type { ProviderStats } from "../dataset/providers/provider-handle.js";
import { METHOD_LABELS, type RouteCounts } from "../http/load-limits.js";
import type { HttpServer } from "../http/server.js";
import { logStats } from "../observe/log.js";
import { counter, gauge, histogram, type MetricFamily } from "../observe/metrics.js";
import { packageVersions } from "../observe/versions.js";
import { type EncodePoolStats, IDLE_POOL_STATS } from "../pool/encode-pool.js";
import { sourceReadSeconds } from "../stores/file-calls.js";
import { allStoreStats } from "../stores/http-store.js";

type MeasuredHttp = Pick<HttpServer, "stats" | "metrics">;

/** Returns the current metrics of requests, connections and their limits. */
function httpMetrics(http: MeasuredHttp, limits: LimitsConfig): MetricFamily[] {
  return [...aboutRequests(http), ...aboutLoad(http, limits)];
}

function aboutRequests(http: MeasuredHttp): MetricFamily[] {
  const { counts, overdue } = http.metrics;
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

function requestsOf({ route, requests }: RouteCounts): (readonly [Record<string, string>, number])[] {
  return METHOD_LABELS.flatMap((method) =>
    Array.from(
      requests[method],
      ([status, count]) => [{ route, method, status: status.slice(0, 3) }, count] as const,
    ),
  );
}

function aboutLoad({ stats, metrics }: MeasuredHttp, limits: LimitsConfig): MetricFamily[] {
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
      "Bound of zpublish_http_requests_in_flight, by the priority of requests rejected beyond it.",
      [
        [{ priority: "page" }, Math.min(limits.maxPages, limits.maxRequests)],
        [{ priority: "chunk" }, limits.maxRequests],
      ],
    ),
    counter(
      "zpublish_shed_requests_total",
      "Requests rejected with 503 at a bound; pages and metadata are shed before chunks.",
      [
        [{ priority: "page" }, metrics.logs.rejections.page],
        [{ priority: "chunk" }, metrics.logs.rejections.chunk],
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

/** Returns the metrics of collections and of plugins that publish datasets; none if there are none. */
function providerMetrics(providers: readonly ProviderStats[]): MetricFamily[] {
  if (providers.length === 0) return [];
  const each = (value: (stats: ProviderStats) => number) =>
    [...byName(providers)].map(
      ([provider, all]) => [{ provider }, all.reduce((sum, stats) => sum + value(stats), 0)] as const,
    );
  return [
    gauge(
      "zpublish_provider_datasets",
      "Datasets of a collection or plugin, as it listed them last.",
      each(({ known }) => known),
    ),
    gauge(
      "zpublish_provider_open_datasets",
      "Of those, datasets that are open.",
      each(({ open }) => open),
    ),
    gauge(
      "zpublish_provider_failed_datasets",
      "Of those, datasets that could not be opened when they were last asked for.",
      each(({ failed }) => failed),
    ),
    gauge(
      "zpublish_provider_list_seconds",
      "Time that the last list took.",
      each(({ listSeconds }) => listSeconds),
    ),
    counter(
      "zpublish_provider_failed_lists_total",
      "Lists that failed. The datasets of the list before are still served after one.",
      each(({ failedLists }) => failedLists),
    ),
  ];
}

/** Groups providers by their names: two samples of one metric with the same labels would be refused. */
function byName(providers: readonly ProviderStats[]): ReadonlyMap<string, readonly ProviderStats[]> {
  const groups = new Map<string, ProviderStats[]>();
  for (const stats of providers) groups.set(stats.name, [...(groups.get(stats.name) ?? []), stats]);
  return groups;
}

/** Returns the metrics of remote stores; none if no dataset lies in one. */
function storeMetrics(): MetricFamily[] {
  const stores = [...allStoreStats()].map(([store, stats]) => ({ labels: { store }, stats }));
  if (stores.length === 0) return [];
  return [
    counter(
      "zpublish_store_requests_total",
      "Requests to remote stores, by status of the answer; failed if there was no whole answer.",
      stores.flatMap(({ labels, stats: { answers, failures } }) => [
        ...[...answers].map(([status, count]) => [{ ...labels, status: String(status) }, count] as const),
        [{ ...labels, status: "failed" }, failures] as const,
      ]),
    ),
    counter(
      "zpublish_store_retries_total",
      "Requests to remote stores that were sent again after a failure.",
      stores.map(({ labels, stats }) => [labels, stats.retries]),
    ),
    counter(
      "zpublish_store_received_bytes_total",
      "Bytes that remote stores sent.",
      stores.map(({ labels, stats }) => [labels, stats.bytes]),
    ),
    histogram(
      "zpublish_store_request_seconds",
      "Requests to remote stores, from sending to the end of the answer.",
      stores.map(({ labels, stats }) => [labels, stats.seconds]),
    ),
  ];
}

/** The parts of a server that are measured. Parts that have not started have counted nothing. */
export interface MetricSources {
  readonly http: Pick<HttpServer, "stats" | "metrics">;
  readonly limits: LimitsConfig;
  readonly isReady: () => boolean;
  readonly pool: () => EncodePoolStats | undefined;
  readonly chunks: () => ChunkServiceStats | undefined;
  /** Caches that are open, by what they have: `chunks`, `pictures`. */
  readonly caches: () => readonly (readonly [content: string, stats: ChunkCacheStats])[];
  readonly datasets: () => DatasetStats | undefined;
}

/** Returns the current metrics of one server, without those of its process. */
export function serverMetrics(sources: MetricSources): MetricFamily[] {
  return [
    ...aboutServer(sources),
    ...httpMetrics(sources.http, sources.limits),
    ...aboutChunks(sources),
    ...aboutPool(sources),
    ...aboutCaches(sources.caches()),
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
      served?.reads.waiting ?? 0,
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

function aboutCaches(caches: ReturnType<MetricSources["caches"]>): MetricFamily[] {
  if (caches.length === 0) return [];
  const each = (count: keyof ChunkCacheStats) =>
    caches.map(([content, stats]) => [{ content }, Number(stats[count])] as const);
  return [
    counter(
      "zpublish_cache_hits_total",
      "Found in a cache on disk: chunks, or pictures of maps.",
      each("hits"),
    ),
    counter("zpublish_cache_misses_total", "Not found in it.", each("misses")),
    counter("zpublish_cache_writes_total", "Written to it.", each("puts")),
    counter(
      "zpublish_cache_dropped_writes_total",
      "Not written: the queue or the disk was full.",
      each("drops"),
    ),
    counter("zpublish_cache_evictions_total", "Removed from it for others.", each("evictions")),
    counter(
      "zpublish_cache_errors_total",
      "Failures of the cache: a miss each, and never a failed request.",
      each("errors"),
    ),
    gauge(
      "zpublish_cache_bytes",
      "Pages in use in its file, of all processes that share it; the file takes 1.1 to 1.5 times as much, and never shrinks.",
      each("byteLength"),
    ),
    gauge("zpublish_cache_max_bytes", "Bound of zpublish_cache_bytes.", each("maxBytes")),
    gauge(
      "zpublish_cache_off",
      "1 if the cache cannot be used, and everything is made or read.",
      each("isOff"),
    ),
    gauge("zpublish_cache_entries", "Chunks or pictures in it.", each("entries")),
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
