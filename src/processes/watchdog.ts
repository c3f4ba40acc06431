export interface WatchdogOptions {
  /** Resolves when the process has answered; never, where it does not. */
  readonly ping: () => Promise<void>;
  /** Called once. */
  readonly onHang: () => void;
  /** Between pings. Default one second. */
  readonly everyMs?: number;
  /** Pings without an answer after which a process hangs. Default 30. */
  readonly maxMissed?: number;
}

export const WATCH_EVERY_MS = 1_000;
export const WATCH_MAX_MISSED = 30;

/**
 * Finds out that a process's event loop no longer turns. Counts beats of its own rather than time: where the whole
 * machine, or all processes, stood still for a while, nobody hangs.
 * @returns Stops it.
 */
export function startWatchdog(options: WatchdogOptions): () => void {
  const { ping, onHang, everyMs = WATCH_EVERY_MS, maxMissed = WATCH_MAX_MISSED } = options;
  let isAsked = false;
  let missed = 0;
  const timer = setInterval(() => {
    if (isAsked) {
      if (++missed < maxMissed) return;
      clearInterval(timer);
      onHang();
      return;
    }
    isAsked = true;
    ping().then(
      () => {
        isAsked = false;
        missed = 0;
      },
      () => clearInterval(timer),
    );
  }, everyMs).unref();
  return () => clearInterval(timer);
}
