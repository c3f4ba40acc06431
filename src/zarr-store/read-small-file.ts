import { type BigIntStats, close, fstat, open, read } from "node:fs";
import { isMissing } from "../errors.js";
import { type FileCalls, isSameVersion, OPEN_FLAGS, remainingSettleMs } from "../stores/file-calls.js";
import { ABSENT, recordOfStats } from "./file-record.js";

/** Longer files are read by `StoreFiles`. */
const MAX_BYTES = 64 * 1024;
const BIG_INTEGERS = { bigint: true } as const;

/** A small file, and its record, which was the same before and after the read. */
export interface SmallFile {
  readonly record: string;
  readonly bytes: Buffer;
}

/**
 * Reads a file with as few calls as possible and no promises between them, which halves the time to open a store. Unusual files
 * are left to `StoreFiles`: links, long or fresh files, files that change or cannot be read.
 * @param directory Real path of a directory in the store.
 * @returns {@link ABSENT} if there is no file; undefined if `StoreFiles` has to read it.
 * @throws NoAnswerError
 */
export function readSmallFile(
  calls: FileCalls,
  directory: string,
  name: string,
): Promise<SmallFile | typeof ABSENT | undefined> {
  return calls.call((done) => readAtOnce(`${directory}/${name}`, (found) => done(null, found)));
}

function readAtOnce(path: string, done: (found: SmallFile | typeof ABSENT | undefined) => void): void {
  open(path, OPEN_FLAGS, (error, fd) => {
    if (error !== null) {
      done(isMissing(error) ? ABSENT : undefined);
      return;
    }
    const finish = (found: SmallFile | undefined): void => close(fd, () => done(found));
    fstat(fd, BIG_INTEGERS, (error, before) => {
      if (error !== null || !isOrdinary(before)) return finish(undefined);
      const bytes = Buffer.allocUnsafe(Number(before.size));
      read(fd, bytes, 0, bytes.length, 0, (error, bytesRead) => {
        if (error !== null || bytesRead < bytes.length) return finish(undefined);
        fstat(fd, BIG_INTEGERS, (error, after) => {
          const isSame = error === null && isSameVersion(before, after);
          finish(isSame ? { record: recordOfStats(before), bytes } : undefined);
        });
      });
    });
  });
}

function isOrdinary(found: BigIntStats): boolean {
  return found.isFile() && found.size <= MAX_BYTES && remainingSettleMs(found) === 0;
}
