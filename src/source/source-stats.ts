import { getEnvironmentData, isMainThread, setEnvironmentData, threadId } from "node:worker_threads";
import { type CallCounts, type CallRows, createCallMemory, createCallRows } from "./call-rows.js";

/** What became of calls to file systems, in all threads of this process. */
export interface SourceStats {
  /** Calls that were given up because nothing answered in time, or that were not begun because others still wait. */
  readonly timeouts: number;
  /** Calls under way that were given up: each keeps one of libuv's threads until the system answers. */
  readonly hanging: number;
}

/** More threads than live at a time, whatever has come and gone before. */
const ROWS = 1_024;
const NAME = "zpublish:file-calls";

const rows = sharedRows();

/** Threads started later find them under {@link NAME}: libuv's threads are shared by all of them, so the counts are, too. */
function sharedRows(): CallRows {
  const given = isMainThread ? undefined : getEnvironmentData(NAME);
  const memory = given instanceof SharedArrayBuffer ? given : createCallMemory(ROWS);
  if (memory !== given) setEnvironmentData(NAME, memory);
  const shared = createCallRows(memory);
  // A worker that is ended runs nothing more; that it has ended means that none of its calls is under way.
  process.on("worker", (worker) => {
    const id = worker.threadId;
    worker.once("exit", () => shared.giveBack(id));
  });
  return shared;
}

/** Of this thread. */
export const callCounts: CallCounts = rows.countsOf(threadId);

/** What metrics read. */
export const sourceStats: SourceStats = {
  get timeouts() {
    return rows.timeouts();
  },
  get hanging() {
    return rows.hanging();
  },
};
