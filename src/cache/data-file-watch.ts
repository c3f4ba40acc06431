import { closeSync, fstatSync, ftruncateSync, openSync } from "node:fs";
import { turnOf } from "../turn.js";

/** What can be told about a mapped file from outside: that somebody wrote into it, or cut it short. */
export interface DataFileWatch {
  /**
   * Asks the system about the file, for the requests of one turn of the event loop and one millisecond only once: blocks
   * for 1 µs.
   * @param now Of `performance.now()`, in milliseconds.
   * @returns What is wrong with it: it is shorter than it was. What was missing, and would have ended the process (SIGBUS),
   *   reads as zeros from now on.
   */
  look(now: number): string | undefined;
  /** What was read later than this has not been written over since, as far as the last look tells. Of `performance.now()`. */
  readonly unchangedSince: number;
  /** No looks after it. */
  close(): void;
}

/** For a turn that takes long. A look for each request made small chunks 3 to 9 % dearer. */
const LOOK_INTERVAL_MS = 1;
/**
 * Two writes within so long may leave the same time: the kernel's clock for files goes by ticks, of 10 ms at most. One call that writes
 * many MiB may take longer, and the time is that of its beginning.
 */
const TICK_MS = 10;

/**
 * Watches the file at `path`, which the caller has mapped: lmdb writes with system calls, and so does nearly everybody else,
 * whereby its time of modification moves. What changes below the file system, or through another map, shows in neither.
 * @throws Error Where it cannot be opened.
 */
export function watchDataFile(path: string): DataFileWatch {
  const file = openSync(path, "r+");
  let { size, mtimeMs } = fstatSync(file);
  let lookedIn = -1;
  let lookedAt = performance.now();
  let unchangedSince = lookedAt + TICK_MS;

  function look(now: number): string | undefined {
    const turn = turnOf();
    if (turn === lookedIn && now - lookedAt < LOOK_INTERVAL_MS) return undefined;
    lookedIn = turn;
    lookedAt = now;
    const found = fstatSync(file);
    if (found.mtimeMs !== mtimeMs) {
      mtimeMs = found.mtimeMs;
      unchangedSince = now + TICK_MS;
    }
    if (found.size < size) {
      fillUp();
      return `its file was cut short, from ${size} to ${found.size} bytes`;
    }
    size = found.size;
    return undefined;
  }

  function fillUp(): void {
    try {
      ftruncateSync(file, size);
    } catch {
      // Whoever hears of the cut reads no more from it.
    }
  }

  return {
    look,
    get unchangedSince() {
      return unchangedSince;
    },
    close: () => closeSync(file),
  };
}
