import { bytesOnDisk, cacheLimitsOf, pageSizeOf } from "../cache/policy.js";
import type { ChunkWarmer, WarmedChunk } from "../chunk/chunk-service.js";
import { createLimiter } from "../collections/limiter.js";
import { messageOf, ZpublishError } from "../errors.js";
import { createSlice } from "../event-loop/cooperative-task.js";
import { workThrough } from "../event-loop/work-through.js";
import { chunkKeys, type WarmTarget } from "./warm-targets.js";

/** Counts of a run so far. */
export interface WarmCounts {
  /** Chunks that are to be warmed, by this instance if there are several. */
  readonly total: number;
  /** Chunks by outcome; those that failed. */
  readonly made: number;
  readonly cached: number;
  readonly absent: number;
  readonly stored: number;
  readonly failed: number;
  /** Encoded bytes of the chunks made. */
  readonly madeBytes: number;
}

/** Result of a run. */
export interface WarmResult extends WarmCounts {
  /** Reason to end before the last chunk; undefined if none. */
  readonly stopped: "cancelled" | "cache-full" | "cache-failed" | undefined;
  /** First failures, in the order in which they came. */
  readonly failures: readonly string[];
}

/** Means and bounds of a run. */
export interface WarmOptions {
  readonly warmer: ChunkWarmer;
  /** Size of the cache that the operator chose. */
  readonly cacheBytes: number;
  /** Chunks of this instance, by decoded path with the root path; undefined if there is no other. */
  readonly isOwn?: ((path: string) => boolean) | undefined;
  readonly rootPath: string;
  readonly threads: number;
  /** Bound of the decoded chunks being made, estimated. */
  readonly memoryBytes: number;
  /** Cache also what is passed through. */
  readonly stored: boolean;
  readonly signal: AbortSignal;
  /** Tells if the cache has removed chunks to make room. */
  hasEvicted(): boolean;
  /** Called once before the first chunk if more is to be warmed than the cache holds. */
  onTooMuch(neededBytes: number): void;
  /** Called after each chunk. */
  onProgress(counts: WarmCounts): void;
}

/** Chunks under way: small ones wait for a transaction of the cache, others for a machine elsewhere. 16 took twice as long. */
const CHUNKS_AT_ONCE = 128;
const CHUNKS_PER_THREAD = 2;
/** Chunks of each variable that are made first if it is not certain that all fit. */
const SAMPLES = 3;
const MAX_FAILURES = 5;
/** Bytes in the cache besides a chunk: its key, header and record. */
const ENTRY_BYTES = 128;

/** A chunk to be warmed. */
interface Job {
  readonly target: WarmTarget;
  readonly key: string;
}

/**
 * Warms all chunks of the targets, in their order. What is in the cache already costs a look at the source and the cache. Ends when
 * what was warmed takes the whole cache: more would displace it again.
 */
export async function warmChunks(targets: readonly WarmTarget[], options: WarmOptions): Promise<WarmResult> {
  const { fullBytes } = cacheLimitsOf(options.cacheBytes);
  const own = await countOwn(targets, options);
  const samples = targets.map((target, index) => ({ target, count: own[index]!, bytes: 0, chunks: 0 }));
  const run = createWarmRun(sum(own), options);
  const taken = new Set<string>();
  if (sum(samples.map((each) => mostBytesOf(each, run))) > fullBytes) {
    const needed = await estimateBytes(samples, taken, run, options);
    if (needed > fullBytes && !options.signal.aborted) options.onTooMuch(needed);
  }

  function* jobs(): Generator<Job> {
    for (const target of targets) {
      for (const key of ownKeys(target, options)) {
        if (run.isOver()) return;
        if (!taken.has(target.path + key)) yield { target, key };
      }
    }
  }
  await workThrough(jobs(), run.maxRunning, async (job) => {
    run.stopIfFull();
    if (!run.isOver()) await run.warm(job);
  });
  return run.result();
}

/** A run that warms chunks one by one. */
type WarmRun = ReturnType<typeof createWarmRun>;

/** Creates the counts and bounds of a run. @param total Chunks that are to be warmed. */
function createWarmRun(total: number, options: WarmOptions) {
  const { signal, memoryBytes, threads, cacheBytes } = options;
  const counts = { total, made: 0, cached: 0, absent: 0, stored: 0, failed: 0, madeBytes: 0 };
  const failures: string[] = [];
  const { fullBytes, valueBytes } = cacheLimitsOf(cacheBytes);
  const pageSize = pageSizeOf(cacheBytes);
  const onDisk = (length: number) => (length === 0 ? 0 : bytesOnDisk(length + ENTRY_BYTES, pageSize));
  let warmBytes = 0;
  let begun = 0;
  let stopped: WarmResult["stopped"];
  const maxRunning = Math.max(CHUNKS_AT_ONCE, threads * CHUNKS_PER_THREAD);
  const limiter = createLimiter({
    maxRunning,
    maxPerKey: maxRunning,
    maxWaiting: maxRunning,
    maxCost: memoryBytes,
  });

  function fail(job: Job, reason: string): void {
    counts.failed++;
    if (failures.length < MAX_FAILURES) failures.push(`${job.target.path}${job.key}: ${reason}`);
  }

  function account(job: Job, { outcome, byteLength }: WarmedChunk): void {
    if (outcome === "refused") {
      if (byteLength > valueBytes) fail(job, `its ${byteLength} bytes are more than an eighth of the cache`);
      else stopped ??= options.hasEvicted() ? "cache-full" : "cache-failed";
      return;
    }
    counts[outcome]++;
    if (outcome === "made") counts.madeBytes += byteLength;
    warmBytes += onDisk(byteLength);
  }

  async function warm(job: Job): Promise<WarmedChunk | undefined> {
    const { snapshot, array, chunkBytes } = job.target;
    begun++;
    try {
      const make = () => options.warmer.warm(snapshot, array, job.key, options);
      const warmed = await limiter.run("", make, signal, chunkBytes);
      account(job, warmed);
      return warmed;
    } catch (error) {
      if (signal.aborted) return undefined;
      if (error instanceof ZpublishError && error.code === "not-found") counts.absent++;
      else fail(job, messageOf(error));
      return undefined;
    } finally {
      options.onProgress(counts);
    }
  }

  return {
    maxRunning,
    onDisk,
    warm,
    isOver: () => signal.aborted || stopped !== undefined,
    /** Stops the run if the chunks under way fill the cache, provided that they are as long as those before. */
    stopIfFull(): void {
      const done = doneOf(counts);
      const isFull = done > 0 && warmBytes + (begun - done) * (warmBytes / done) >= fullBytes;
      if (isFull && !signal.aborted) stopped ??= "cache-full";
    },
    result(): WarmResult {
      if (signal.aborted) stopped ??= "cancelled";
      // What was under way at the end may have been the last.
      return { ...counts, failures, stopped: doneOf(counts) === total ? undefined : stopped };
    },
  };
}

/** Some chunks of a target, from which the bytes of all are estimated. */
interface Sample {
  readonly target: WarmTarget;
  /** Chunks of the target that are this instance's. */
  readonly count: number;
  /** Bytes on disk of the chunks that were made. */
  bytes: number;
  chunks: number;
}

function mostBytesOf({ target, count }: Sample, { onDisk }: WarmRun): number {
  return count * onDisk(target.chunkBytes);
}

/**
 * Warms some chunks of each variable, and estimates the bytes of all. Those of higher levels are taken to be compressed as well.
 * @param taken Gets the paths of these chunks.
 */
async function estimateBytes(
  samples: readonly Sample[],
  taken: Set<string>,
  run: WarmRun,
  options: WarmOptions,
): Promise<number> {
  const sampled = samples.filter(({ target }) => !target.isOfLevel);
  const others = samples.filter(({ target }) => target.isOfLevel);
  let needed = 0;
  let mostSampled = 0;
  await workThrough(sampled, run.maxRunning, async (sample) => {
    const { target, count } = sample;
    for (const key of sampleKeys(target, options)) {
      if (run.isOver()) return;
      taken.add(target.path + key);
      const warmed = await run.warm({ target, key });
      if (warmed === undefined) continue;
      sample.chunks++;
      sample.bytes += run.onDisk(warmed.byteLength);
    }
    if (sample.chunks === 0) return;
    needed += (sample.bytes / sample.chunks) * count;
    mostSampled += mostBytesOf(sample, run);
  });
  const mostOfOthers = sum(others.map((each) => mostBytesOf(each, run)));
  return needed * (1 + mostOfOthers / Math.max(mostSampled, 1));
}

/** Counts the chunks that need no more work. */
export function doneOf({ made, cached, absent, stored, failed }: WarmCounts): number {
  return made + cached + absent + stored + failed;
}

/** Lists the keys of a target's chunks that are this instance's. */
function* ownKeys(target: WarmTarget, { isOwn, rootPath }: WarmOptions): Generator<string> {
  const path = rootPath + target.path;
  for (const key of chunkKeys(target)) if (isOwn === undefined || isOwn(path + key)) yield key;
}

/** Counts each target's chunks that are this instance's. Occupies the event loop for no longer than a slice. */
async function countOwn(targets: readonly WarmTarget[], options: WarmOptions): Promise<number[]> {
  if (options.isOwn === undefined) return targets.map(({ count }) => count);
  const slice = createSlice();
  const counts: number[] = [];
  for (const target of targets) {
    let count = 0;
    for (const _ of ownKeys(target, options)) {
      count++;
      if (count % 1_024 === 0 && slice.isOver()) await slice.next();
    }
    counts.push(count);
  }
  return counts;
}

/** Returns keys from the beginning, the middle and the end of a target. */
function* sampleKeys(target: WarmTarget, options: WarmOptions): Generator<string> {
  const { axes } = target;
  const seen = new Set<string>();
  for (let sample = 0; sample < SAMPLES; sample++) {
    const share = sample / (SAMPLES - 1);
    const from = axes.map((axis) => axis.slice(Math.floor((axis.length - 1) * share)));
    const [key] = ownKeys({ ...target, axes: from }, options);
    if (key === undefined || seen.has(key)) continue;
    seen.add(key);
    yield key;
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
