/**
 * A task that yields when the event loop may run, and returns its result. Being a generator, it serves callers that can wait and
 * callers that cannot.
 */
export type CooperativeTask<T> = Generator<undefined, T, undefined>;

/** Milliseconds for which a task occupies the event loop at a time, and delays requests. The interruptions cost 0.5 %. */
const SLICE_MS = 4;

/** Runs the whole task now. @throws what the task throws */
export function runNow<T>(steps: CooperativeTask<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** Runs a task in slices of a few milliseconds, between which the event loop runs. @throws what the task throws */
export async function runCooperatively<T>(steps: CooperativeTask<T>): Promise<T> {
  for (;;) {
    const done = runSlice(steps);
    if (done !== undefined) return done.value;
    await yieldToLoop();
  }
}

/**
 * Starts a task now, and continues in slices if one is not enough.
 * @returns The result itself if one slice was enough.
 * @throws what the task throws in the first slice; later, the promise rejects.
 */
export function startCooperatively<T>(steps: CooperativeTask<T>): T | Promise<T> {
  const done = runSlice(steps);
  return done === undefined ? yieldToLoop().then(() => runCooperatively(steps)) : done.value;
}

/** Time in an iteration of the event loop, for code that is no {@link CooperativeTask}. */
interface Slice {
  /** Tells if the code should wait for the next slice. */
  isOver(): boolean;
  /** Waits for the next slice. All callers share it. */
  next(): Promise<void>;
}

/** Creates a slice that begins now. */
export function createSlice(): Slice {
  let end = performance.now() + SLICE_MS;
  let next: Promise<void> | undefined;
  return {
    isOver: () => performance.now() >= end,
    next() {
      next ??= yieldToLoop().then(() => {
        next = undefined;
        end = performance.now() + SLICE_MS;
      });
      return next;
    },
  };
}

/** Runs a task for one slice; undefined if that was not enough. */
function runSlice<T>(steps: CooperativeTask<T>): { readonly value: T } | undefined {
  const end = performance.now() + SLICE_MS;
  do {
    const step = steps.next();
    if (step.done) return step;
  } while (performance.now() < end);
  return undefined;
}

const waiting: (() => void)[] = [];

/** Waits for an iteration of the loop. One task resumes per iteration, in order, because the slices of several would add up. */
function yieldToLoop(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setImmediate(resumeFirst);
  });
}

function resumeFirst(): void {
  const resume = waiting.shift();
  if (waiting.length > 0) setImmediate(resumeFirst);
  resume?.();
}
