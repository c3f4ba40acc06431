/**
 * Loaded by Node.js before a program (`--import`). On SIGUSR2, writes the longest delay of the event loop since the last time into the file
 * `LOOP_DELAY_FILE`, in milliseconds.
 */
import { renameSync, writeFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { isMainThread } from "node:worker_threads";

const file = process.env.LOOP_DELAY_FILE;
if (file !== undefined && isMainThread) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  process.on("SIGUSR2", () => {
    writeFileSync(`${file}.unfinished`, String(delay.max / 1e6));
    renameSync(`${file}.unfinished`, file);
    delay.reset();
  });
}
