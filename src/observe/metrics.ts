import { collectDefaultMetrics, type Metric, Registry } from "prom-client";
import type { MetricFamily } from "./metric-family.js";
import { type MetricSources, serverMetrics } from "./server-metrics.js";

/** Of `renderMetrics`. */
export const METRICS_CONTENT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/** The metrics of one process, or of one of several. */
export interface ProcessMetrics {
  /** Value of the label `process`; undefined: there is only one, and no label. */
  readonly process?: string;
  readonly families: readonly MetricFamily[];
}

/**
 * What observes the process: there is one of each in a process, however many servers it has, as what looks at garbage
 * collection and the event loop cannot be stopped.
 */
let ofProcess: Registry | undefined;

/** Gauges that are named as if they were counters; the same numbers are there by kind, without `_total`. */
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

/** Begins to observe the process, for later {@link collectMetrics}. */
export function observeProcess(): void {
  processRegistry();
}

/** All metrics of a server and its process as they are now, as plain data. Never rejects for what a server does. */
export async function collectMetrics(sources: MetricSources): Promise<readonly MetricFamily[]> {
  const own = (await processRegistry().getMetricsAsJSON()) as unknown as MetricFamily[];
  return [...own, ...serverMetrics(sources)];
}

/**
 * Metrics as text for Prometheus (format 0.0.4): every metric once, with the values of all processes. What only one
 * process says stands for that one.
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
    // A registry asks no more of a metric than this, whatever its types say.
    const metric = { name: family.name, get: async () => family };
    registry.registerMetric(metric as unknown as Metric);
  }
  return registry.metrics();
}
