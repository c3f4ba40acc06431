/**
 * Loaded before the program in a run of chaos that has to fail: a bit of a chunk that is read turns over now and then,
 * files are not closed, and chunks that are there are said not to be.
 */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { isMainThread } from "node:worker_threads";

const patched = fs as unknown as Record<string, unknown>;
const { read, readSync, closeSync, lstat, lstatSync } = fs;
let reads = 0;
let closes = 0;

if (isMainThread) {
  patched.readSync = (fd: number, bytes: Uint8Array, offset: number, length: number, position: number) => {
    const bytesRead = readSync(fd, bytes, offset, length, position);
    damage(bytes, offset, length);
    return bytesRead;
  };
  patched.read = (fd: number, bytes: Uint8Array, offset: number, length: number, ...rest: unknown[]) => {
    const callback = rest.at(-1) as (error: Error | null, bytesRead: number) => void;
    const position = rest[0] as number;
    read(fd, bytes, offset, length, position, (error, bytesRead) => {
      damage(bytes, offset, length);
      callback(error, bytesRead);
    });
  };
  patched.closeSync = (fd: number) => {
    if (closes++ % 3 !== 0) closeSync(fd);
  };
  patched.lstat = (path: string, ...rest: unknown[]) => {
    if (isDenied(path)) process.nextTick(rest.at(-1) as (error: Error) => void, absent());
    else (lstat as (...args: unknown[]) => void)(path, ...rest);
  };
  patched.lstatSync = (path: string, ...rest: unknown[]) => {
    if (isDenied(path)) throw absent();
    return (lstatSync as (...args: unknown[]) => unknown)(path, ...rest);
  };
  syncBuiltinESMExports();
}

/** Damages one of twenty reads that are as long as a chunk of `plain/raw`, and no document. */
function damage(bytes: Uint8Array, offset: number, length: number): void {
  if (length === 16_384 && reads++ % 20 === 0) bytes[offset + 5]! ^= 4;
}

/** By turns of half a second, so that a second look finds the same. */
function isDenied(path: string): boolean {
  return /flaky.*raw\/\d+\.0$/.test(path) && Math.floor(Date.now() / 500) % 2 === 0;
}

function absent(): NodeJS.ErrnoException {
  return Object.assign(new Error("no such file"), { code: "ENOENT" });
}
