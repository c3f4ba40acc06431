import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

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
      nodeArgs: ["--import", new URL("loop-delay-preload.js", import.meta.url).href],
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
