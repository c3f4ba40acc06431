import type { Log } from "../../observe/log.js";
import type { Route } from "../routing/route.js";

/** Shortest time between two log lines about rejected requests. */
const EVERY_MS = 1_000;

/** Counts rejected requests and logs them, at most one line a second: a flood of requests must not fill the log. */
export interface RejectionLog {
  readonly counts: Readonly<Record<Route["priority"], number>>;
  /** Counts a rejected request. @param reason Text for the log. @param priority Priority of its route. */
  note(reason: string, priority: Route["priority"]): void;
}

/** Creates a log of rejections without entries. */
export function createRejectionLog(log: Log): RejectionLog {
  const counts = { page: 0, chunk: 0 };
  /** Since the last line. */
  let count = 0;
  let reason = "";
  let timer: NodeJS.Timeout | undefined;

  function tell(): void {
    timer = undefined;
    if (count === 0) return;
    log.warn({ code: "overloaded", rejected: count }, `requests rejected: ${reason}`);
    count = 0;
    timer = setTimeout(tell, EVERY_MS).unref();
  }

  return {
    counts,
    note(why, priority) {
      counts[priority] += 1;
      count += 1;
      reason = why;
      // The first at once.
      if (timer === undefined) tell();
    },
  };
}
