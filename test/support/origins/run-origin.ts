import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { Teardown } from "../write-store.js";

export interface ProgramOptions {
  /** True once the server answers. Asked again and again. */
  readonly isReady: () => Promise<boolean>;
  /** Ends the server and all of its processes. Default `SIGTERM`. */
  readonly signal?: "SIGTERM" | "SIGKILL";
}

/** Milliseconds within which a server has to answer. */
const START_TIMEOUT = 60_000;

/**
 * Starts a server, waits until it answers, and ends it with the test, or with this process.
 * @throws Error if it ends before, with what it wrote
 */
export async function startProgram(
  t: Teardown,
  program: string,
  args: readonly string[],
  { isReady, signal = "SIGTERM" }: ProgramOptions,
) {
  // Linux sends the signal if this process is killed.
  const child = spawn("setpriv", ["--pdeathsig", signal, "--", program, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output = (output + text).slice(-1_000_000);
    });
  }
  let hasEnded = false;
  const ended = once(child, "close").then(
    () => {
      hasEnded = true;
    },
    (error) => {
      hasEnded = true;
      output += error.message;
    },
  );
  async function stop(): Promise<void> {
    if (!hasEnded) child.kill(signal);
    await ended;
  }
  t.teardown(stop);
  const start = performance.now();
  while (!(await isReady())) {
    if (hasEnded || performance.now() - start > START_TIMEOUT) {
      throw new Error(`${program} ${hasEnded ? "has ended" : "does not answer"}:\n${output.slice(-4000)}`);
    }
    await delay(20);
  }
  return { output: () => output, stop };
}

/** Returns true if a server answers requests for a URL, with any status. */
export function answers(url: string): Promise<boolean> {
  return fetch(url).then(
    async (response) => {
      await response.arrayBuffer();
      return true;
    },
    () => false,
  );
}
