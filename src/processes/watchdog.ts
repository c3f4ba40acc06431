/** Settings of a watchdog. */
export interface WatchdogOptions {
  /** Resolves when the process has answered. */
  readonly ping: () => Promise<void>;
  /** Called once. */
  readonly onHang: () => void;
  /** Between pings. Default one second. */
  readonly everyMs?: number;
  /** Pings without an answer after which a process hangs. Default 30. */
  readonly maxMissed?: number;
}

const EVERY_MS = 1_000;
const MAX_MISSED = 30;

/**
 * Detects that the event loop of a process hangs. It counts its own ticks and not seconds, so that a suspended machine does not make all
 * processes look hung.
 * @returns A function that stops it.
 */
export function startWatchdog(options: WatchdogOptions): () => void {
  const { ping, onHang, everyMs = EVERY_MS, maxMissed = MAX_MISSED } = options;
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
