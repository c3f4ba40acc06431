import type { LinkedList } from "../collections/linked-list.js";
import { ZpublishError } from "../errors.js";
import type { Exchange } from "./exchange.js";
import { sendError } from "./send-error.js";

/** Longest time between two checks. */
const LOOK_MS = 1_000;

/** Ends requests whose answer does not begin in time, with 503. */
export interface OverdueRequests {
  /** Starts the checks, if they are not running: a request waits for its answer. */
  begin(): void;
  /** Requests ended so far. */
  readonly count: number;
}

/**
 * Creates the checks. All requests share one timer, which stops when none waits: a request that is answered at once costs nothing.
 * @param open Requests whose answer is not sent yet, oldest first.
 */
export function createOverdueRequests(
  open: LinkedList<Exchange>,
  currentTimeoutMs: () => number,
): OverdueRequests {
  let timer: NodeJS.Timeout | undefined;
  let count = 0;

  function look(): void {
    const timeoutMs = currentTimeoutMs();
    const latestMs = performance.now() - timeoutMs;
    for (const exchange of open) {
      if (exchange.beganMs > latestMs) break;
      if (exchange.started) continue;
      count += 1;
      // This ends the request, and cancels the work for it.
      sendError(
        exchange,
        new ZpublishError("timed-out", `The answer did not begin within ${timeoutMs / 1_000} s`),
      );
    }
    if (open.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  return {
    begin() {
      timer ??= setInterval(look, Math.min(LOOK_MS, currentTimeoutMs())).unref();
    },
    get count() {
      return count;
    },
  };
}
