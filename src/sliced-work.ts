/**
 * Work that can be interrupted: yields wherever the event loop may run meanwhile, and returns its result. As a generator it
 * is one piece of code for those who can wait and those who cannot.
 */
export type Steps<T> = Generator<undefined, T, undefined>;

/** How long a piece of work keeps the event loop at a time: requests wait no longer for it, and 0.5 % is lost to turns. */
const SLICE_MS = 4;

/** Does all of it now, however long it takes. @throws what the work throws */
export function runNow<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/**
 * Does it in slices of a few milliseconds, between which the event loop runs.
 * @throws what the work throws
 */
export async function runInSlices<T>(steps: Steps<T>): Promise<T> {
  for (;;) {
    const done = runSlice(steps);
    if (done !== undefined) return done.value;
    await nextTurn();
  }
}

/**
 * Begins now; what takes longer than a slice goes on in slices.
 * @returns The result itself where the first slice was enough.
 * @throws what the work throws in the first slice; later, the promise rejects.
 */
export function beginInSlices<T>(steps: Steps<T>): T | Promise<T> {
  const done = runSlice(steps);
  return done === undefined ? nextTurn().then(() => runInSlices(steps)) : done.value;
}

/** The time that a piece of work which is no {@link Steps} has in a turn of the event loop. */
export interface Slice {
  isOver(): boolean;
  /** Waits for a turn in which there is time again; the same for all who wait. */
  next(): Promise<void>;
}

/** A slice that begins now. */
export function createSlice(): Slice {
  let end = performance.now() + SLICE_MS;
  let next: Promise<void> | undefined;
  return {
    isOver: () => performance.now() >= end,
    next() {
      next ??= nextTurn().then(() => {
        next = undefined;
        end = performance.now() + SLICE_MS;
      });
      return next;
    },
  };
}

/** Undefined where the slice was not enough. */
function runSlice<T>(steps: Steps<T>): { readonly value: T } | undefined {
  const end = performance.now() + SLICE_MS;
  do {
    const step = steps.next();
    if (step.done) return step;
  } while (performance.now() < end);
  return undefined;
}

const waiting: (() => void)[] = [];

/** One piece of work per turn of the loop, in order: the slices of several would add up to one long turn. */
function nextTurn(): Promise<void> {
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
