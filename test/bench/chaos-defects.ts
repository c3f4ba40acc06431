/**
 * Loaded before the program in a run of chaos that has to fail: a bit of a chunk that is read turns over now and then,
 * files are not closed, and a file that cannot be read is said not to be there.
 */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { isMainThread } from "node:worker_threads";

const patched = fs as unknown as Record<string, unknown>;
const { read, closeSync, open, openSync } = fs;
let reads = 0;
let closes = 0;

if (isMainThread) {
  patched.read = (fd: number, bytes: Uint8Array, offset: number, length: number, ...rest: unknown[]) => {
    const callback = rest.at(-1) as (error: Error | null, bytesRead: number) => void;
    const position = rest[0] as number;
    read(fd, bytes, offset, length, position, (error, bytesRead) => {
      // As long as a chunk of `plain/raw`, and no document.
      if (length === 16_384 && reads++ % 20 === 0) bytes[offset + 5]! ^= 4;
      callback(error, bytesRead);
    });
  };
  patched.closeSync = (fd: number) => {
    if (closes++ % 3 !== 0) closeSync(fd);
  };
  patched.open = (path: string, flags: number, ...rest: unknown[]) => {
    const callback = rest.at(-1) as (error: NodeJS.ErrnoException | null, fd?: number) => void;
    open(path, flags, (error, fd) => callback(asAbsent(error), fd));
  };
  patched.openSync = (path: string, flags: number) => {
    try {
      return openSync(path, flags);
    } catch (error) {
      throw asAbsent(error as NodeJS.ErrnoException);
    }
  };
  syncBuiltinESMExports();
}

function asAbsent(error: NodeJS.ErrnoException | null): NodeJS.ErrnoException | null {
  return error?.code === "EIO" ? Object.assign(error, { code: "ENOENT" }) : error;
}
