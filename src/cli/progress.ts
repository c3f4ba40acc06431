import { formatByteSize } from "../config/value-schemas.js";
import type { OpenProgress } from "../dataset/dataset-registry.js";
import type { Log } from "../observe/log.js";
import { doneOf, type WarmCounts, type WarmResult } from "../warm/warm-chunks.js";

/** Stream that a live line is drawn on. */
interface LineStream {
  readonly isTTY?: boolean;
  /** Characters per line; 0 or undefined if that is not known. */
  readonly columns?: number;
  write(text: string): unknown;
}

/** Milliseconds between two lines, on a terminal and in the log. */
interface Intervals {
  readonly live: number;
  readonly log: number;
  /** Time until the first live line. Default: `live`. */
  readonly quiet?: number;
}

/** Creates a line that changes on a terminal; elsewhere, lines go to the log. @param now Milliseconds of any clock. */
function createLine(stream: LineStream, { live, log, quiet = live }: Intervals, now: () => number) {
  const isLive = stream.isTTY === true;
  let next = now() + (isLive ? quiet : log);
  let isShown = false;
  return {
    isLive,
    /** Tells whether it is time for a line; the next one is due after an interval. */
    isDue(isLast = false): boolean {
      if (now() < next && !(isLive && isLast)) return false;
      next = now() + (isLive ? live : log);
      return true;
    },
    show(text: string): void {
      isShown = true;
      // The cursor returns to the beginning, so that a line of the log overwrites this one.
      stream.write(`\x1b[K${text}\r`);
    },
    clear(): void {
      if (isShown) stream.write("\x1b[K");
      isShown = false;
    },
  };
}

/** Reporter of progress. */
interface ProgressReporter<T> {
  update(progress: T): void;
  /** Removes the live line, so that other lines can be written. */
  clear(): void;
}

/** Creates a reporter of opening datasets. It updates a live line on a terminal, or else logs a line every few seconds. */
export function createOpenReporter(
  stream: LineStream,
  log: Pick<Log, "info">,
): ProgressReporter<OpenProgress> {
  const line = createLine(stream, { live: 100, log: 3_000, quiet: 400 }, () => performance.now());
  return {
    update(progress) {
      if (!line.isDue()) return;
      if (line.isLive) line.show(describeOpening(progress));
      else log.info(progress, "opening datasets");
    },
    clear: line.clear,
  };
}

function describeOpening({ opened, total, id, arrays }: OpenProgress): string {
  const shortId = id.length > 30 ? `${id.slice(0, 29)}…` : id;
  return `opening datasets: ${opened} of ${total} open, ${shortId}: ${arrays} arrays read`;
}

/** Time over which speed is measured: chunks that are cached already go by much faster than others. */
const WINDOW_MS = 15_000;
const DEFAULT_COLUMNS = 80;

/**
 * Creates a reporter of warming. It updates a live line on a terminal, or else logs a line every few seconds.
 * @param now Milliseconds of any clock.
 */
export function createWarmReporter(
  stream: LineStream,
  log: Pick<Log, "info">,
  now: () => number = () => performance.now(),
): ProgressReporter<WarmCounts> {
  const line = createLine(stream, { live: 200, log: 5_000 }, now);
  const past = [{ at: now(), done: 0, bytes: 0 }];
  return {
    update(counts) {
      const at = now();
      const done = doneOf(counts);
      if (!line.isDue(done === counts.total)) return;
      past.push({ at, done, bytes: counts.madeBytes });
      while (past.length > 2 && at - past[1]!.at >= WINDOW_MS) past.shift();
      const since = past[0]!;
      const seconds = Math.max(at - since.at, 1) / 1_000;
      const bytesPerSecond = (counts.madeBytes - since.bytes) / seconds;
      const secondsLeft =
        done === since.done ? undefined : ((counts.total - done) / (done - since.done)) * seconds;
      if (line.isLive) {
        line.show(describeWarming(counts, bytesPerSecond, secondsLeft, stream.columns || DEFAULT_COLUMNS));
        return;
      }
      const left = secondsLeft === undefined ? {} : { secondsLeft: Math.ceil(secondsLeft) };
      log.info({ ...counts, done, bytesPerSecond: Math.round(bytesPerSecond), ...left }, "warming the cache");
    },
    clear: line.clear,
  };
}

/** Writes the result of a run in a few lines. @param removed Chunks that were removed from the cache to make room. */
export function describeResult(result: WarmResult, seconds: number, removed: number): string {
  const { total, made, cached, absent, stored, failed, madeBytes } = result;
  const speed = formatByteSize(Math.round(madeBytes / Math.max(seconds, 0.001)));
  const lines = [
    `${number(doneOf(result))} of ${number(total)} chunks in ${durationText(seconds)}:`,
    `  made              ${number(made)} (${formatByteSize(madeBytes)}, ${speed}/s)`,
    `  already there     ${number(cached)}`,
    `  absent            ${number(absent)}`,
    `  served as stored  ${number(stored)}${stored > 0 ? " (not cached)" : ""}`,
    `  failed            ${number(failed)}`,
    ...(removed > 0 ? [`  removed           ${number(removed)} older chunks, to make room`] : []),
  ];
  return `${lines.join("\n")}\n`;
}

/** Writes what is done, no longer than a line. */
function describeWarming(
  counts: WarmCounts,
  bytesPerSecond: number,
  secondsLeft: number | undefined,
  columns: number,
): string {
  const { total, failed } = counts;
  const done = doneOf(counts);
  const parts = [
    `${total === 0 ? 100 : Math.floor((done / total) * 100)} %`,
    `${number(done)} of ${number(total)} chunks`,
    ...(failed > 0 ? [`${number(failed)} failed`] : []),
    `${formatByteSize(Math.round(bytesPerSecond))}/s`,
    ...(secondsLeft === undefined ? [] : [`${durationText(secondsLeft)} left`]),
  ];
  return parts.join("  ").slice(0, columns - 1);
}

function number(value: number): string {
  return value.toLocaleString("en-US");
}

/** Writes a time as people say it: `4 s`, `12 min`, `3 h 20 min`. */
export function durationText(seconds: number): string {
  if (seconds < 60) return `${seconds < 9.5 ? Number(seconds.toFixed(1)) : Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  return `${number(Math.floor(minutes / 60))} h ${minutes % 60} min`;
}
