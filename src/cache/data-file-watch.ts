import { closeSync, fstatSync, ftruncateSync, openSync, readSync, type Stats, writeSync } from "node:fs";
import { turnOf } from "../turn.js";
import { META_BYTES, META_FREE_ROOT, META_MAIN_ROOT, META_PAGE_SIZE, META_TXNID } from "./lmdb-file.js";

/** What can be told about a store's mapped file from outside: that somebody wrote into it, or cut it short. */
export interface DataFileWatch {
  /**
   * Asks the system about the file, for the requests of one turn of the event loop and one millisecond only once: blocks
   * for 1 µs.
   * @param now Of `performance.now()`, in milliseconds.
   * @returns What is wrong with it: it is shorter than it was. From then on nothing is to be read from it, and it is not to be closed.
   *   What was missing, and would have ended the process (SIGBUS), reads as zeros, or as nothing kept.
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
 * Two writes within so long may leave the same time: the kernel's clock for files goes by ticks, of 10 ms at most. One call that
 * writes many MiB, or has to wait, may take longer, and the time is that of its beginning.
 */
const TICK_MS = 20;
/** On file systems that keep seconds, or every other one. */
const COARSE_TICK_MS = 2_000;
/** In lmdb's lock file: the number of the last commit (`mdb.c`, MDB_txbody). */
const LOCK_TXNID = 8;
const TXNID_BYTES = 8;
/** No page: a tree without any (P_INVALID). */
const NO_ROOT = 0xffff_ffff_ffff_ffffn;

/**
 * Watches the data file of an open store: lmdb writes with system calls, and so does nearly everybody else, whereby its time
 * of change moves. What changes below the file system, or through another map, does not show in it.
 * @throws Error Where a file cannot be opened.
 */
export function watchDataFile(dataPath: string, lockPath: string): DataFileWatch {
  const file = openSync(dataPath, "r+");
  const lock = openSync(lockPath, "r");
  const meta = Buffer.alloc(META_BYTES);
  readSync(file, meta, 0, META_BYTES, 0);
  const pageSize = meta.readUInt32LE(META_PAGE_SIZE);
  let { size, ctimeMs } = fstatSync(file);
  let unchangedSince = performance.now() + tickOf(ctimeMs);
  let lookedIn = -1;
  let lookedAt = performance.now();
  let cut: string | undefined;

  function lookNow(): void {
    const found = fstatSync(file);
    if (found.ctimeMs !== ctimeMs) {
      ctimeMs = found.ctimeMs;
      unchangedSince = performance.now() + tickOf(ctimeMs);
    }
    if (found.size < size) {
      cut = `its file was cut short, from ${size} to ${found.size} bytes`;
      mend(found);
    } else size = found.size;
  }

  function mend(found: Stats): void {
    try {
      // Not to where it was, or other processes would not notice. The rest of its page can be read.
      ftruncateSync(file, size - 1);
      if (found.size < 2 * pageSize) writeEmptyMetas();
    } catch {
      // Whoever hears of the cut reads no more from it.
    }
  }

  /** lmdb looks at them when the process ends, and waits until one of them has the number of the last commit. */
  function writeEmptyMetas(): void {
    readSync(lock, meta, META_TXNID, TXNID_BYTES, LOCK_TXNID);
    meta.writeBigUInt64LE(NO_ROOT, META_FREE_ROOT);
    meta.writeBigUInt64LE(NO_ROOT, META_MAIN_ROOT);
    for (const number of [0, 1]) {
      meta.writeBigUInt64LE(BigInt(number), 0);
      writeSync(file, meta, 0, META_BYTES, number * pageSize);
    }
  }

  return {
    look(now) {
      const turn = turnOf();
      if (cut !== undefined || (turn === lookedIn && now - lookedAt < LOOK_INTERVAL_MS)) return cut;
      lookedIn = turn;
      lookedAt = now;
      lookNow();
      return cut;
    },
    get unchangedSince() {
      return unchangedSince;
    },
    close() {
      closeSync(file);
      closeSync(lock);
    },
  };
}

function tickOf(timeMs: number): number {
  return timeMs % 1_000 === 0 ? COARSE_TICK_MS : TICK_MS;
}
