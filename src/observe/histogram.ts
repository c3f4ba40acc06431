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
      while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++;
      counts[bucket] = (counts[bucket] as number) + 1;
      sum += value;
    },
  };
}
