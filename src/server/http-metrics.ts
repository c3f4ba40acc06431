import type { LimitsConfig } from "../config/config.js";
import { METHOD_LABELS, type RouteCounts } from "../http/request-counts.js";
import type { HttpServer } from "../http/server.js";
import { counter, gauge, histogram, type MetricFamily } from "../observe/metric-family.js";

type MeasuredHttp = Pick<HttpServer, "stats" | "metrics">;

/** Returns the current metrics of requests, connections and their limits. */
export function httpMetrics(http: MeasuredHttp, limits: LimitsConfig): MetricFamily[] {
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

function requestsOf({ route, requests, ok }: RouteCounts): (readonly [Record<string, string>, number])[] {
  const found = METHOD_LABELS.flatMap((method) =>
    Array.from(
      requests[method],
      ([status, count]) => [{ route, method, status: status.slice(0, 3) }, count] as const,
    ),
  );
  return ok === 0 ? found : [[{ route, method: "GET", status: "200" }, ok], ...found];
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
        [{ priority: "page" }, metrics.rejections.counts.page],
        [{ priority: "chunk" }, metrics.rejections.counts.chunk],
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
