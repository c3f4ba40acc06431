/** Runs jobs one after the other, in the order given; a failed job does not stop those after it. */
export type OneAtATime = <T>(work: () => Promise<T>) => Promise<T>;

/** Creates a queue without jobs. */
export function createOneAtATime(): OneAtATime {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const done = last.then(work);
    last = done.catch(() => undefined);
    return done;
  };
}
