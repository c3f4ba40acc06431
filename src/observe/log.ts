import { isatty } from "node:tty";
import { type DestinationStream, type Logger, pino } from "pino";
import { messageOf } from "../errors.js";

/** Structured log on standard error; standard output is for the line with the URL of the server. */
export type Log = Logger;

/** Levels of the log, from the one with the fewest lines. */
export const LOG_LEVELS = ["silent", "fatal", "error", "warn", "info", "debug", "trace"] as const;
/** One of {@link LOG_LEVELS}. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Counts of all logs of this process. */
export const logStats = { dropped: 0 };

const STANDARD_ERROR = 2;
/** Bytes of lines that wait for a slow reader; further lines are dropped. */
const MAX_WAITING_BYTES = 2 ** 20;
/**
 * Bytes that a pipe takes whole or not at all (POSIX: at least 512; Linux: 4,096). Several processes write into one pipe, and no
 * line up to that length may be torn.
 */
const PIPE_BUF = 4_096;
const RETRY_MS = 50;
/** Time that a slow reader has to take the last lines when the process exits. */
const MAX_EXIT_WAIT_MS = 1_000;
const EXIT_RETRY_MS = 10;

/** One for all logs of the process. */
let destination: DestinationStream | undefined;

/** Creates a log that writes lines to standard error: readable ones on a terminal, else JSON. It never waits for the reader, except when the process exits. */
export function createLog(level: LogLevel): Log {
  destination ??= openDestination();
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination);
}

/**
 * Opens standard error. Writes are synchronous, and fail if the pipe is full: asynchronous ones of `PIPE_BUF` bytes, one in each
 * iteration of the event loop, dropped 74 % of a busy access log. `flushSync` is hidden from pino and never called: it does not return
 * if the disk is full or the reader has gone.
 */
function openDestination(): DestinationStream {
  // Node.js makes a pipe non-blocking when it opens its own stream for it; there is no call for that.
  void process.stderr;
  const stream = pino.destination({
    dest: STANDARD_ERROR,
    sync: true,
    minLength: PIPE_BUF - 1,
    maxWrite: PIPE_BUF,
    maxLength: MAX_WAITING_BYTES,
    retryEAGAIN: () => false,
  });
  let isScheduled = false;
  let isFull = false;
  let retry: NodeJS.Timeout | undefined;
  let reported = 0;

  const isTerminal = isatty(STANDARD_ERROR);
  const isDumb = process.env.TERM === "dumb";
  const hasColour = !process.env.NO_COLOR && !isDumb;
  // A line that shows progress may be there.
  const begin = isDumb ? "" : "\x1b[K";

  function write(line: string): void {
    stream.write(isTerminal ? begin + readableLine(line, hasColour) : line);
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(flush);
  }

  function flush(): void {
    const wasFull = isFull;
    isScheduled = false;
    isFull = false;
    stream.flush();
    // After a failed write, the first one leaves up to `minLength` bytes.
    if (wasFull) stream.flush();
    clearTimeout(retry);
    if (isFull) retry = setTimeout(flush, RETRY_MS).unref();
  }

  function reportDropped(): void {
    const dropped = logStats.dropped - reported;
    if (dropped === 0) return;
    reported += dropped;
    write(droppedLine(dropped));
  }

  stream.on("drain", reportDropped);
  stream.on("drop", () => {
    logStats.dropped += 1;
  });
  stream.on("error", ({ code }: NodeJS.ErrnoException) => {
    isFull = code === "EAGAIN";
  });
  process.on("exit", () => {
    const endMs = performance.now() + MAX_EXIT_WAIT_MS;
    const never = new Int32Array(new SharedArrayBuffer(4));
    const flushAll = () => {
      for (flush(); isFull && performance.now() < endMs; flush()) Atomics.wait(never, 0, 0, EXIT_RETRY_MS);
    };
    flushAll();
    reportDropped();
    flushAll();
  });
  return { write };
}

/** Levels by their numbers, each with the parameter of its colour (ECMA-48). */
const LEVELS: Readonly<Record<number, readonly [name: string, colour: number]>> = {
  10: ["trace", 2],
  20: ["debug", 2],
  30: ["info", 32],
  40: ["warn", 33],
  50: ["error", 31],
  60: ["fatal", 31],
};

/**
 * Writes a JSON line of the log for people: `12:34:56 warn  dataset skipped  dataset=air reason="it does not exist"`. Control
 * characters are escaped: a name could move the cursor.
 */
export function readableLine(line: string, hasColour: boolean): string {
  const { level, time, msg = "", err, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const [name, colour] = LEVELS[Number(level)] ?? [String(level), 0];
  const painted = hasColour ? `\x1b[${colour}m${name.padEnd(5)}\x1b[0m` : name.padEnd(5);
  const parts = Object.entries(fields).map(([key, value]) => {
    const isPlain = typeof value === "string" && /^[^\s"]+$/.test(value);
    return printable(`${key}=${isPlain ? value : JSON.stringify(value)}`);
  });
  const head = [new Date(String(time)).toTimeString().slice(0, 8), painted, printable(String(msg))].join(" ");
  const { message = "", stack = message } = (err ?? {}) as {
    readonly message?: string;
    readonly stack?: string;
  };
  return `${[head, ...parts].join("  ")}\n${stack.replace(/.+\n?/g, (text) => `    ${printable(text.trimEnd())}\n`)}`;
}

/** Escapes characters that could move a terminal's cursor. */
export function printable(text: string): string {
  return text.replace(
    /\p{Cc}/gu,
    (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
}

function droppedLine(dropped: number): string {
  const time = new Date().toISOString();
  return `{"level":40,"time":"${time}","dropped":${dropped},"msg":"log lines were dropped: the reader is too slow"}\n`;
}

/** Logs uncaught errors, and ends the process with exit code 1: its state cannot be trusted any more. */
export function exitOnUncaught(log: Log): void {
  const fail = (error: unknown): void => {
    log.fatal({ err: error }, `internal error: ${messageOf(error)}`);
    process.exit(1);
  };
  process.on("uncaughtException", fail);
  process.on("unhandledRejection", fail);
}
