import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { ForeignFile } from "./foreign-file.js";
import type { InspectedFile, InspectLine } from "./inspect-worker.js";

const WORKER = fileURLToPath(new URL("inspect-worker.js", import.meta.url));
const FILE_TIMEOUT_MS = 60_000;
const HEAP_MEGABYTES = 512;

/**
 * Opens files as the service does, in a process of its own that is replaced if it dies or is stuck: such a file's problem begins
 * with `crash`.
 */
export async function inspectFiles(files: readonly ForeignFile[]): Promise<Map<string, InspectedFile>> {
  const results = new Map<string, InspectedFile>();
  let left = [...files];
  while (left.length > 0) {
    const crash = await inspectSome(left, results);
    if (crash !== undefined) results.set(crash.id, crash);
    const rest = left.filter(({ id }) => !results.has(id));
    if (rest.length === left.length) throw new Error("the process that inspects files does nothing");
    left = rest;
  }
  return results;
}

/** Adds to the results until the process ends; returns the file that it died of. */
async function inspectSome(
  files: readonly ForeignFile[],
  results: Map<string, InspectedFile>,
): Promise<InspectedFile | undefined> {
  const child = spawn(process.execPath, [`--max-old-space-size=${HEAP_MEGABYTES}`, WORKER], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, NODE_OPTIONS: "" },
  });
  let errorText = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errorText = (errorText + text).slice(-2_000);
  });
  child.stdin.on("error", () => {}).end(files.map((file) => `${JSON.stringify(file)}\n`).join(""));
  const closed = new Promise<number | string>((resolve) => {
    child.once("close", (code, signal) => resolve(code ?? signal ?? "nothing"));
  });
  let current: string | undefined;
  let isStuck = false;
  const onStuck = () => {
    isStuck = true;
    child.kill("SIGKILL");
  };
  let timer = setTimeout(onStuck, FILE_TIMEOUT_MS);
  for await (const line of createInterface({ input: child.stdout })) {
    clearTimeout(timer);
    timer = setTimeout(onStuck, FILE_TIMEOUT_MS);
    const { begins, ends } = JSON.parse(line) as InspectLine;
    current = begins;
    if (ends !== undefined) results.set(ends.id, ends);
  }
  clearTimeout(timer);
  const status = await closed;
  if (current === undefined) {
    if (status === 0) return undefined;
    throw new Error(`the process that inspects files ended with ${status}: ${errorText}`);
  }
  const reason = isStuck ? `it took more than ${FILE_TIMEOUT_MS} ms` : `the process ended with ${status}`;
  return { id: current, problem: `crash: ${reason}: ${errorText}`, refused: [], openMs: 0, heldMs: 0 };
}
