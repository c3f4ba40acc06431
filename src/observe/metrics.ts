import type { Metric, Registry } from "prom-client";

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

/**
 * One metric with its values, as plain data that can be sent between processes: the form of prom-client's
 * `getMetricsAsJSON`, which its registry can write.
 */
export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram" | "summary";
  readonly values: readonly MetricSample[];
}

/** One value of a metric. */
interface MetricSample {
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number>>;
  /** Name if it is not the family's: a histogram's `…_bucket`, `…_sum`, `…_count`. */
  readonly metricName?: string;
}

type Labels = MetricSample["labels"];

/** Values with their labels; a number alone has none. */
type Labelled<T> = T | readonly (readonly [labels: Labels, value: T])[];

/** Creates a metric that only grows; its name ends in `_total`. */
export function counter(name: string, help: string, value: Labelled<number>): MetricFamily {
  return { name, help, type: "counter", values: samples(value) };
}

/** Creates a metric that goes up and down. */
export function gauge(name: string, help: string, value: Labelled<number>): MetricFamily {
  return { name, help, type: "gauge", values: samples(value) };
}

/** Creates a histogram, whose buckets count all observations up to their bound, as Prometheus expects. */
export function histogram(
  name: string,
  help: string,
  observed: readonly (readonly [labels: Labels, value: Histogram])[],
): MetricFamily {
  return {
    name,
    help,
    type: "histogram",
    values: observed.flatMap(([labels, { bounds, counts, sum }]) => {
      let count = 0;
      const buckets = Array.from(counts, (own, index): MetricSample => {
        count += own;
        const le = index < bounds.length ? bounds[index]! : "+Inf";
        return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: count };
      });
      return [
        ...buckets,
        { metricName: `${name}_sum`, labels, value: sum },
        { metricName: `${name}_count`, labels, value: count },
      ];
    }),
  };
}

function samples(value: Labelled<number>): MetricSample[] {
  return typeof value === "number"
    ? [{ value, labels: {} }]
    : value.map(([labels, each]) => ({ labels, value: each }));
}

/**
 * A histogram as Prometheus defines it. An observation costs a few nanoseconds; the counts are read only for metrics.
 */
export interface Histogram {
  /** Upper bounds of the buckets, included, ascending; the last bucket, without a bound, is not among them. */
  readonly bounds: readonly number[];
  /** Observations per bucket, one more than there are bounds; not cumulative. */
  readonly counts: Float64Array;
  /** Sum of all observed values. */
  readonly sum: number;
  observe(value: number): void;
}

/** Seconds, from a cached chunk (a tenth of a millisecond) to one that waits for a worker (two minutes). */
const DURATION_BOUNDS: readonly number[] = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
  120,
];

/** Creates an empty histogram. @param bounds Ascending. Default: {@link DURATION_BOUNDS}. */
export function createHistogram(bounds: readonly number[] = DURATION_BOUNDS): Histogram {
  const counts = new Float64Array(bounds.length + 1);
  let sum = 0;
  return {
    bounds,
    counts,
    get sum() {
      return sum;
    },
    observe(value) {
      let bucket = 0;
      while (bucket < bounds.length && value > bounds[bucket]!) bucket++;
      counts[bucket] = counts[bucket]! + 1;
      sum += value;
    },
  };
}
