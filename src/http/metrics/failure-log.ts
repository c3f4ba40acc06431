import type { Log } from "../../observe/log.js";

/** Time in which only so many lines are logged. */
const PERIOD_MS = 10_000;
/** Lines of one period. A line with its stack has some kilobytes. */
const MAX_LINES = 100;

/** Log of requests that failed. A client that asks for a broken dataset again and again must not fill the disk. */
export interface FailureLog {
  /** Logs a failure, with its stack among the fields. Of those beyond the bound of a period, only the number is logged, when it ends. */
  note(level: "error" | "warn", fields: object, message: string): void;
}

/** Creates a log of failures without entries. @param periodMs Default: 10 s. */
export function createFailureLog(log: Log, periodMs = PERIOD_MS): FailureLog {
  let lines = 0;
  let further = 0;
  let last = "";
  let timer: NodeJS.Timeout | undefined;

  function endPeriod(): void {
    timer = undefined;
    if (further > 0) log.error({ failed: further }, `further requests failed, the last one: ${last}`);
    lines = 0;
    further = 0;
  }

  return {
    note(level, fields, message) {
      if (timer === undefined) timer = setTimeout(endPeriod, periodMs).unref();
      if (++lines <= MAX_LINES) {
        log[level](fields, message);
        return;
      }
      further++;
      last = message;
    },
  };
}
