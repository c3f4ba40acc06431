import { getEnvironmentData, isMainThread, setEnvironmentData } from "node:worker_threads";

/** What became of calls to file systems, in all threads of this process. */
export interface SourceStats {
  /** Calls that were given up because nothing answered in time, or that were not begun because others still wait. */
  readonly timeouts: number;
  /** Calls under way that were given up: each keeps one of libuv's threads until the system answers. */
  readonly hanging: number;
}

/** Threads that are told apart; a worker that comes much later uses the place of one that is gone. */
const ROWS = 256;
const NAME = "zpublish:file-calls";

/** For each thread how many calls it has begun at file systems of other machines, and how many of all hang; then a sum. */
const shared = sharedCounts();
const HANGING = ROWS;
const TIMEOUTS = 2 * ROWS;

/** Threads started later find it under {@link NAME}: libuv's threads are shared by all of them, so the counts are, too. */
function sharedCounts(): Int32Array<SharedArrayBuffer> {
  const given = isMainThread ? undefined : getEnvironmentData(NAME);
  if (given instanceof SharedArrayBuffer) return new Int32Array(given);
  const buffer = new SharedArrayBuffer(4 * (2 * ROWS + 1));
  setEnvironmentData(NAME, buffer);
  // A worker that is ended runs nothing more; that it has ended means that none of its calls is under way.
  process.on("worker", (worker) => {
    const row = worker.threadId % ROWS;
    worker.once("exit", () => {
      Atomics.store(counts, row, 0);
      Atomics.store(counts, HANGING + row, 0);
    });
  });
  const counts = new Int32Array(buffer);
  return counts;
}

function sumFrom(begin: number): number {
  let sum = 0;
  for (let row = 0; row < ROWS; row++) sum += Atomics.load(shared, begin + row);
  return sum;
}

/** The counts of one thread, and what all threads have together. */
export interface CallCounts {
  /** Calls under way at file systems that are not this machine's own, of all threads. */
  foreign(): number;
  /** Of those under way, at whatever file system, how many were given up. */
  hanging(): number;
  begin(): void;
  end(): void;
  hang(): void;
  unhang(): void;
  timedOut(): void;
}

/** @param threadId Of the thread that counts. */
export function callCountsOf(threadId: number): CallCounts {
  const row = threadId % ROWS;
  return {
    foreign: () => sumFrom(0),
    hanging: () => sumFrom(HANGING),
    begin: () => void Atomics.add(shared, row, 1),
    end: () => void Atomics.sub(shared, row, 1),
    hang: () => void Atomics.add(shared, HANGING + row, 1),
    unhang: () => void Atomics.sub(shared, HANGING + row, 1),
    timedOut: () => void Atomics.add(shared, TIMEOUTS, 1),
  };
}

/** What metrics read. */
export const sourceStats: SourceStats = {
  get timeouts() {
    return Atomics.load(shared, TIMEOUTS);
  },
  get hanging() {
    return sumFrom(HANGING);
  },
};
