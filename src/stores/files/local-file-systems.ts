import { readFileSync } from "node:fs";
import { dirname } from "node:path";

/** File systems that wait neither for another machine nor for a program. */
const LOCAL_TYPES: ReadonlySet<string> = new Set(
  "ext2 ext3 ext4 xfs btrfs f2fs zfs bcachefs tmpfs ramfs rootfs overlay squashfs erofs iso9660".split(" "),
);

/** Time until the table is read again. A store may have thousands of arrays, and a machine thousands of mounts. */
const MAX_AGE_MS = 1_000;

/** By mount point, whether its file system is local. */
let mounts: ReadonlyMap<string, boolean> = new Map();
/** Milliseconds since process start. */
let readAtMs = Number.NEGATIVE_INFINITY;

/**
 * Finds out whether a directory is on a local file system, from the kernel's table of mounts, at most a second old. A call to
 * the file system itself, such as statfs(2), could hang. False if the system has no such table.
 * @param directory Absolute path without links.
 */
export function isOnLocalFileSystem(directory: string): boolean {
  const now = performance.now();
  if (now - readAtMs > MAX_AGE_MS) {
    mounts = parseMountInfo(readMountInfo());
    readAtMs = now;
  }
  for (let path = directory; ; path = dirname(path)) {
    const isLocal = mounts.get(path);
    if (isLocal !== undefined) return isLocal;
    if (dirname(path) === path) return false;
  }
}

function readMountInfo(): string {
  try {
    return readFileSync("/proc/self/mountinfo", "utf8");
  } catch {
    return "";
  }
}

/**
 * Parses `/proc/self/mountinfo` (proc(5)): by mount point, whether its file system is local. The last of several mounts at
 * one point counts, since it hides the others.
 */
export function parseMountInfo(text: string): Map<string, boolean> {
  const found = new Map<string, boolean>();
  for (const line of text.split("\n")) {
    const fields = line.split(" ");
    const mountPoint = fields[4];
    const type = fields[fields.indexOf("-", 6) + 1];
    if (mountPoint === undefined || type === undefined) continue;
    // White space and backslashes are written as three octal digits.
    const path = mountPoint.replace(/\\([0-7]{3})/g, (_, digits: string) =>
      String.fromCharCode(Number.parseInt(digits, 8)),
    );
    found.set(path, LOCAL_TYPES.has(type));
  }
  return found;
}
