import type { Log } from "../observe/log.js";

/** How often a line about requests that were turned away is written, at most. */
const EVERY_MS = 1_000;

/** Has the log say that requests are turned away, without a line for each: whoever asks too much must not fill it, too. */
export interface TurnedAway {
  /** @param reason What the log says of it. */
  note(reason: string): void;
}

export function createTurnedAway(log: Log): TurnedAway {
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
    note(why) {
      count += 1;
      reason = why;
      // The first at once.
      if (timer === undefined) tell();
    },
  };
}
