import type { Metric, Registry } from "prom-client";
import type { MetricFamily } from "./metric-family.js";

/** Content type of what `renderMetrics` returns. */
export const METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** The metrics of one process, or of one of several. */
export interface ProcessMetrics {
  /** Value of the label `process`; undefined if there is one process, which needs no label. */
  readonly process?: string;
  readonly families: readonly MetricFamily[];
}

/**
 * Metrics of the process, shared by all servers in it: the observers of garbage collection and event loop cannot be stopped. They
 * begin when metrics are first asked for: loading prom-client takes a tenth of a start.
 */
let ofProcess: Promise<Registry> | undefined;

/** Gauges with names of counters; the same numbers exist by kind, without `_total`. */
const MISNAMED = [
  "nodejs_active_handles_total",
  "nodejs_active_requests_total",
  "nodejs_active_resources_total",
];

async function observeProcess(): Promise<Registry> {
  const { collectDefaultMetrics, Registry } = await import("prom-client");
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  return registry;
}

/** Returns the current metrics of this process: memory, event loop, garbage collection. */
export async function processMetrics(): Promise<readonly MetricFamily[]> {
  ofProcess ??= observeProcess();
  return (await (await ofProcess).getMetricsAsJSON()) as unknown as MetricFamily[];
}

/**
 * Writes metrics as text for Prometheus (format 0.0.4): every metric once, with the values of all processes that have it.
 */
export async function renderMetrics(processes: readonly ProcessMetrics[]): Promise<string> {
  const merged = new Map<string, MetricFamily & { values: MetricFamily["values"][number][] }>();
  for (const { process, families } of processes) {
    for (const family of families) {
      let found = merged.get(family.name);
      if (found === undefined) {
        found = { ...family, values: [] };
        merged.set(family.name, found);
      }
      for (const sample of family.values) {
        found.values.push(
          process === undefined ? sample : { ...sample, labels: { ...sample.labels, process } },
        );
      }
    }
  }
  const registry = new (await import("prom-client")).Registry();
  for (const family of merged.values()) {
    // A registry uses no other members of a metric, whatever its types say.
    const metric = { name: family.name, get: async () => family };
    registry.registerMetric(metric as unknown as Metric);
  }
  return registry.metrics();
}
