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

/** Reads `/proc`; the sum over the process and its children. */
export function readProcessCost(pid: number): ProcessCost | undefined {
  try {
    let cpuSeconds = 0;
    let peakBytes = 0;
    for (const each of processTree(pid)) {
      // The second field is the name in parentheses and may hold anything; utime and stime are the 14th and 15th.
      const stat = readFileSync(`/proc/${each}/stat`, "utf8");
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      cpuSeconds += (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
      const peak = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${each}/status`, "utf8"));
      peakBytes += Number(peak?.[1] ?? 0) * 1024;
    }
    return { cpuSeconds, peakBytes };
  } catch {
    return undefined;
  }
}

function processTree(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
    .split(" ")
    .filter(Boolean)
    .map(Number);
  return [pid, ...children.flatMap(processTree)];
}
