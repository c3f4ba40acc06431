import { writeSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

/** How long it is waited for calls of other threads, which may be about to be answered. */
const OTHERS_MS = 100;

let isGuarded = false;

/**
 * Lets this process end though calls to file systems hang: Node.js joins libuv's threads when it exits (`uv_library_shutdown`,
 * Node.js 20), and so would wait for an answer that may never come, whatever was closed before. Such a process ends by
 * SIGTERM instead of with its exit code, which cannot be had then, and says so on standard error.
 * @param isHanging Asked at the very end. @param othersRun Whether calls of other threads are under way.
 */
export function guardExit(isHanging: () => boolean, othersRun: () => boolean): void {
  if (isGuarded || !isMainThread) return;
  isGuarded = true;
  process.on("exit", (code) => {
    if (!isHanging()) {
      if (!othersRun()) return;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, OTHERS_MS);
      if (!othersRun()) return;
    }
    try {
      const why = "calls to file systems have had no answer, and would keep it from ending";
      writeSync(2, `zpublish: the process ends by SIGTERM instead of with ${code}: ${why}\n`);
    } catch {
      // Nobody reads it.
    }
    process.removeAllListeners("SIGTERM");
    process.kill(process.pid, "SIGTERM");
  });
}
