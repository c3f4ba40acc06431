import { readFileSync } from "node:fs";
import { dirname } from "node:path";

/** A file system, as far as the system tells without asking it anything. */
export interface FileSystem {
  /** Device number, `major:minor`: the same wherever it is mounted, another when it is mounted anew. */
  readonly id: string;
  /** Whether looking at a file never waits for another machine, or for a program. */
  readonly isLocal: boolean;
}

/** Types of file systems whose metadata is this machine's alone, and in memory once it was looked at. */
const LOCAL_TYPES: ReadonlySet<string> = new Set(
  "ext2 ext3 ext4 xfs btrfs f2fs zfs bcachefs tmpfs ramfs rootfs overlay squashfs erofs iso9660".split(" "),
);

/** Where the system has no such table, all is one file system that may hang. */
const UNKNOWN: FileSystem = Object.freeze({ id: "unknown", isLocal: false });

const MAX_AGE_MS = 1_000;
/** Share of the time that reading a very long table may take. */
const MAX_SHARE = 0.01;
const MAX_DIRECTORIES = 4_096;

let mounts: ReadonlyMap<string, FileSystem> = new Map();
let text = "";
let goodUntil = Number.NEGATIVE_INFINITY;
/** Of directories asked for. */
const known = new Map<string, FileSystem>();

/**
 * The file system that a directory is on, by the table of mounts: looking at the directory itself could hang. At most a
 * second old, or a hundred times what it takes to read it.
 * @param directory Absolute, without links.
 */
export function fileSystemOf(directory: string): FileSystem {
  readTable();
  let found = known.get(directory);
  if (found === undefined) {
    found = find(directory);
    if (known.size >= MAX_DIRECTORIES) known.clear();
    known.set(directory, found);
  }
  return found;
}

function find(directory: string): FileSystem {
  for (let path = directory; ; path = dirname(path)) {
    const found = mounts.get(path);
    if (found !== undefined) return found;
    if (dirname(path) === path) return UNKNOWN;
  }
}

function readTable(): void {
  const now = performance.now();
  if (now < goodUntil) return;
  let current = "";
  try {
    // Made by the kernel from memory: 30 µs for 30 mounts.
    current = readFileSync("/proc/self/mountinfo", "utf8");
  } catch {
    // Not Linux, or not shown here.
  }
  if (current !== text) {
    text = current;
    mounts = parseMountInfo(current);
    known.clear();
  }
  const end = performance.now();
  goodUntil = end + Math.max(MAX_AGE_MS, (end - now) / MAX_SHARE);
}

/**
 * File systems by where they are mounted (proc(5), "/proc/pid/mountinfo"). Of several at one place the last counts, which
 * lies over the others.
 */
export function parseMountInfo(text: string): Map<string, FileSystem> {
  const found = new Map<string, FileSystem>();
  for (const line of text.split("\n")) {
    const fields = line.split(" ");
    const [, , id, , mountPoint] = fields;
    const type = fields[fields.indexOf("-", 6) + 1];
    if (id === undefined || mountPoint === undefined || type === undefined) continue;
    found.set(withoutEscapes(mountPoint), Object.freeze({ id, isLocal: LOCAL_TYPES.has(type) }));
  }
  return found;
}

/** Blanks and the like are written as three octal digits. */
function withoutEscapes(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}
