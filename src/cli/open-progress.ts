import type { OpenProgress } from "../dataset/dataset-registry.js";
import type { Log } from "../observe/log.js";

/** Reporter of the progress of opening datasets. */
export interface ProgressReporter {
  update(progress: OpenProgress): void;
  /** Removes the live line. */
  finish(): void;
}

/** Time until a live line is shown. */
const QUIET_MS = 400;
const LIVE_INTERVAL_MS = 100;
const LOG_INTERVAL_MS = 3_000;

/**
 * Creates a reporter that updates a live line on a terminal, or else logs a line every few seconds.
 * @param now Milliseconds of any clock.
 */
export function createProgressReporter(
  stream: { readonly isTTY?: boolean; write(text: string): unknown },
  log: Pick<Log, "info">,
  now: () => number = () => performance.now(),
): ProgressReporter {
  const isLive = stream.isTTY === true;
  const interval = isLive ? LIVE_INTERVAL_MS : LOG_INTERVAL_MS;
  let next = now() + (isLive ? QUIET_MS : LOG_INTERVAL_MS);
  let isShown = false;
  return {
    update(progress) {
      if (now() < next) return;
      next = now() + interval;
      if (!isLive) log.info(progress, "opening datasets");
      else {
        isShown = true;
        // The cursor returns to the beginning, so that a line of the log overwrites this one.
        stream.write(`\x1b[K${describeProgress(progress)}\r`);
      }
    },
    finish() {
      if (isShown) stream.write("\x1b[K");
      isShown = false;
    },
  };
}

function describeProgress({ opened, total, id, arrays }: OpenProgress): string {
  const shortId = id.length > 30 ? `${id.slice(0, 29)}…` : id;
  return `opening datasets: ${opened} of ${total} open, ${shortId}: ${arrays} arrays read`;
}
