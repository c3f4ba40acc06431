import { monitorEventLoopDelay } from "node:perf_hooks";
import { createInterface } from "node:readline";
import { inspectTree } from "../../src/cli/inspect.js";
import { messageOf, ZpublishError } from "../../src/errors.js";
import { openSource } from "../../src/open/open-source.js";
import type { Refusal } from "../../src/zarr/stored-tree.js";

/** A line of what this program prints: a file that it begins with, or what became of it. */
export interface InspectLine {
  readonly begins?: string;
  readonly ends?: InspectedFile;
}

/** A file as the service opens it. */
export interface InspectedFile {
  readonly id: string;
  /** Code and message if it is refused. */
  readonly problem?: string;
  readonly refused: readonly Refusal[];
  readonly openMs: number;
  readonly heldMs: number;
}

const delays = monitorEventLoopDelay({ resolution: 1 });
delays.enable();
const print = (line: InspectLine) => process.stdout.write(`${JSON.stringify(line)}\n`);

for await (const line of createInterface({ input: process.stdin })) {
  const { id, path } = JSON.parse(line) as { id: string; path: string };
  print({ begins: id });
  delays.reset();
  const began = performance.now();
  let problem: string | undefined;
  let refused: readonly Refusal[] = [];
  try {
    const source = await openSource(path);
    try {
      ({ refused } = await inspectTree(path, await source.readTree()));
    } finally {
      await source.close();
    }
  } catch (error) {
    // An error of any other class is a defect, which the caller has to see.
    problem =
      error instanceof ZpublishError ? `${error.code}: ${error.message}` : `defect: ${messageOf(error)}`;
  }
  const openMs = performance.now() - began;
  const heldMs = delays.max / 1e6;
  print({ ends: { id, ...(problem === undefined ? {} : { problem }), refused, openMs, heldMs } });
}
