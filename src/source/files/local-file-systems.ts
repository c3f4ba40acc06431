import { readFileSync } from "node:fs";
import { dirname } from "node:path";

/** File systems that wait for no other machine and for no program. */
const LOCAL_TYPES: ReadonlySet<string> = new Set(
  "ext2 ext3 ext4 xfs btrfs f2fs zfs bcachefs tmpfs ramfs rootfs overlay squashfs erofs iso9660".split(" "),
);

/** A store may have thousands of arrays, and a machine thousands of mounts. */
const MAX_AGE_MS = 1_000;

/** Whether the file system at each mount point is local. */
let mounts: ReadonlyMap<string, boolean> = new Map();
let readAtMs = Number.NEGATIVE_INFINITY;

/**
 * Whether a directory is on a local file system. Looks at the kernel's table of mounts, at most a second old: a question to
 * the file system itself, as statfs(2) is, could hang. False where there is no such table.
 * @param directory Absolute, without links.
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
 * Whether the file system at each mount point is local (proc(5), "/proc/pid/mountinfo"). The last of several mounts at one
 * point counts, since it hides the others.
 */
export function parseMountInfo(text: string): Map<string, boolean> {
  const found = new Map<string, boolean>();
  for (const line of text.split("\n")) {
    const fields = line.split(" ");
    const mountPoint = fields[4];
    const type = fields[fields.indexOf("-", 6) + 1];
    if (mountPoint === undefined || type === undefined) continue;
    // Blanks and the like are written as three octal digits.
    const path = mountPoint.replace(/\\([0-7]{3})/g, (_, digits: string) =>
      String.fromCharCode(Number.parseInt(digits, 8)),
    );
    found.set(path, LOCAL_TYPES.has(type));
  }
  return found;
}
