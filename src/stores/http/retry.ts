import { setTimeout as delay } from "node:timers/promises";
import { sourceTimeoutMs } from "../file-calls.js";

/** Attempts at one request within the time limit. */
const MAX_ATTEMPTS = 5;
const FIRST_PAUSE_MS = 100;

/** A failure after which another attempt may succeed. */
export class Transient extends Error {
  /** Milliseconds that the server asks to wait; undefined if it does not say. */
  readonly retryAfterMs: number | undefined;

  constructor(problem: string, retryAfterMs?: number, cause?: unknown) {
    super(problem, { cause });
    this.retryAfterMs = retryAfterMs;
  }
}

/** Options of {@link withRetries}. */
export interface RetryOptions {
  /** Aborts when no caller waits for the result any more. */
  readonly signal: AbortSignal | undefined;
  /** Called before every further attempt. */
  readonly onRetry: () => void;
  /** Runs all attempts when it is their turn, unless the signal is aborted before. Waiting counts, too. */
  readonly inTurn: <T>(run: () => Promise<T>, signal: AbortSignal) => Promise<T>;
}

/**
 * Runs `attempt` until it does not fail with {@link Transient}, with growing pauses, within the time limit of sources
 * (`--source-timeout`).
 * @param attempt Gets a signal that aborts at the time limit, or with the signal of the options.
 * @throws the last Transient; the reason of the signal; what `attempt` throws.
 */
export async function withRetries<T>(
  attempt: (signal: AbortSignal) => Promise<T>,
  { signal, onRetry, inTurn }: RetryOptions,
): Promise<T> {
  const limitMs = sourceTimeoutMs();
  const deadlineMs = performance.now() + limitMs;
  const controller = new AbortController();
  const onAbort = () => controller.abort(signal?.reason);
  if (signal?.aborted) onAbort();
  else signal?.addEventListener("abort", onAbort, { once: true });
  const expire = () => controller.abort(new Transient(`no answer within ${limitMs / 1_000} s`));
  const timer = setTimeout(expire, limitMs);

  async function run(): Promise<T> {
    for (let count = 1; ; count++) {
      try {
        return await attempt(controller.signal);
      } catch (error) {
        if (!(error instanceof Transient) || controller.signal.aborted || count === MAX_ATTEMPTS) throw error;
        // Spread, so that requests that failed together do not come back together.
        const grown = FIRST_PAUSE_MS * 2 ** (count - 1) * (0.5 + Math.random());
        const pauseMs = Math.max(grown, error.retryAfterMs ?? 0);
        if (performance.now() + pauseMs >= deadlineMs) throw error;
        await delay(pauseMs, undefined, { signal: controller.signal }).catch(() => undefined);
        controller.signal.throwIfAborted();
        onRetry();
      }
    }
  }

  try {
    return await inTurn(run, controller.signal);
  } catch (error) {
    throw controller.signal.aborted ? controller.signal.reason : error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}

/** Parses `Retry-After`, which has seconds or a date; undefined if it has neither. @returns Milliseconds */
export function parseRetryAfter(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  const time = Date.parse(text);
  return Number.isNaN(time) ? undefined : Math.max(0, time - Date.now());
}
