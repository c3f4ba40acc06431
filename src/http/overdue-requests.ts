import type { LinkedList } from "../collections/linked-list.js";
import { ZpublishError } from "../errors.js";

/** Longest time between two checks. */
const LOOK_MS = 1_000;

/** A request whose answer is not sent yet. */
export interface OpenRequest {
  /** Milliseconds since process start. */
  readonly beganMs: number;
  /** Whether part of the answer is written. */
  readonly started: boolean;
}

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
 * @param end Answers a request with an error, which cancels the work for it.
 */
export function createOverdueRequests<T extends OpenRequest>(
  open: LinkedList<T>,
  currentTimeoutMs: () => number,
  end: (request: T, error: ZpublishError) => void,
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
      end(exchange, new ZpublishError("timed-out", `The answer did not begin within ${timeoutMs / 1_000} s`));
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
