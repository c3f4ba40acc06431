import { type BigIntStats, lstat, realpath } from "node:fs";
import { relative, sep } from "node:path";
import { createRecentMap } from "../../collections/recent-map.js";
import { isMissing, ZpublishError } from "../../errors.js";
import type { FileCalls } from "./file-calls.js";
import { absentOrThrow, codeOf, type Label, unreadable } from "./unreadable-file.js";

/** A directory whose real path has been looked up. */
export interface VerifiedDirectory {
  readonly real: string;
  /** `st_dev` */
  readonly device: bigint;
}

/** Directories and links of one store. A path whose real path is outside of the store is refused. */
export interface StorePaths {
  /** Returns a directory that has been verified before; else undefined. Does no I/O. */
  verified(directory: string): VerifiedDirectory | undefined;
  /**
   * Looks up the real path of a directory.
   * @returns Undefined if the directory does not exist.
   * @throws ZpublishError `source-unreadable`
   */
  verify(directory: string, label: Label): Promise<VerifiedDirectory | undefined>;
  /**
   * Returns the device of a directory if this thread may wait for its files; undefined if other machines or programs may
   * have to answer.
   */
  localDeviceOf(directory: VerifiedDirectory | undefined): bigint | undefined;
  /** Returns the real path behind a link. @throws ZpublishError `source-unreadable` */
  resolveLink(path: string, label: Label): Promise<string>;
  lstat(path: string): Promise<BigIntStats>;
  /** Returns the name of a file for messages: its path within the store. */
  labelOf(path: string): string;
}

/** Verified directories by path, of all stores of this thread: 330 bytes each for paths of 100 characters. */
const verifiedDirectories = createRecentMap<VerifiedDirectory>(8_192);

/** Creates the paths of a store. @param root Absolute real path of the store. */
export function createStorePaths(root: string, calls: FileCalls): StorePaths {
  const prefix = root.endsWith(sep) ? root : `${root}${sep}`;
  let rootDevice: bigint | undefined;

  function isWithinStore(real: string): boolean {
    return real === root || real.startsWith(prefix);
  }

  function assertWithinStore(real: string, label: Label): void {
    if (!isWithinStore(real)) throw unreadable(label, "is reached by a link that leaves the store");
  }

  function realPathOf(path: string): Promise<string> {
    return calls.call<string>((done) => realpath.native(path, done));
  }

  function lstatAsync(path: string): Promise<BigIntStats> {
    return calls.call<BigIntStats>((done) => lstat(path, { bigint: true }, done));
  }

  return {
    verified(directory) {
      const known = verifiedDirectories.get(directory);
      return rootDevice !== undefined && known !== undefined && isWithinStore(known.real) ? known : undefined;
    },
    async verify(directory, label) {
      try {
        const real = await realPathOf(directory);
        assertWithinStore(real, label);
        const { dev: device } = await lstatAsync(real);
        rootDevice = real === root ? device : (await lstatAsync(root)).dev;
        const found = { real, device };
        verifiedDirectories.set(directory, found);
        return found;
      } catch (error) {
        if (error instanceof ZpublishError) throw error;
        return absentOrThrow(error, label);
      }
    },
    localDeviceOf: (directory) =>
      calls.isLocal && directory?.device === rootDevice ? rootDevice : undefined,
    async resolveLink(path, label) {
      // A link to nothing is data that is not there now (not fetched, not mounted), so the chunk is not absent.
      const real = await realPathOf(path).catch((error: unknown) => {
        if (!isMissing(error) && codeOf(error) !== "ELOOP")
          throw unreadable(label, `cannot be read (${codeOf(error)})`, error);
        throw unreadable(label, `is a link that leads nowhere (${codeOf(error)})`);
      });
      assertWithinStore(real, label);
      return real;
    },
    lstat: lstatAsync,
    labelOf: (path) => relative(root, path).split(sep).join("/"),
  };
}
