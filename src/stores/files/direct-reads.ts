import { openSync, readSync } from "node:fs";
import { createHistogram, type Histogram } from "../../observe/metrics.js";

/** Longer reads by the server's thread are slow; 590 KB from memory take a tenth of a millisecond. */
const SLOW_MS = 4;
/** Time for which libuv's threads read a store after a slow read, in multiples of the time that the read took. */
const PAUSE_FACTOR = 200;
/** Time that slow reads of a store may take before its first pause. */
const FREE_MS = 50;

/** Longer reads are always made by libuv's threads; one of this length takes 1.5 ms from memory. */
export const MAX_DIRECT_BYTES = 8 * 1024 * 1024;

/** Seconds per read of a stored chunk: by this thread itself, and by libuv's threads for it. */
export const sourceReadSeconds: Readonly<Record<"direct" | "threads", Histogram>> = {
  direct: createHistogram(),
  threads: createHistogram(),
};

/** Reads of one store by this thread itself. */
export interface DirectReads {
  /** True if the store is quick enough at present. */
  readonly isQuick: boolean;
  /**
   * Runs a read or a check of a file, and notes whether it was slow.
   * @param seconds Histogram that receives its duration.
   */
  run<T>(read: () => T, seconds?: Histogram): T;
}

const stores = new Map<string, { pausedUntilMs: number }>();

/** Returns the state of a store, which all its readers share. @param store Absolute real path of the store. */
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
          // Time in which other threads had the processor does not count: the disk was not slow.
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

/** Returns the milliseconds that this thread was ready to run and waited for a processor; 0 if the system does not tell. */
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
