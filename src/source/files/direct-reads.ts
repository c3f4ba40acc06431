import { openSync, readSync } from "node:fs";
import { createHistogram, type Histogram } from "../../observe/histogram.js";

/**
 * Milliseconds from which on a read by the server's thread is slow; 590 KB from memory take a tenth of one. Slow reads of a
 * store may hold the thread for one part in {@link PAUSE_FACTOR} of the time, and {@link FREE_MS} before that; then its reads
 * go by libuv's threads for a while.
 */
const SLOW_MS = 4;
const PAUSE_FACTOR = 200;
const FREE_MS = 50;

/** Longer reads go by libuv's threads in any case: these take a millisecond and a half from memory. */
export const MAX_DIRECT_BYTES = 8 * 1024 * 1024;

/** Seconds that reads of stored chunks took in this thread, by their way. */
export const sourceReadSeconds: Readonly<Record<"direct" | "threads", Histogram>> = {
  direct: createHistogram(),
  threads: createHistogram(),
};

/** Whether a store is quick enough for the server's thread to read from it by itself. */
export interface DirectReads {
  readonly isQuick: boolean;
  /**
   * Runs a read, or a look at a file, by this thread and notes whether it was slow.
   * @param seconds Receives how long it took.
   */
  run<T>(read: () => T, seconds?: Histogram): T;
}

const stores = new Map<string, { pausedUntilMs: number }>();

/** @param store Absolute real path of the store: all readers of one share what is known of it. */
export function directReadsOf(store: string): DirectReads {
  const state = stores.get(store) ?? { pausedUntilMs: Number.NEGATIVE_INFINITY };
  stores.set(store, state);
  return {
    get isQuick() {
      return performance.now() >= state.pausedUntilMs;
    },
    run(read, seconds) {
      const waitedMs = processorWaitMs();
      const beganMs = performance.now();
      try {
        return read();
      } finally {
        const endMs = performance.now();
        seconds?.observe((endMs - beganMs) / 1_000);
        if (endMs - beganMs > SLOW_MS) {
          // That other threads had the processor says nothing of the disk.
          const slowMs = endMs - beganMs - (processorWaitMs() - waitedMs);
          const freeFromMs = endMs - PAUSE_FACTOR * FREE_MS;
          if (slowMs > SLOW_MS)
            state.pausedUntilMs = Math.max(state.pausedUntilMs, freeFromMs) + PAUSE_FACTOR * slowMs;
        }
      }
    },
  };
}

let schedulerFile: number | undefined;
const text = Buffer.alloc(64);
const SPACE = 0x20;
const ZERO = 0x30;

/** Milliseconds that this thread has been ready to run and waited for a processor; 0 if the system does not tell. */
function processorWaitMs(): number {
  try {
    schedulerFile ??= openSync("/proc/thread-self/schedstat", "r");
    readSync(schedulerFile, text, 0, text.length, 0);
  } catch {
    return 0;
  }
  // The second of three numbers (kernel documentation, "Scheduler Statistics").
  let nanoseconds = 0;
  for (let at = text.indexOf(SPACE) + 1; at < text.length && text[at] !== SPACE; at++)
    nanoseconds = nanoseconds * 10 + (text[at] as number) - ZERO;
  return nanoseconds / 1e6;
}
