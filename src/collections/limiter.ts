import { ZpublishError } from "../errors.js";
import { LinkedList, type ListEntry } from "./linked-list.js";

/** A semaphore with fair keys: the jobs of a key run in order, keys take turns, and no key takes all places. */
export interface Limiter {
  readonly running: number;
  /** Jobs that wait for a place. */
  readonly waiting: number;
  /** Tells whether a job of a key without cost would start at once. */
  isFree(key: string): boolean;
  /**
   * Runs a job at once if there is a place, otherwise when its turn comes.
   * @returns The job's result itself if both are at once.
   * @param signal Takes a waiting job out of the queue; a running job is not interrupted.
   * @param cost Part of `maxCost` that the job takes. Default 0: it waits for a place only.
   * @throws ZpublishError `cancelled` if the signal is aborted before the job starts, `overloaded` if too many jobs wait;
   * what the job throws.
   */
  run<R>(key: string, job: () => R, signal?: AbortSignal, cost?: number): R | Promise<Awaited<R>>;
}

/** Bounds of a {@link Limiter}. */
export interface LimiterOptions {
  readonly maxRunning: number;
  /** Running jobs of one key. A bound below `maxRunning` leaves places for other keys if the jobs of one hang. */
  readonly maxPerKey: number;
  /** Waiting jobs of all keys; further ones are refused. */
  readonly maxWaiting: number;
  /** Bound of the total cost of running jobs; one job with a cost may always run. Default: none. */
  readonly maxCost?: number;
}

interface Job {
  readonly cost: number;
  /** Starts the job, or rejects it. */
  readonly settle: (refusal?: ZpublishError) => void;
}

interface KeyQueue {
  readonly key: string;
  running: number;
  readonly jobs: LinkedList<Job>;
  /** Place among the keys whose jobs wait; undefined if none waits. */
  turn: ListEntry<KeyQueue> | undefined;
}

/** Idle keys that stay in the map: V8 is slow with maps whose entries come and go (see `linked-list.ts`). */
const MAX_IDLE = 64;

/** Creates a limiter without jobs. */
export function createLimiter(options: LimiterOptions): Limiter {
  const { maxRunning, maxPerKey, maxWaiting, maxCost = Number.POSITIVE_INFINITY } = options;
  const queues = new Map<string, KeyQueue>();
  const turns = new LinkedList<KeyQueue>();
  let running = 0;
  let waiting = 0;
  let runningCost = 0;

  function queueOf(key: string): KeyQueue {
    const found = queues.get(key);
    if (found !== undefined) return found;
    const queue = { key, running: 0, jobs: new LinkedList<Job>(), turn: undefined };
    queues.set(key, queue);
    return queue;
  }

  function begin(queue: KeyQueue, cost: number): void {
    queue.running++;
    running++;
    runningCost += cost;
  }

  function fits(cost: number): boolean {
    return cost === 0 || runningCost === 0 || runningCost + cost <= maxCost;
  }

  /** Ends a job, and starts waiting ones in its place. */
  function end(ended: KeyQueue, cost: number): void {
    ended.running--;
    running--;
    runningCost -= cost;
    while (running < maxRunning) if (!startNext()) break;
    const isIdle = ended.running === 0 && ended.jobs.size === 0;
    if (isIdle && queues.size > MAX_IDLE) queues.delete(ended.key);
  }

  /** Starts the next job that may run. A job that does not fit holds up all later ones with a cost, so that it fits eventually. */
  function startNext(): boolean {
    let isFull = false;
    for (const queue of turns) {
      const job = queue.jobs.first;
      if (job === undefined || queue.running >= maxPerKey) continue;
      const { cost } = job.value;
      isFull ||= !fits(cost);
      if (isFull && cost > 0) continue;
      begin(queue, cost);
      settle(queue, job);
      return true;
    }
    return false;
  }

  /** Takes a job out of its queue. The next turn of its key comes after those of the other keys. */
  function settle(queue: KeyQueue, job: ListEntry<Job> | undefined, refusal?: ZpublishError): void {
    if (job === undefined) return;
    queue.jobs.remove(job);
    waiting--;
    if (queue.turn !== undefined) turns.remove(queue.turn);
    queue.turn = queue.jobs.size > 0 ? turns.add(queue) : undefined;
    job.value.settle(refusal);
  }

  function wait(queue: KeyQueue, cost: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      if (waiting >= maxWaiting)
        throw new ZpublishError(
          "overloaded",
          `expected at most ${maxWaiting} waiting jobs, received one more`,
        );
      const cancel = () => settle(queue, job, cancelled());
      signal?.addEventListener("abort", cancel);
      const job = queue.jobs.add({
        cost,
        settle(refusal) {
          signal?.removeEventListener("abort", cancel);
          if (refusal === undefined) resolve();
          else reject(refusal);
        },
      });
      waiting++;
      queue.turn ??= turns.add(queue);
    });
  }

  function isFree(key: string): boolean {
    return running < maxRunning && (queues.get(key)?.running ?? 0) < maxPerKey;
  }

  return {
    get running() {
      return running;
    },
    get waiting() {
      return waiting;
    },
    isFree,
    run(key, job, signal, cost = 0) {
      if (signal?.aborted) return Promise.reject(cancelled());
      const queue = queueOf(key);
      const runBegun = () => runThen(job, () => end(queue, cost));
      // A job with a cost must not overtake one that waits until it fits.
      if (!isFree(key) || !fits(cost) || (cost > 0 && waiting > 0))
        return wait(queue, cost, signal).then(runBegun) as Promise<Awaited<ReturnType<typeof job>>>;
      begin(queue, cost);
      return runBegun();
    },
  };
}

/** Runs a job, and calls `end` after it. */
function runThen<R>(job: () => R, end: () => void): R {
  let result: R | undefined;
  try {
    result = job();
    return result instanceof Promise ? (result.finally(end) as R) : result;
  } finally {
    if (!(result instanceof Promise)) end();
  }
}

function cancelled(): ZpublishError {
  return new ZpublishError("cancelled", "the job was cancelled before it started");
}
