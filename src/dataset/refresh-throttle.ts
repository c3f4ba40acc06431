import { setTimeout as delay } from "node:timers/promises";
import { ZpublishError } from "../errors.js";
import { settlesWithin } from "../event-loop/settles-within.js";

/** A dataset whose source can be read again for new metadata, or a list of datasets. */
export interface RefreshTarget {
  /** For messages: `dataset 'x': its source`. */
  readonly name: string;
  /** Reads new metadata, or joins a refresh that is under way. Never throws. */
  refresh(): Promise<void>;
  isRefreshing(): boolean;
  /** Tells whether the last refresh failed. */
  hasFailed(): boolean;
}

/** Refreshes one dataset or list before requests are answered with 404. */
export interface RefreshThrottle {
  /**
   * Resolves after a refresh that began after this call; all requests that wait for one share it. In a pause of more than a second, it
   * resolves at once.
   * @throws ZpublishError `source-unreadable` if the source cannot be read, so that it is unknown what is there.
   */
  refresh(): Promise<void>;
}

/** Time that a request waits for a refresh. */
const REFRESH_TIMEOUT_MS = 30_000;
/** Refreshes under a flood of requests take at most a fifth of the time. */
const PAUSE_PER_REFRESH = 4;
/** Longest pause that requests wait for. */
const MAX_WAITED_PAUSE_MS = 1_000;

/**
 * Creates the throttle of one target: one refresh at a time, with a pause after each.
 * @param maxPauseMs Longest pause between two refreshes.
 */
export function createRefreshThrottle(
  target: RefreshTarget,
  maxPauseMs: number = MAX_WAITED_PAUSE_MS,
): RefreshThrottle {
  let last: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;
  let pausesUntilMs = 0;

  async function refreshAfter(former: Promise<void>): Promise<void> {
    await former;
    await delay(Math.max(0, pausesUntilMs - performance.now()), undefined, { ref: false });
    // A refresh that is under way may have begun before the thing asked for was written.
    if (target.isRefreshing()) await target.refresh();
    next = undefined;
    const beganMs = performance.now();
    await target.refresh();
    const endedMs = performance.now();
    pausesUntilMs = endedMs + Math.min(PAUSE_PER_REFRESH * (endedMs - beganMs), maxPauseMs);
  }

  return {
    async refresh() {
      const isPaused = pausesUntilMs - performance.now() > MAX_WAITED_PAUSE_MS;
      if (next === undefined && !isPaused) {
        next = refreshAfter(last);
        last = next;
      }
      const isDone = isPaused || next === undefined || (await settlesWithin(next, REFRESH_TIMEOUT_MS));
      if (isDone && !target.hasFailed()) return;
      const problem = isDone ? "cannot be read" : `expected an answer within ${REFRESH_TIMEOUT_MS} ms`;
      throw new ZpublishError(
        "source-unreadable",
        `${target.name} must be readable before an answer with 404: ${problem}`,
      );
    },
  };
}
