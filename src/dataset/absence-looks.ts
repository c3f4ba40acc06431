import { ZpublishError } from "../errors.js";
import { settlesWithin } from "../settles-within.js";

/** What can be looked at, and how. */
export interface AbsenceLookTarget {
  readonly id: string;
  /** Looks for new metadata; one that is under way is joined. Never throws. */
  look(): Promise<void>;
  isLooking(): boolean;
  /** Whether the last look failed. */
  hasFailed(): boolean;
}

/** Looks at a source before it is said that something is not there. */
export interface AbsenceLooks {
  /**
   * Resolves after a look that was begun after this call: one for all who wait for it.
   * @throws ZpublishError `source-unreadable` where the source cannot be looked at: nobody knows then what is there.
   */
  look(): Promise<void>;
}

/** How long anybody waits for a look, and for others before it. */
const LOOK_TIMEOUT_MS = 30_000;
/** Of that, between two looks at most. */
const MAX_PAUSE_MS = 5_000;
/** Time that looks may take in a row before the next one has to wait. */
const MAX_CREDIT_MS = 500;
/** Share of all time that looks may take. */
const LOOK_SHARE = 0.2;
/** What a look costs beside the time it takes. */
const COST_MS = 1;

/**
 * Looks of one dataset. However many ask, there is one at a time, and all of them together take at most a fifth of the
 * time: those who ask for what is not there wait for each other, not others for them.
 */
export function createAbsenceLooks(target: AbsenceLookTarget): AbsenceLooks {
  let current: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  let credit = MAX_CREDIT_MS;
  let countedAt = performance.now();

  function pay(ms: number): void {
    const now = performance.now();
    credit = Math.min(MAX_CREDIT_MS, credit + (now - countedAt) * LOOK_SHARE) - ms;
    countedAt = now;
  }

  async function lookNow(): Promise<void> {
    pay(0);
    const pause = Math.min(-credit / LOOK_SHARE, MAX_PAUSE_MS);
    if (pause > 0) await new Promise((resolve) => setTimeout(resolve, pause));
    // One that is under way may have begun before what is asked for was written.
    if (target.isLooking()) await target.look();
    const began = performance.now();
    await target.look();
    pay(performance.now() - began + COST_MS);
  }

  function begin(): Promise<void> {
    current = lookNow().finally(() => {
      current = undefined;
    });
    return current;
  }

  return {
    async look() {
      next ??= (current ?? Promise.resolve()).then(() => {
        next = undefined;
        return begin();
      });
      const isDone = await settlesWithin(next, LOOK_TIMEOUT_MS);
      if (isDone && !target.hasFailed()) return;
      const problem = isDone ? "cannot be read" : `expected an answer within ${LOOK_TIMEOUT_MS} ms`;
      throw new ZpublishError(
        "source-unreadable",
        `dataset '${target.id}': its source was looked at for new metadata: ${problem}`,
      );
    },
  };
}
