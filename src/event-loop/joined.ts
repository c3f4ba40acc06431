/** A function of which one run is under way at a time. */
export interface Joined<A extends unknown[], T> {
  (...args: A): Promise<T>;
  /** The run under way; undefined if there is none. */
  readonly running: Promise<T> | undefined;
}

/**
 * Returns a function that runs `work`, unless a run is under way: then it returns that one, whatever its arguments. When callers of a run
 * continue, it is over, so that the next call begins another one.
 */
export function joined<A extends unknown[], T>(work: (...args: A) => Promise<T>): Joined<A, T> {
  let running: Promise<T> | undefined;
  const end = () => {
    running = undefined;
  };

  function run(...args: A): Promise<T> {
    if (running === undefined) {
      running = start(work, args);
      // Registered before any continuation of a caller. `end` in a `finally` of `work` would come too early if that never awaits.
      running.then(end, end);
    }
    return running;
  }
  return withRunning(run, () => running);
}

/**
 * Returns a function that runs `work`, and once more after a run that was under way at the call. So each call is followed by a whole run,
 * and many calls by one. The promise resolves when no run is left to do.
 */
export function rerunning(work: () => Promise<void>): Joined<[], void> {
  let isAsked = false;

  async function runAll(): Promise<void> {
    try {
      while (isAsked) {
        isAsked = false;
        await work();
      }
    } finally {
      // Not in a later microtask: a call before it would not be followed by a run.
      running = undefined;
    }
  }

  let running: Promise<void> | undefined;
  function run(): Promise<void> {
    isAsked = true;
    // In a later microtask, so that `running` is set before it ends.
    running ??= Promise.resolve().then(runAll);
    return running;
  }
  return withRunning(run, () => running);
}

/**
 * Returns a function that keeps the result of the first `make` it is given: the promise while that is pending, then the value. A failure is
 * not kept. `make` is not either, since it may hold more than the result.
 */
export function memoPromise<T>(): (make: () => T | Promise<T>) => T | Promise<T> {
  let kept: { value: T | Promise<T> } | undefined;
  return (make) => {
    if (kept !== undefined) return kept.value;
    const value = make();
    const made = { value };
    kept = made;
    if (value instanceof Promise) {
      value.then(
        (settled) => {
          made.value = settled;
        },
        () => {
          kept = undefined;
        },
      );
    }
    return value;
  };
}

/** Runs jobs one after the other, in the order given; a failed job does not stop those after it. */
type OneAtATime = <T>(work: () => Promise<T>) => Promise<T>;

/** Creates a queue without jobs. */
export function createOneAtATime(): OneAtATime {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const done = last.then(work);
    last = done.catch(() => undefined);
    return done;
  };
}

function withRunning<A extends unknown[], T>(
  run: (...args: A) => Promise<T>,
  running: () => Promise<T> | undefined,
): Joined<A, T> {
  return Object.defineProperty(run, "running", { get: running }) as Joined<A, T>;
}

/** Turns a throw before the first await into a rejection. */
async function start<A extends unknown[], T>(work: (...args: A) => Promise<T>, args: A): Promise<T> {
  return work(...args);
}
