/** Runs async work, never more than a number of pieces at once; the rest waits in order. */
export type Bounded = <T>(work: () => Promise<T>) => Promise<T>;

/** @param limit Pieces of work at once. */
export function createBounded(limit: number): Bounded {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running >= limit) await new Promise<void>((resolve) => waiting.push(resolve));
    else running++;
    try {
      return await work();
    } finally {
      // The place goes on to the next, so that nobody overtakes.
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}
