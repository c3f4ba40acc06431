import { readdirSync } from "node:fs";
import { processTree, statFields } from "../process-cost.js";

/** CPU time in microseconds. */
export interface CpuTime {
  readonly user: number;
  readonly system: number;
}

/** CPU time of the threads that answer requests, and of all others: workers, and the helpers of Node.js and of the cache. */
export interface ThreadCost {
  readonly server: CpuTime;
  readonly others: CpuTime;
}

/** `sysconf(_SC_CLK_TCK)` is 100 on every Linux that Node.js runs on. */
const MICROSECONDS_PER_TICK = 10_000;
/** Places of utime and stime behind the name; see proc(5). */
const [UTIME, STIME] = [11, 12];

/** Reads what the threads of a process and its children have used. @throws Error where the system has no `/proc`. */
export function readThreadCost(pid: number): ThreadCost {
  const server = { user: 0, system: 0 };
  const others = { user: 0, system: 0 };
  for (const each of processTree(pid)) {
    for (const thread of readdirSync(`/proc/${each}/task`)) {
      const fields = statFields(`/proc/${each}/task/${thread}/stat`);
      const sum = Number(thread) === each ? server : others;
      sum.user += Number(fields[UTIME]) * MICROSECONDS_PER_TICK;
      sum.system += Number(fields[STIME]) * MICROSECONDS_PER_TICK;
    }
  }
  return { server, others };
}
