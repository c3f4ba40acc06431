import { readFileSync } from "node:fs";

/** What a process and its children have used until now; undefined where the system does not say (no `/proc`). */
export interface ProcessCost {
  /** User and system, of all threads. */
  readonly cpuSeconds: number;
  /** Most memory ever resident, pages shared with others and mapped files included. */
  readonly peakBytes: number;
}

/** `sysconf(_SC_CLK_TCK)`, which is 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** Places in `statFields`; see proc(5). */
const UTIME = 11;
const STIME = 12;
const CUTIME = 13;
const CSTIME = 14;

/** Reads `/proc`; the sum over the process and its children. */
export function readProcessCost(pid: number): ProcessCost | undefined {
  try {
    let cpuSeconds = 0;
    let peakBytes = 0;
    for (const each of processTree(pid)) {
      const fields = statFields(`/proc/${each}/stat`);
      cpuSeconds += (Number(fields[UTIME]) + Number(fields[STIME])) / TICKS_PER_SECOND;
      const peak = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${each}/status`, "utf8"));
      peakBytes += Number(peak?.[1] ?? 0) * 1024;
    }
    return { cpuSeconds, peakBytes };
  } catch {
    return undefined;
  }
}

/**
 * CPU that children of this process have used that have ended, and theirs: the difference is the cost of one that has run
 * and ended in between. Undefined where the system does not say.
 */
export function readChildrenCpuSeconds(): number | undefined {
  try {
    const fields = statFields("/proc/self/stat");
    return (Number(fields[CUTIME]) + Number(fields[CSTIME])) / TICKS_PER_SECOND;
  } catch {
    return undefined;
  }
}

/** The fields behind the name, which stands in parentheses and may hold anything. */
export function statFields(file: string): string[] {
  const stat = readFileSync(file, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** A process and those it has started, as ids. @throws where it has ended. */
export function processTree(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
    .split(" ")
    .filter(Boolean)
    .map(Number);
  return [pid, ...children.flatMap(processTree)];
}

/** What of a process and its children is in memory now. */
export interface ResidentMemory {
  readonly totalBytes: number;
  /** The pages of the chunk cache's mapped file, which the system may take back at any time. */
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
