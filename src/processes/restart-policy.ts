/** How often, and how soon, processes that ended are replaced. */
export interface RestartPolicy {
  /**
   * How long to wait before the next is started: not at all, then longer and longer while they go on ending.
   * @throws Error Where too many have ended: something is wrong that starting anew does not help.
   */
  delayMs(): number;
}

const PERIOD_MS = 60_000;
const MAX_PER_PERIOD = 10;
const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 5_000;

/** @param now Milliseconds of any clock. */
export function createRestartPolicy(now: () => number = () => performance.now()): RestartPolicy {
  const ends: number[] = [];
  return {
    delayMs() {
      const time = now();
      while (ends.length > 0 && time - (ends[0] as number) > PERIOD_MS) ends.shift();
      ends.push(time);
      if (ends.length > MAX_PER_PERIOD) {
        throw new Error(
          `server processes have ended ${ends.length} times within ${PERIOD_MS / 1000} seconds`,
        );
      }
      return ends.length === 1 ? 0 : Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (ends.length - 2));
    },
  };
}
