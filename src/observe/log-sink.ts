import { fstatSync, writeSync } from "node:fs";

/** Where lines of a log go. */
export interface LogSink {
  /** Takes a line; it is written at the end of this turn of the loop, or when its reader takes it. Never throws, never waits. */
  write(line: string): void;
  /** Writes all that is there now, as far as its reader takes it. */
  flushSync(): void;
}

/** Of all sinks of this process. */
export const logStats = { dropped: 0 };

/** Lines that wait for a reader who takes none: beyond that they are dropped. */
const MAX_WAITING_CHARS = 2 ** 20;
/** Written at once rather than at the end of the turn. */
const MAX_BATCH_CHARS = 64 * 2 ** 10;
/**
 * Bytes that a pipe takes whole or not at all (POSIX: at least 512; Linux: 4,096). Several processes may write into one, and lines
 * must not be torn.
 */
const PIPE_BUF = 4096;
const RETRY_MS = 50;
/** At the process's end a reader that is slow is waited for so long. */
const MAX_EXIT_WAIT_MS = 1_000;
const EXIT_RETRY_MS = 10;

/** How pino begins a line of level fatal. */
const FATAL = '{"level":60,';
const NEWLINE = 10;

/**
 * A sink that is never waited for: whoever reads the log and does not go on reading must not stop the server. What is
 * written goes straight into the pipe, so that nothing is lost where the process ends.
 * @param fd Of a pipe, a socket, a file or a terminal. Of the first two it is this process's standard error.
 */
export function createLogSink(fd: number): LogSink {
  const isPipe = makeNonBlocking(fd);
  const waiting: Buffer[] = [];
  let waitingBytes = 0;
  /** Lines of this turn. */
  let batch = "";
  let isScheduled = false;
  let retryTimer: NodeJS.Timeout | undefined;
  /** Dropped since that was last said. */
  let dropped = 0;
  let isGone = false;

  function endTurn(): void {
    isScheduled = false;
    flush();
  }

  /** Puts the lines of this turn behind those that wait. */
  function gather(): void {
    sayDropped();
    if (batch === "") return;
    const bytes = Buffer.from(batch);
    batch = "";
    if (isPipe) waiting.push(...wholeLines(bytes, PIPE_BUF));
    else waiting.push(bytes);
    waitingBytes += bytes.byteLength;
  }

  function flush(): void {
    gather();
    if (retryTimer === undefined && !pump()) {
      // What is still here when the loop is empty is written at exit.
      retryTimer = setTimeout(retry, RETRY_MS).unref();
    }
  }

  function retry(): void {
    retryTimer = undefined;
    flush();
  }

  /** Writes what is taken; false where there is more. */
  function pump(): boolean {
    while (waiting.length > 0) {
      const next = waiting[0] as Buffer;
      const written = writeSome(next);
      if (written === 0) return false;
      waitingBytes -= written;
      if (written === next.byteLength) waiting.shift();
      else waiting[0] = next.subarray(written);
    }
    return true;
  }

  /** How many bytes are taken now. */
  function writeSome(bytes: Buffer): number {
    if (isGone) return bytes.byteLength;
    try {
      return writeSync(fd, bytes);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EAGAIN" || code === "EINTR") return 0;
      // No reader will come back, and there is nobody to tell.
      isGone = code === "EPIPE" || code === "EBADF";
      noteDropped(bytes.toString("latin1").split("\n").length - 1);
      return bytes.byteLength;
    }
  }

  function noteDropped(lines: number): void {
    if (!isGone) dropped += lines;
    logStats.dropped += lines;
  }

  function sayDropped(): void {
    if (dropped === 0 || waitingBytes > MAX_WAITING_CHARS / 2) return;
    const time = new Date().toISOString();
    const count = dropped;
    dropped = 0;
    batch += `{"level":40,"time":"${time}","dropped":${count},"msg":"lines of this log were dropped: nobody took them"}\n`;
  }

  process.on("exit", () => {
    const endAt = performance.now() + MAX_EXIT_WAIT_MS;
    for (;;) {
      gather();
      const isAllWritten = pump() && dropped === 0;
      if (isAllWritten || performance.now() >= endAt) return;
      sleep(EXIT_RETRY_MS);
    }
  });

  return {
    write(line) {
      if (waitingBytes + batch.length + line.length > MAX_WAITING_CHARS && !line.startsWith(FATAL)) {
        noteDropped(1);
        return;
      }
      batch += line;
      if (batch.length >= MAX_BATCH_CHARS) flush();
      else if (!isScheduled) {
        isScheduled = true;
        setImmediate(endTurn);
      }
    },
    flushSync: flush,
  };
}

/** Pieces of at most so many bytes that end where lines end; a longer line is one by itself. */
function wholeLines(lines: Buffer, maxBytes: number): Buffer[] {
  const pieces: Buffer[] = [];
  for (let begin = 0; begin < lines.length; ) {
    const last = lines.lastIndexOf(NEWLINE, begin + maxBytes - 1);
    const end =
      lines.length - begin <= maxBytes ? lines.length : last < begin ? lineEnd(lines, begin) : last + 1;
    pieces.push(lines.subarray(begin, end));
    begin = end;
  }
  return pieces;
}

function lineEnd(lines: Buffer, begin: number): number {
  const at = lines.indexOf(NEWLINE, begin);
  return at === -1 ? lines.length : at + 1;
}

/**
 * Has writes to a pipe or a socket that is full fail instead of waiting: there is no call for it, but Node.js does it when
 * it opens its own stream for standard error. (Files and terminals are always written to at once.)
 * @returns Whether it is a pipe.
 */
function makeNonBlocking(fd: number): boolean {
  try {
    const stats = fstatSync(fd);
    if (fd === 2 && (stats.isFIFO() || stats.isSocket())) void process.stderr;
    return stats.isFIFO();
  } catch {
    // Closed: writing will say so.
    return false;
  }
}

function sleep(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
