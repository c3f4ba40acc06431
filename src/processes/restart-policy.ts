/** How soon something that ended or failed is tried again. */
export interface RestartPolicy {
  /**
   * How long to wait before the next time: not at all, then longer and longer while it goes on.
   * @throws Error Where that was too often: something is wrong that starting anew does not help.
   */
  delayMs(): number;
}

const PERIOD_MS = 60_000;
const MAX_PER_PERIOD = 10;

/**
 * For one of the server processes: whatever ends each of them once at the same time ends none of them too often.
 * @param now Milliseconds of any clock.
 */
export function createRestartPolicy(now: () => number = () => performance.now()): RestartPolicy {
  const ends: number[] = [];
  return {
    delayMs() {
      const time = now();
      while (ends.length > 0 && time - (ends[0] as number) > PERIOD_MS) ends.shift();
      ends.push(time);
      if (ends.length > MAX_PER_PERIOD) {
        throw new Error(`a server process has ended ${ends.length} times within ${PERIOD_MS / 1000} seconds`);
      }
      return ends.length === 1 ? 0 : retryDelayMs(ends.length - 1);
    },
  };
}

const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 5_000;

/** @param failures In a row: from 1. */
export function retryDelayMs(failures: number): number {
  return Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (failures - 1));
}
