import type { Log } from "../observe/log.js";
import { withoutTicket } from "./access/authorize.js";
import type { Route } from "./router.js";

/** A request that a log line is about. */
export interface NamedRequest {
  readonly id: string;
  readonly methodLabel: string;
  readonly head: { readonly path: string };
}

/** Returns the fields of every log line about a request. The path is without query and ticket. */
export function requestFields({ id, methodLabel, head }: NamedRequest): Readonly<Record<string, string>> {
  return { id, method: methodLabel, path: withoutTicket(head.path) };
}

/** Notes events that may come by the thousand. */
export type NoteEvent = (message: string, log: () => void) => void;

/**
 * Creates a log of such events: at most `maxLines` in a period are logged. Of further ones, only the number is, when the period ends.
 * @param logRest Logs the number of further events, and the message of the last one.
 */
export function createBurstLog(
  maxLines: number,
  periodMs: number,
  logRest: (count: number, last: string) => void,
): NoteEvent {
  let lines = 0;
  let further = 0;
  let last = "";
  let timer: NodeJS.Timeout | undefined;

  function endPeriod(): void {
    timer = undefined;
    if (further > 0) logRest(further, last);
    lines = 0;
    further = 0;
  }

  return (message, log) => {
    if (timer === undefined) timer = setTimeout(endPeriod, periodMs).unref();
    lines += 1;
    if (lines <= maxLines) log();
    else {
      further += 1;
      last = message;
    }
  };
}

/** Logs of requests that are answered with an error. */
export interface RequestLogs {
  /** Requests that failed, with their stacks: a client that asks for a broken dataset again and again must not fill the disk. */
  readonly failed: NoteEvent;
  /** Requests that were rejected under load. */
  readonly rejected: NoteEvent;
  /** Number of rejected requests by the priority of their routes. */
  readonly rejections: Record<Route["priority"], number>;
}

/** Creates logs without entries. */
export function createRequestLogs(log: Log): RequestLogs {
  return {
    failed: createBurstLog(100, 10_000, (failed, last) =>
      log.error({ failed }, `further requests failed, the last one: ${last}`),
    ),
    rejected: createBurstLog(1, 1_000, (rejected, reason) =>
      log.warn({ code: "overloaded", rejected }, `requests rejected: ${reason}`),
    ),
    rejections: { page: 0, chunk: 0 },
  };
}
