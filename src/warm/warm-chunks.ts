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
  /** Called after each chunk. */
  onProgress(counts: WarmCounts): void;
}

/** Chunks under way: small ones wait for a transaction of the cache, others for a machine elsewhere. 16 took twice as long. */
const CHUNKS_AT_ONCE = 128;
const CHUNKS_PER_THREAD = 2;
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
  const run = createWarmRun(await countOwn(targets, options), options);

  function* jobs(): Generator<Job> {
    for (const target of targets) {
      for (const key of ownKeys(target, options)) {
        if (run.isOver()) return;
        yield { target, key };
      }
    }
  }
  await workThrough(jobs(), run.maxRunning, async (job) => {
    run.stopIfFull();
    if (!run.isOver()) await run.warm(job);
  });
  return run.result();
}

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

  async function warm(job: Job): Promise<void> {
    const { snapshot, array, chunkBytes } = job.target;
    begun++;
    try {
      const make = () => options.warmer.warm(snapshot, array, job.key, options);
      account(job, await limiter.run("", make, signal, chunkBytes));
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ZpublishError && error.code === "not-found") counts.absent++;
      else fail(job, messageOf(error));
    } finally {
      options.onProgress(counts);
    }
  }

  return {
    maxRunning,
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

/** Counts the chunks that need no more work. */
export function doneOf({ made, cached, absent, stored, failed }: WarmCounts): number {
  return made + cached + absent + stored + failed;
}

/** Lists the keys of a target's chunks that are this instance's. */
function* ownKeys(target: WarmTarget, { isOwn, rootPath }: WarmOptions): Generator<string> {
  const path = rootPath + target.path;
  for (const key of chunkKeys(target)) if (isOwn === undefined || isOwn(path + key)) yield key;
}

/** Counts the chunks that are this instance's. Occupies the event loop for no longer than a slice. */
async function countOwn(targets: readonly WarmTarget[], options: WarmOptions): Promise<number> {
  if (options.isOwn === undefined) return targets.reduce((sum, { count }) => sum + count, 0);
  const slice = createSlice();
  let count = 0;
  for (const target of targets)
    for (const _ of ownKeys(target, options)) {
      count++;
      if (count % 1_024 === 0 && slice.isOver()) await slice.next();
    }
  return count;
}
