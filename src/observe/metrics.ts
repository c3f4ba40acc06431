import { collectDefaultMetrics, type Metric, Registry } from "prom-client";
import type { MetricFamily } from "./metric-family.js";

/** Content type of what `renderMetrics` returns. */
export const METRICS_CONTENT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/** The metrics of one process, or of one of several. */
export interface ProcessMetrics {
  /** Value of the label `process`; undefined if there is one process, which needs no label. */
  readonly process?: string;
  readonly families: readonly MetricFamily[];
}

/**
 * Metrics of the process, shared by all servers in it: the observers of garbage collection and event loop cannot be stopped.
 */
let ofProcess: Registry | undefined;

/** Gauges with names of counters; the same numbers exist by kind, without `_total`. */
const MISNAMED = [
  "nodejs_active_handles_total",
  "nodejs_active_requests_total",
  "nodejs_active_resources_total",
];

function processRegistry(): Registry {
  if (ofProcess === undefined) {
    ofProcess = new Registry();
    collectDefaultMetrics({ register: ofProcess });
    for (const name of MISNAMED) ofProcess.removeSingleMetric(name);
  }
  return ofProcess;
}

/** Starts to observe the process, for {@link processMetrics}. */
export function observeProcess(): void {
  processRegistry();
}

/** Returns the current metrics of this process: memory, event loop, garbage collection. */
export async function processMetrics(): Promise<readonly MetricFamily[]> {
  return (await processRegistry().getMetricsAsJSON()) as unknown as MetricFamily[];
}

/**
 * Writes metrics as text for Prometheus (format 0.0.4): every metric once, with the values of all processes that have it.
 */
export function renderMetrics(processes: readonly ProcessMetrics[]): Promise<string> {
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
  const registry = new Registry();
  for (const family of merged.values()) {
    // A registry uses no other members of a metric, whatever its types say.
    const metric = { name: family.name, get: async () => family };
    registry.registerMetric(metric as unknown as Metric);
  }
  return registry.metrics();
}
