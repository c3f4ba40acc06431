import { type BigIntStats, close, constants, fstat, open, read } from "node:fs";
import { isMissing } from "../../errors.js";
import type { FileCalls } from "../files/file-calls.js";
import { ABSENT, recordOfStats } from "./file-record.js";

/** Longer files are read with more care. */
const MAX_BYTES = 64 * 1024;
/** A file younger than this may be written again without looking different; see `store-files.ts`. */
const SETTLE_MS = 20n;

const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
const BIG_INTEGERS = { bigint: true } as const;

/** A small file, and what it looked like before and after it was read. */
export interface SmallFile {
  readonly record: string;
  readonly bytes: Buffer;
}

/**
 * Reads a file in as few calls as it takes, without promises between them: half of what opening a store costs. Whatever
 * is out of the ordinary (a link, a long file, a fresh one, one that changes or cannot be read) is left to `StoreFiles`.
 * @param directory Real path of a directory in the store.
 * @returns {@link ABSENT} where there is nothing; undefined where it is to be read with more care.
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
          const isSame = error === null && after.mtimeNs === before.mtimeNs && after.size === before.size;
          finish(isSame ? { record: recordOfStats(before), bytes } : undefined);
        });
      });
    });
  });
}

function isOrdinary(found: BigIntStats): boolean {
  if (!found.isFile() || found.size > MAX_BYTES) return false;
  const age = BigInt(Date.now()) - found.mtimeNs / 1_000_000n;
  return age < 0n || age >= SETTLE_MS;
}
