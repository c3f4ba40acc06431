import type { Histogram } from "./histogram.js";

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
export interface MetricSample {
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number>>;
  /** Name if it is not the family's: a histogram's `…_bucket`, `…_sum`, `…_count`. */
  readonly metricName?: string;
}

type Labels = MetricSample["labels"];

/** Values with their labels; a number alone has none. */
export type Labelled<T> = T | readonly (readonly [labels: Labels, value: T])[];

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
        const le = index < bounds.length ? (bounds[index] as number) : "+Inf";
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
