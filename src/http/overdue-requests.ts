import { ZpublishError } from "../errors.js";
import type { LinkedList } from "../linked-list.js";
import type { Exchange } from "./exchange.js";
import { sendError } from "./send-error.js";

/** How often requests are looked at, at most. */
const LOOK_MS = 1_000;

/** Gives up requests whose answer does not begin in time. */
export interface OverdueRequests {
  /** There is a request that waits for its answer: looks after it from now on. */
  begin(): void;
  /** Requests given up so far. */
  readonly count: number;
}

/**
 * One timer for all requests, and none while nobody waits: a request that is answered at once costs nothing here.
 * @param open Requests whose answer is not sent yet, in the order in which they came.
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
      // From now on the request is over: what is made for it is not wanted any more, and is given up.
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
