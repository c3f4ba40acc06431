import { formatByteSize } from "../config/value-schemas.js";
import type { Log } from "../observe/log.js";
import { doneOf, type WarmCounts, type WarmResult } from "../warm/warm-chunks.js";

/** Reporter of the progress of warming. */
export interface WarmReporter {
  update(counts: WarmCounts): void;
  /** Removes the bar, so that other lines can be written. */
  clear(): void;
}

/** Stream that the bar is drawn on. */
export interface BarStream {
  readonly isTTY?: boolean;
  /** Characters per line; 0 or undefined if that is not known. */
  readonly columns?: number;
  write(text: string): unknown;
}

const LIVE_INTERVAL_MS = 200;
const LOG_INTERVAL_MS = 5_000;
/** Time over which speed is measured: chunks that are cached already go by much faster than others. */
const WINDOW_MS = 15_000;
const MAX_BAR_LENGTH = 20;
const DEFAULT_COLUMNS = 80;

/**
 * Creates a reporter that draws a bar on a terminal, or else logs a line every few seconds.
 * @param now Milliseconds of any clock.
 */
export function createWarmReporter(
  stream: BarStream,
  log: Pick<Log, "info">,
  now: () => number = () => performance.now(),
): WarmReporter {
  const isLive = stream.isTTY === true;
  const interval = isLive ? LIVE_INTERVAL_MS : LOG_INTERVAL_MS;
  const past = [{ at: now(), done: 0, bytes: 0 }];
  let next = past[0]!.at + interval;
  let isShown = false;

  return {
    update(counts) {
      const at = now();
      const done = doneOf(counts);
      if (at < next && !(isLive && done === counts.total)) return;
      next = at + interval;
      past.push({ at, done, bytes: counts.madeBytes });
      while (past.length > 2 && at - past[1]!.at >= WINDOW_MS) past.shift();
      const since = past[0]!;
      const seconds = Math.max(at - since.at, 1) / 1_000;
      const bytesPerSecond = (counts.madeBytes - since.bytes) / seconds;
      const secondsLeft =
        done === since.done ? undefined : ((counts.total - done) / (done - since.done)) * seconds;
      if (isLive) {
        isShown = true;
        const line = drawBar(counts, bytesPerSecond, secondsLeft, stream.columns || DEFAULT_COLUMNS);
        // The cursor returns to the beginning, so that a line of the log overwrites this one.
        stream.write(`\x1b[K${line}\r`);
        return;
      }
      const left = secondsLeft === undefined ? {} : { secondsLeft: Math.ceil(secondsLeft) };
      log.info({ ...counts, done, bytesPerSecond: Math.round(bytesPerSecond), ...left }, "warming the cache");
    },
    clear() {
      if (isShown) stream.write("\x1b[K");
      isShown = false;
    },
  };
}

/** Writes the result of a run in a few lines. @param removed Chunks that were removed from the cache to make room. */
export function describeResult(result: WarmResult, seconds: number, removed: number): string {
  const { total, made, cached, absent, stored, failed, madeBytes } = result;
  const speed = formatByteSize(Math.round(madeBytes / Math.max(seconds, 0.001)));
  const lines = [
    `${number(doneOf(result))} of ${number(total)} chunks in ${duration(seconds)}:`,
    `  made              ${number(made)} (${formatByteSize(madeBytes)}, ${speed}/s)`,
    `  already there     ${number(cached)}`,
    `  absent            ${number(absent)}`,
    `  served as stored  ${number(stored)}${stored > 0 ? " (not cached)" : ""}`,
    `  failed            ${number(failed)}`,
    ...(removed > 0 ? [`  removed           ${number(removed)} older chunks, to make room`] : []),
  ];
  return `${lines.join("\n")}\n`;
}

/** Draws the bar as long as the text leaves room for it, and both no longer than a line. */
function drawBar(
  counts: WarmCounts,
  bytesPerSecond: number,
  secondsLeft: number | undefined,
  columns: number,
): string {
  const { total, failed } = counts;
  const done = doneOf(counts);
  const share = total === 0 ? 1 : done / total;
  const text = [
    `${Math.floor(share * 100)} %`,
    `${number(done)} of ${number(total)} chunks`,
    ...(failed > 0 ? [`${number(failed)} failed`] : []),
    `${formatByteSize(Math.round(bytesPerSecond))}/s`,
    ...(secondsLeft === undefined ? [] : [`${duration(secondsLeft)} left`]),
  ].join("  ");
  const length = Math.min(MAX_BAR_LENGTH, Math.max(0, columns - text.length - 2));
  const full = Math.floor(share * length);
  return `${"█".repeat(full)}${"░".repeat(length - full)} ${text}`.slice(0, columns - 1);
}

function number(value: number): string {
  return value.toLocaleString("en-US");
}

/** Writes a time as people say it: `4 s`, `12 min`, `3 h 20 min`. */
function duration(seconds: number): string {
  if (seconds < 60) return `${seconds < 9.5 ? Number(seconds.toFixed(1)) : Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  return `${number(Math.floor(minutes / 60))} h ${minutes % 60} min`;
}
