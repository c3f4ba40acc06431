import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { isMainThread } from "node:worker_threads";

/** Measures how long the event loop of a server is held. */
export interface LoopDelay {
  /** Settings of the server's process. */
  readonly settings: {
    readonly nodeArgs: readonly string[];
    readonly env: Readonly<Record<string, string>>;
  };
  /** Returns the longest delay since the last call, in milliseconds. */
  take(pid: number): Promise<number>;
}

/** @param scratch Folder for the file by which the server tells. */
export function createLoopDelay(scratch: string): LoopDelay {
  const file = join(scratch, "loop-delay");
  return {
    settings: {
      nodeArgs: ["--import", import.meta.url],
      env: { LOOP_DELAY_FILE: file },
    },
    async take(pid) {
      rmSync(file, { force: true });
      process.kill(pid, "SIGUSR2");
      while (!existsSync(file)) await sleep(1);
      return Number(readFileSync(file, "utf8"));
    },
  };
}

/**
 * Node.js loads this module before the server (`--import`), too. On SIGUSR2 the server writes the longest delay since the last signal into
 * the file, in milliseconds.
 */
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
