import { counter, histogram, type MetricFamily } from "../observe/metric-family.js";
import { allStoreStats } from "../stores/store-stats.js";

/** Returns the metrics of remote stores; none if no dataset lies in one. */
export function storeMetrics(): MetricFamily[] {
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
