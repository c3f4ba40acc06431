/** Pauses before a process that ended is started again. */
export interface RestartPolicy {
  /**
   * Counts an end and returns the pause before the next start: 0 at first, then longer each time.
   * @throws Error If there were too many ends within a minute.
   */
  delayMs(): number;
}

const PERIOD_MS = 60_000;
const MAX_PER_PERIOD = 10;

/**
 * Creates the policy of one process. Each has its own, so that a fault that ends all of them once does not end the program.
 * @param now Milliseconds of a monotonic clock; another one only in tests.
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

/** Returns the pause before the next attempt. @param failures Failures in a row, from 1. */
export function retryDelayMs(failures: number): number {
  return Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (failures - 1));
}
