import { createHistogram, type Histogram } from "../observe/metrics.js";

/** Counts of one store since the start of the process. */
export interface StoreStats {
  /** Requests that were answered, by status code. */
  readonly answers: Map<number, number>;
  /** Requests that got no whole answer. */
  failures: number;
  /** Attempts after the first one. */
  retries: number;
  /** Bytes of objects received. */
  bytes: number;
  /** Seconds from sending a request to the end of its answer. */
  readonly seconds: Histogram;
}

const stats = new Map<string, StoreStats>();

/** Returns the counts of a store by its name, for all datasets in it. */
export function statsOfStore(name: string): StoreStats {
  let found = stats.get(name);
  if (found === undefined) {
    found = { answers: new Map(), failures: 0, retries: 0, bytes: 0, seconds: createHistogram() };
    stats.set(name, found);
  }
  return found;
}

/** Returns the counts of all stores by name. */
export function allStoreStats(): ReadonlyMap<string, StoreStats> {
  return stats;
}
