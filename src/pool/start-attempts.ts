/** When workers may be started, where that fails: not in a loop. */
export interface StartAttempts {
  /** Of `performance.now()`: no worker is to be started before. */
  readonly notBefore: number;
  /** Whether it failed so often in a row that nobody should wait for it. */
  readonly areHopeless: boolean;
  failed(now: number): void;
  succeeded(): void;
}

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 10_000;
const HOPELESS_AFTER = 3;

/** Nothing tried yet. */
export function createStartAttempts(): StartAttempts {
  let inRow = 0;
  let notBefore = 0;
  return {
    get notBefore() {
      return notBefore;
    },
    get areHopeless() {
      return inRow >= HOPELESS_AFTER;
    },
    failed(now) {
      // Those that were started together fail together.
      if (now < notBefore) return;
      notBefore = now + Math.min(FIRST_PAUSE_MS * 2 ** inRow, MAX_PAUSE_MS);
      inRow++;
    },
    succeeded() {
      inRow = 0;
      notBefore = 0;
    },
  };
}
