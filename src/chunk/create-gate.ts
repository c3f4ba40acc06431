import { ZpublishError } from "../errors.js";

/** Lets a bounded number of jobs run at a time; the rest wait in order. */
export interface Gate {
  /** @throws ZpublishError `overloaded` where too many wait already; whatever the job throws. */
  run<T>(job: () => Promise<T>): Promise<T>;
}

/**
 * @param maxRunning Jobs at a time.
 * @param maxWaiting Jobs that may wait for their turn.
 */
export function createGate(maxRunning: number, maxWaiting: number): Gate {
  let running = 0;
  const waiting: (() => void)[] = [];
  return {
    async run(job) {
      if (running >= maxRunning) {
        if (waiting.length >= maxWaiting) {
          throw new ZpublishError(
            "overloaded",
            `expected at most ${maxWaiting} chunk reads to wait, received one more`,
          );
        }
        // The one that finishes hands its place over, so `running` stays as it is.
        await new Promise<void>((resolve) => waiting.push(resolve));
      } else running++;
      try {
        return await job();
      } finally {
        const next = waiting.shift();
        if (next === undefined) running--;
        else next();
      }
    },
  };
}
