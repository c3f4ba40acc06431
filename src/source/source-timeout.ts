const DEFAULT_TIMEOUT_MS = 30_000;

let timeoutMs = DEFAULT_TIMEOUT_MS;

/**
 * Settles how long this thread waits for one look at, or read from, a source. Each thread that reads is told for itself.
 * @param ms At least 1. Default 30,000.
 */
export function setSourceTimeout(ms: number): void {
  timeoutMs = ms;
}

/** See {@link setSourceTimeout}. */
export function sourceTimeoutMs(): number {
  return timeoutMs;
}
