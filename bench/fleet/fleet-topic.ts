import type { ResultTable } from "../experiments/experiment.js";
import type { FleetCase, FleetOutcome } from "./fleet-case.js";

/** A simulation that has been run. */
export interface FleetResult extends FleetOutcome {
  readonly case: FleetCase;
}

/** Part of the report: the simulations that it needs, and what it makes of them. */
export interface FleetTopic {
  readonly cases: readonly FleetCase[];
  /** Results in the order of the cases. */
  tables(results: readonly FleetResult[]): ResultTable[];
}

/** How much is simulated. */
export interface FleetScale {
  /** Numbers of instances, ascending. */
  readonly instances: readonly number[];
  /** Chunks in all caches together, by the number of instances. */
  cachedChunks(instances: number): number;
  /** After the caches have been filled. */
  requestsPerChunk(instances: number): number;
  /** The number of instances for which only some placements and loads are simulated. */
  readonly few: number;
  /** The number of instances for questions that do not depend on it. */
  readonly usual: number;
  readonly seed: number;
}

/** Share of the data that all caches hold together, unless a case says otherwise. */
const CACHED_SHARE = 0.1;

/** A case of steady load, placed consistently, with nothing else. */
export function caseOf(
  scale: FleetScale,
  different: Partial<FleetCase> & { readonly instances: number },
): FleetCase {
  const { seed } = scale;
  const requestsPerChunk = scale.requestsPerChunk(different.instances);
  const cachedShare = different.cachedShare ?? CACHED_SHARE;
  // The same data for every size of caches.
  const cachedChunks = Math.round((scale.cachedChunks(different.instances) * cachedShare) / CACHED_SHARE);
  return {
    ...{ placement: "consistent", load: "steady", exponent: 0.9, event: "none" },
    ...{ frontShare: 0, cachedShare, requestsPerChunk, seed },
    ...different,
    cachedChunks,
  };
}

/** Formats a ratio. */
export function percent(ratio: number, digits = 1): string {
  return `${(ratio * 100).toFixed(digits)} %`;
}
