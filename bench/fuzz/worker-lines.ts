import { existsSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import type { Child } from "../children.js";

const CURRENT = "current";

/**
 * Yields the lines of JSON that a process prints, until it ends.
 * @throws Error if the process dies, or prints nothing for too long.
 */
export async function* linesOf<Line>(child: Child, timeoutMs: number): AsyncGenerator<Line> {
  const lines = createInterface({ input: child.process.stdout! })[Symbol.asyncIterator]();
  for (;;) {
    const stop = new AbortController();
    const late = sleep(timeoutMs, "late" as const, { signal: stop.signal }).catch(() => "late" as const);
    const next = await Promise.race([lines.next(), late]);
    stop.abort();
    if (next === "late") {
      child.process.kill("SIGKILL");
      throw new Error(`stuck: expected the batch to end within ${timeoutMs} ms`);
    }
    if (next.done) break;
    yield JSON.parse(next.value) as Line;
  }
  const status = await child.ended;
  if (status !== 0)
    throw new Error(`the process ended with ${status}: ${child.errorText().trim().slice(-500)}`);
}

/** Creates what keeps an input in a file before it is read, since the process may die over it. */
export function createInputKeeper(folder: string): (input: Uint8Array) => void {
  const current = openSync(join(folder, CURRENT), "w+");
  return (input) => {
    // The length comes first, so that a shorter input behind a longer one is not mistaken.
    const head = Buffer.alloc(4);
    head.writeUInt32LE(input.length);
    writeSync(current, head, 0, 4, 0);
    if (input.length > 0) writeSync(current, input, 0, input.length, 4);
  };
}

/** Returns what the process was about to read, as it keeps it in a file. */
export function currentInput(folder: string): Uint8Array {
  const file = join(folder, CURRENT);
  if (!existsSync(file)) return new Uint8Array(0);
  const bytes = readFileSync(file);
  return bytes.length < 4 ? new Uint8Array(0) : bytes.subarray(4, 4 + bytes.readUInt32LE(0));
}
