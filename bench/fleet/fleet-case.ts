import { type Load, withScans, withShifts, zipfLoad } from "../cache-hit-ratio.js";
import { PLACEMENTS, type PlacementName } from "./placements.js";
import {
  BUCKET_TIMES_AS_LONG,
  type FleetEvent,
  NO_INSTANCE,
  ORIGIN,
  simulateFleet,
} from "./simulate-fleet.js";

/** One simulation, as plain data that a worker thread is given. */
export interface FleetCase {
  readonly instances: number;
  readonly placement: PlacementName;
  readonly load: LoadName;
  /** Of Zipf's law. */
  readonly exponent: number;
  /** Chunks that the caches of all instances hold together. */
  readonly cachedChunks: number;
  /** These as a share of all chunks that are asked for. */
  readonly cachedShare: number;
  /** Chunks that a shared cache in front holds, as a share of those of the instances. */
  readonly frontShare: number;
  /** Requests per cached chunk, after the caches have been filled; the second half counts. */
  readonly requestsPerChunk: number;
  readonly event: EventName;
  readonly seed: number;
}

/** `shifting`: what is popular moves on. `scans`: a fifth of the requests read datasets from end to end, once. */
export type LoadName = "steady" | "shifting" | "scans";

/** What happens before the first request that counts. */
export type EventName = "none" | "lost" | "removed" | "restart, cache kept" | "restart, cache lost";

/** What a simulation found. Ratios and counts are of the second half. */
export interface FleetOutcome {
  /** Requests answered by caches, per request of a client. */
  readonly hitRatio: number;
  /** Requests answered by the shared cache, per request of a client. */
  readonly frontRatio: number;
  readonly bucketPer1000: number;
  /** Requests to the busiest instance, divided by the mean of all instances. */
  readonly peakToMean: number;
  /** The same of requests under way, of which those to the bucket take longer. */
  readonly peakUnderWay: number;
  /** Requests to the busiest instance per 1,000 requests of clients. */
  readonly peakPer1000: number;
  /** Requests to the bucket in windows of {@link windowOf} requests. */
  readonly windows: readonly number[];
  /** Requests after the event, until the last instance is back. */
  readonly eventRequests: number;
  readonly seconds: number;
}

/** Steps of a rolling restart at most: larger fleets restart several instances at a time. */
const RESTART_STEPS = 10;
/** Requests per cached chunk while a step of a rolling restart is away. */
const AWAY_REQUESTS_PER_CHUNK = 0.2;
const PHASES = 5;
/** Requests between two scans, and length of one, per cached chunk. */
const SCAN_EVERY = 2;
const SCAN_LENGTH = 0.5;

/** Requests in one of {@link FleetOutcome.windows}. */
export function windowOf({ cachedChunks }: FleetCase): number {
  return Math.ceil(cachedChunks / 10);
}

/** Runs a simulation. */
export async function runCase(each: FleetCase): Promise<FleetOutcome> {
  const started = performance.now();
  const load = loadOf(each);
  const first = firstCounted(each, load.length);
  const events = eventsOf(each, first);
  const { origins, instances } = await simulateFleet({
    load,
    names: Array.from({ length: each.instances }, (_, i) => `10.0.${i >> 8}.${i & 255}:9000`),
    place: PLACEMENTS[each.placement],
    capacity: Math.floor(each.cachedChunks / each.instances),
    frontCapacity: Math.round(each.cachedChunks * each.frontShare),
    events,
    seed: each.seed,
  });
  const window = windowOf(each);
  const windows = new Array<number>(Math.floor((load.length - first) / window)).fill(0);
  const perInstance = new Array<number>(each.instances).fill(0);
  const underWay = new Array<number>(each.instances).fill(0);
  const counts = [0, 0, 0];
  for (const [i, origin] of origins.entries()) {
    if (i < first) continue;
    const at = Math.floor((i - first) / window);
    if (origin === ORIGIN.bucket && at < windows.length) windows[at]!++;
    counts[origin]!++;
    if (instances[i] === NO_INSTANCE) continue;
    perInstance[instances[i]!]!++;
    underWay[instances[i]!]! += origin === ORIGIN.bucket ? BUCKET_TIMES_AS_LONG : 1;
  }
  const counted = load.length - first;
  return {
    hitRatio: 1 - counts[ORIGIN.bucket]! / counted,
    frontRatio: counts[ORIGIN.front]! / counted,
    bucketPer1000: (counts[ORIGIN.bucket]! / counted) * 1_000,
    peakToMean: peakToMean(perInstance),
    peakUnderWay: peakToMean(underWay),
    peakPer1000: (Math.max(...perInstance) / counted) * 1_000,
    windows,
    eventRequests: (events.at(-1)?.at ?? first) - first,
    seconds: (performance.now() - started) / 1_000,
  };
}

function peakToMean(counts: readonly number[]): number {
  return (Math.max(...counts) * counts.length) / counts.reduce((sum, count) => sum + count, 0);
}

/** Chunk numbers asked for: first, each of the most popular ones that the caches hold. Those of scans follow all others. */
function loadOf({ load, exponent, cachedChunks, cachedShare, requestsPerChunk, seed }: FleetCase): Load {
  const universe = Math.round(cachedChunks / cachedShare);
  const steady = zipfLoad(cachedChunks * requestsPerChunk, universe, exponent, seed);
  let mixed = steady;
  if (load === "shifting") mixed = withShifts(steady, PHASES, Math.round(universe / 10));
  if (load === "scans") {
    const scanned = withScans(steady, cachedChunks * SCAN_EVERY, cachedChunks * SCAN_LENGTH);
    mixed = scanned.map((chunk) => (chunk < universe ? chunk : chunk - 2 ** 24 + universe));
  }
  const whole = new Uint32Array(cachedChunks + mixed.length);
  for (let i = 0; i < cachedChunks; i++) whole[i] = cachedChunks - 1 - i;
  whole.set(mixed, cachedChunks);
  return whole;
}

function firstCounted({ cachedChunks }: FleetCase, requests: number): number {
  return cachedChunks + Math.floor((requests - cachedChunks) / 2);
}

function eventsOf({ event, instances, cachedChunks }: FleetCase, at: number): FleetEvent[] {
  if (event === "none") return [];
  // Neither the first nor the last of the list.
  if (event === "lost" || event === "removed")
    return [{ at, instance: instances >> 1, kind: event === "lost" ? "away" : "removed" }];
  const kind = event === "restart, cache kept" ? "back, cache kept" : "back, cache lost";
  const steps = Math.min(instances, RESTART_STEPS);
  const length = Math.ceil(cachedChunks * AWAY_REQUESTS_PER_CHUNK);
  return Array.from({ length: instances }, (_, instance): FleetEvent[] => {
    const step = Math.floor((instance * steps) / instances);
    const away = at + step * length;
    return [
      { at: away, instance, kind: "away" },
      { at: away + length - 1, instance, kind },
    ];
  })
    .flat()
    .sort((a, b) => a.at - b.at);
}
