import { type BigIntStats, constants, lstat, lstatSync, open, openSync, realpath } from "node:fs";
import { dirname, relative, sep } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { ZpublishError } from "../errors.js";
import type { StampLook } from "./chunk-source.js";
import { isOnLocalFileSystem } from "./local-file-system.js";
import { closeQuietly, type OpenFile, useUnchanged } from "./open-file.js";
import { remainingSettleMs } from "./settle-time.js";
import { stampOf } from "./stamp-of.js";
import { codeOf, type Label, requireFile, unreadable } from "./unreadable-file.js";

const openAsync = promisify(open);
const realpathAsync = promisify(realpath);
const lstatAsync = promisify(lstat) as (path: string, options: { bigint: true }) => Promise<BigIntStats>;

const maxTries = 5;
/** Directories whose real path was checked, per store and thread. */
const maxVerifiedDirectories = 4096;

/** Never follows a link unseen, and never waits for the other end of a pipe. */
const openFlags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/**
 * Reads the files of one store. Nothing outside of it is opened: a path whose real path is elsewhere is refused.
 * Errors name files relative to the store.
 */
export interface StoreFiles {
  /** What `lstat` says, once the file is no longer fresh; undefined where there is none. @throws ZpublishError `source-unreadable` */
  stat(path: string): Promise<BigIntStats | undefined>;
  /**
   * What `stat` found, looked at again without waiting: of a file of a local file system only, whose directory has been
   * verified and which is neither a link nor fresh; undefined for everything else.
   */
  lookNow(path: string): StampLook | undefined;
  /**
   * Runs `use` on the open file, again when the file changed meanwhile (at most five times).
   * @param wasLookedAt Whether `stat` was asked just now, so that opening it waits for no disk. Default false.
   * @returns Undefined where there is no such file.
   * @throws ZpublishError `source-unreadable`, and what `use` throws of an unchanged file.
   */
  read<T>(path: string, use: (file: OpenFile) => Promise<T>, wasLookedAt?: boolean): Promise<T | undefined>;
}

/**
 * @param root Absolute real path of the store.
 * @param mayBlock Whether this thread has nothing else to do while it reads: files of local file systems are then read
 * without handing it to another. Default false.
 */
export function createStoreFiles(root: string, mayBlock = false): StoreFiles {
  /** Device of each directory whose real path was checked. */
  const verified = new Map<string, bigint>();

  /** Whether the directory is there. */
  function verifyDirectory(directory: string, label: Label): true | Promise<boolean> {
    return verified.has(directory) || verifyAnew(directory, label);
  }

  async function verifyAnew(directory: string, label: Label): Promise<boolean> {
    const real = await realpathAsync(directory).catch((error: unknown) => absentOrThrow(error, label));
    if (real === undefined) return false;
    refuseOutside(root, real, label);
    const stat = await lstatAsync(real, { bigint: true }).catch((error: unknown) =>
      absentOrThrow(error, label),
    );
    if (stat === undefined) return false;
    if (verified.size >= maxVerifiedDirectories) verified.clear();
    verified.set(directory, stat.dev);
    return true;
  }

  /** The path itself, or where its link leads to; undefined where there is nothing. */
  async function resolveLink(path: string, label: Label): Promise<string> {
    // A link to nothing is data that is not there now (not fetched, not mounted): no absent chunk.
    const real = await realpathAsync(path).catch((error: unknown) => {
      throw unreadable(label, `is a link that leads nowhere (${codeOf(error)})`);
    });
    refuseOutside(root, real, label);
    return real;
  }

  async function openPath(path: string, label: Label, atOnce: boolean): Promise<number | undefined> {
    const isThere = verifyDirectory(dirname(path), label);
    if (isThere !== true && !(await isThere)) return undefined;
    try {
      return atOnce ? openSync(path, openFlags) : await openAsync(path, openFlags);
    } catch (error) {
      if (codeOf(error) !== "ELOOP") return absentOrThrow(error, label);
    }
    const real = await resolveLink(path, label);
    return await openAsync(real, openFlags).catch((error: unknown) => absentOrThrow(error, label));
  }

  return {
    async stat(path) {
      const label = () => labelOf(root, path);
      const isThere = verifyDirectory(dirname(path), label);
      if (isThere !== true && !(await isThere)) return undefined;
      let target = path;
      for (let attempt = 1; ; attempt++) {
        const stat = await lstatAsync(target, { bigint: true }).catch((error: unknown) =>
          absentOrThrow(error, label),
        );
        if (stat === undefined) return undefined;
        if (stat.isSymbolicLink() && attempt < maxTries) {
          target = await resolveLink(path, label);
          continue;
        }
        requireFile(stat, label);
        const wait = remainingSettleMs(stat);
        if (wait === 0 || attempt >= maxTries) return stat;
        await sleep(wait);
      }
    },

    lookNow(path) {
      const directory = dirname(path);
      const directoryDevice = verified.get(directory);
      if (directoryDevice === undefined || isOnLocalFileSystem(directory) !== true) return undefined;
      const stat = lstatNow(path);
      if (stat === undefined || !stat.isFile() || remainingSettleMs(stat) > 0) return undefined;
      // Another file system may have been mounted there.
      if (stat.dev !== directoryDevice) return undefined;
      const { mtimeNs, size, dev } = stat;
      return {
        stamp: stampOf(stat),
        isUnchanged() {
          const now = lstatNow(path);
          return (
            now !== undefined &&
            now.mtimeNs === mtimeNs &&
            now.size === size &&
            now.dev === dev &&
            now.isFile()
          );
        },
      };
    },

    async read(path, use, wasLookedAt = false) {
      const label = () => labelOf(root, path);
      const isLocal = isOnLocalFileSystem(dirname(path)) === true;
      for (let attempt = 1; attempt <= maxTries; attempt++) {
        const fd = await openPath(path, label, isLocal && (wasLookedAt || mayBlock));
        if (fd === undefined) return undefined;
        const blockingDevice = isLocal && mayBlock ? verified.get(dirname(path)) : undefined;
        try {
          const result = await useUnchanged(fd, label, use, isLocal, blockingDevice);
          if (result !== undefined) return result.value;
        } catch (error) {
          if (error instanceof ZpublishError) throw error;
          throw unreadable(label, `cannot be read (${codeOf(error)})`, error);
        } finally {
          await closeQuietly(fd, isLocal);
        }
      }
      throw unreadable(label, `changed during each of ${maxTries} tries to read it`);
    },
  };
}

const lookNowOptions = { bigint: true, throwIfNoEntry: false } as const;

/**
 * Blocks, but for microseconds: what was looked at before is in memory. 2.2 µs of CPU, where the asynchronous form takes
 * 20 of two threads.
 */
function lstatNow(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, lookNowOptions);
  } catch {
    return undefined;
  }
}

function refuseOutside(root: string, real: string, label: Label): void {
  const prefix = root.endsWith(sep) ? root : `${root}${sep}`;
  if (real !== root && !real.startsWith(prefix))
    throw unreadable(label, "is reached by a link that leaves the store");
}

function absentOrThrow(error: unknown, label: Label): undefined {
  const code = codeOf(error);
  if (code === "ENOENT" || code === "ENOTDIR") return undefined;
  throw unreadable(label, `cannot be read (${code})`, error);
}

function labelOf(root: string, path: string): string {
  return relative(root, path).split(sep).join("/");
}
