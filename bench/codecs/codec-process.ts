import { createInterface } from "node:readline";
import { type Child, startChild, stopChild } from "../children.js";
import type { CodecAnswer, CodecJob } from "./codec-job.js";

/** Longer than any job takes. */
const JOB_TIMEOUT_MS = 120_000;
const START_TIMEOUT_MS = 30_000;

/** A process that runs codecs for as long as the experiment does. */
export interface CodecProcess {
  readonly pid: number;
  /** What it said of itself when it was ready. */
  readonly greeting: string;
  /** One job at a time. @throws Error where the process ends, or takes too long. */
  ask(job: CodecJob): Promise<CodecAnswer>;
  stop(): Promise<void>;
}

/**
 * Starts a program that prints `ready …` and then answers jobs, a line each.
 * @throws Error where it is not ready: with the last line it wrote to standard error.
 */
export async function startCodecProcess(program: string, args: readonly string[]): Promise<CodecProcess> {
  const child = await startChild(program, args, {}, true);
  const lines = createInterface({ input: child.process.stdout! })[Symbol.asyncIterator]();
  // Whoever writes to a process that has ended hears of it by its missing answer.
  child.process.stdin!.on("error", () => undefined);
  const nextLine = async (timeoutMs: number): Promise<string> => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), timeoutMs);
    });
    const next = await Promise.race([lines.next(), late]);
    clearTimeout(timer);
    if (next === "late") {
      await stopChild(child);
      throw new Error(`expected an answer within ${timeoutMs} ms, received none`);
    }
    if (next.done) throw new Error(await lastWords(child));
    return next.value;
  };
  const greeting = await nextLine(START_TIMEOUT_MS);
  if (!greeting.startsWith("ready")) throw new Error(`expected a line "ready …", received ${greeting}`);
  return {
    pid: child.pid,
    greeting: greeting.slice("ready".length).trim(),
    async ask(job) {
      child.process.stdin!.write(`${JSON.stringify(job)}\n`);
      return JSON.parse(await nextLine(JOB_TIMEOUT_MS)) as CodecAnswer;
    },
    stop: () => stopChild(child),
  };
}

async function lastWords(child: Child): Promise<string> {
  const status = await child.ended;
  const line = child.errorText().trim().split("\n").at(-1) ?? "";
  return `ended with ${status}${line === "" ? "" : `: ${line}`}`;
}
