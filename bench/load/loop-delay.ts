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
  /** Returns the delays since the last call. */
  take(pid: number): Promise<HeldLoop>;
}

/** Delays of an event loop, in milliseconds. */
export interface HeldLoop {
  readonly p99: number;
  readonly longest: number;
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
      return JSON.parse(readFileSync(file, "utf8")) as HeldLoop;
    },
  };
}

/**
 * Node.js loads this module before the server (`--import`), too. On SIGUSR2 the server writes the delays since the last signal into the
 * file.
 */
const file = process.env.LOOP_DELAY_FILE;
if (file !== undefined && isMainThread) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  process.on("SIGUSR2", () => {
    const held: HeldLoop = { p99: delay.percentile(99) / 1e6, longest: delay.max / 1e6 };
    writeFileSync(`${file}.unfinished`, JSON.stringify(held));
    renameSync(`${file}.unfinished`, file);
    delay.reset();
  });
}
