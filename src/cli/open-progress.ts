import type { Log } from "../observe/log.js";

/** How far opening has come; see `startServer`. */
export interface OpenProgress {
  readonly opened: number;
  readonly total: number;
  /** The dataset that moved. */
  readonly id: string;
  /** Arrays of it read so far. */
  readonly arrays: number;
}

/** Tells people how far the opening of datasets has come. */
export interface ProgressReporter {
  update(progress: OpenProgress): void;
  /** Takes the live line away. */
  finish(): void;
}

/** A start quicker than this needs no progress. */
const QUIET_MS = 400;
const LIVE_INTERVAL_MS = 100;
const LOG_INTERVAL_MS = 3_000;

/**
 * A live line where somebody looks at a terminal, else a log line every few seconds.
 * @param now milliseconds of any clock.
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
        // The cursor goes back to the beginning, so that a line of the log in between writes over this one.
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
