import { type Dir, type Dirent, opendir, readdir } from "node:fs";
import type { FileCalls } from "../stores/file-calls.js";

/** Entries that are read at a time. A folder may have a million, and Node.js would make objects of all at once. */
const LOT = 256;

/**
 * Reads the entries of a directory in lots.
 * @param isQuick Whether it is on a local file system. Otherwise all entries are read at once: if a file system does not tell what is a
 * directory, `fs.Dir` finds out by calls that the event loop waits for, and `readdir` by others.
 * @param work Receives a lot and tells if the next is to be read.
 * @throws what the file system throws, NoAnswerError, what `work` throws
 */
export async function readFolder(
  calls: FileCalls,
  directory: string,
  isQuick: boolean,
  work: (lot: readonly Dirent[]) => boolean | Promise<boolean>,
): Promise<void> {
  if (!isQuick) {
    const all = await calls.call<Dirent[]>((done) => readdir(directory, { withFileTypes: true }, done));
    for (let from = 0; from < all.length; from += LOT) if (!(await work(all.slice(from, from + LOT)))) return;
    return;
  }
  const dir = await calls.call<Dir>((done) => opendir(directory, { bufferSize: LOT }, done), close);
  try {
    for (;;) {
      const lot = await calls.call<Dirent[]>((done) => readLot(dir, [], done));
      if (!(await work(lot)) || lot.length < LOT) return;
    }
  } finally {
    // After a call that hangs, if there is one.
    close(dir);
  }
}

function close(dir: Dir): void {
  dir.close(() => undefined);
}

function readLot(dir: Dir, lot: Dirent[], done: (error: Error | null, lot: Dirent[]) => void): void {
  dir.read((error, entry) => {
    if (error !== null) return done(error, lot);
    if (entry !== null) lot.push(entry);
    if (entry === null || lot.length === LOT) done(null, lot);
    else readLot(dir, lot, done);
  });
}
