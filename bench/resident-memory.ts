import { readFileSync } from "node:fs";
import { processTree } from "./process-cost.js";

/** What of a process and its children is in memory now. */
export interface ResidentMemory {
  readonly totalBytes: number;
  /** Of these, pages of the chunk cache's mapped file, which the system may take back at any time. */
  readonly cacheMapBytes: number;
  /** The rest: heaps, stacks, code. */
  readonly otherBytes: number;
}

/** How the chunk cache's file is called. */
const CACHE_FILE = /\/data\.mdb(?: \(deleted\))?$/;
/** First line of a mapping: addresses, rights, offset, device, inode, and what is mapped. */
const MAPPING = /^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \d+ *(.*)$/;
const RESIDENT = /^Rss: +(\d+) kB$/;

/** Reads `/proc/PID/smaps`; undefined where the system has none or the process has ended. */
export function readResidentMemory(pid: number): ResidentMemory | undefined {
  try {
    let totalBytes = 0;
    let cacheMapBytes = 0;
    for (const each of processTree(pid)) {
      let isCache = false;
      for (const line of readFileSync(`/proc/${each}/smaps`, "utf8").split("\n")) {
        const resident = RESIDENT.exec(line)?.[1];
        if (resident === undefined) {
          const mapping = MAPPING.exec(line);
          if (mapping !== null) isCache = CACHE_FILE.test(mapping[1]!);
          continue;
        }
        totalBytes += Number(resident) * 1024;
        if (isCache) cacheMapBytes += Number(resident) * 1024;
      }
    }
    return { totalBytes, cacheMapBytes, otherBytes: totalBytes - cacheMapBytes };
  } catch {
    return undefined;
  }
}
