import { statfs } from "node:fs/promises";
import { createRecentMap } from "../recent-map.js";

/** File systems whose metadata is this machine's alone, and in memory once it was looked at (statfs(2), "f_type"). */
const LOCAL_TYPES: ReadonlySet<number> = new Set([
  0xef53, // ext2, ext3, ext4
  0x58465342, // xfs
  0x9123683e, // btrfs
  0xf2f52010, // f2fs
  0x2fc12fc1, // zfs
  0xca451a4e, // bcachefs
  0x01021994, // tmpfs
  0x858458f6, // ramfs
  0x794c7630, // overlayfs
  0x73717368, // squashfs
  0xe0f5e1e2, // erofs
  0x9660, // iso9660
]);

const MAX_DIRECTORIES = 4_096;

const known = createRecentMap<boolean>(MAX_DIRECTORIES);

/**
 * Whether looking at a file of a directory never waits for another machine; undefined while that is being found out,
 * which the first call begins. Other systems than Linux number their file systems otherwise: false.
 */
export function isOnLocalFileSystem(directory: string): boolean | undefined {
  const answer = known.get(directory);
  if (answer !== undefined || asked.has(directory)) return answer;
  asked.add(directory);
  void find(directory).then((isLocal) => {
    asked.delete(directory);
    known.set(directory, isLocal);
  });
  return undefined;
}

/** Being found out. */
const asked = new Set<string>();

async function find(directory: string): Promise<boolean> {
  if (process.platform !== "linux") return false;
  try {
    return LOCAL_TYPES.has(Number((await statfs(directory)).type));
  } catch {
    return false;
  }
}
