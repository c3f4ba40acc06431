import type { Log } from "../observe/log.js";
import type { Route } from "./route.js";

/** How often a line about requests that were turned away is written, at most. */
const EVERY_MS = 1_000;

/**
 * Counts requests that are turned away, and has the log say so, without a line for each: whoever asks too much must not fill
 * it, too.
 */
export interface TurnedAway {
  readonly counts: Readonly<Record<Route["weight"], number>>;
  /** @param reason What the log says of it. @param weight Of what was asked for. */
  note(reason: string, weight: Route["weight"]): void;
}

export function createTurnedAway(log: Log): TurnedAway {
  const counts = { page: 0, chunk: 0 };
  /** Since the last line. */
  let count = 0;
  let reason = "";
  let timer: NodeJS.Timeout | undefined;

  function tell(): void {
    timer = undefined;
    if (count === 0) return;
    log.warn({ code: "overloaded", turnedAway: count }, `requests turned away: ${reason}`);
    count = 0;
    timer = setTimeout(tell, EVERY_MS).unref();
  }

  return {
    counts,
    note(why, weight) {
      counts[weight] += 1;
      count += 1;
      reason = why;
      // The first at once.
      if (timer === undefined) tell();
    },
  };
}
