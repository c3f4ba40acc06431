import type { Histogram } from "./histogram.js";

/**
 * One metric with its values as plain data, which crosses processes: of the form that prom-client's `getMetricsAsJSON`
 * gives and its registry writes.
 */
export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram" | "summary";
  readonly values: readonly MetricSample[];
}

export interface MetricSample {
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number>>;
  /** Where it is not the family's: a histogram's `…_bucket`, `…_sum`, `…_count`. */
  readonly metricName?: string;
}

type Labels = MetricSample["labels"];

/** Labels and what is measured under them; a number alone has none. */
export type Labelled<T> = T | readonly (readonly [labels: Labels, value: T])[];

/** What only grows; its name ends in `_total`. */
export function counter(name: string, help: string, value: Labelled<number>): MetricFamily {
  return { name, help, type: "counter", values: samples(value) };
}

/** What goes up and down. */
export function gauge(name: string, help: string, value: Labelled<number>): MetricFamily {
  return { name, help, type: "gauge", values: samples(value) };
}

/** Observations in buckets, which count all up to their bound, as Prometheus has it. */
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
