/**
 * A process of its own: `node fuzz-worker.js JSON` feeds damaged chunks to every decoder in turn until its time is over, as a
 * `FuzzOrder` says, prints a line of JSON after every batch, and ends. What is about to be decoded is always in the file
 * `current`, so that whoever finds the process dead or stuck has it.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { isNumcodecsWornOut } from "../../src/codec/zstd.js";
import { fuzzBatch } from "./fuzz-batch.js";
import { createFuzzTargets } from "./fuzz-targets.js";
import type { FuzzLine, FuzzOrder } from "./run-fuzz.js";
import { watchAllocations } from "./watch-allocations.js";
import { createInputKeeper } from "./worker-lines.js";

/** More than chunks as small as these can need, and less than what a header may promise. */
const MAX_ALLOCATION_BYTES = 16 * 2 ** 20;

const order = JSON.parse(process.argv[2]!) as FuzzOrder;
mkdirSync(order.folder, { recursive: true });
const { targets: all, notes } = await createFuzzTargets(join(order.folder, "native"));
const targets = all.filter(({ name }) => name.startsWith(order.only));
if (targets.length === 0) {
  const names = all.map(({ name }) => name).join("; ");
  throw new Error(`expected the beginning of one of ${names}, received ${order.only}`);
}
for (const note of notes) print({ note });
const keepCurrent = createInputKeeper(order.folder);
const watch = watchAllocations();
const end = performance.now() + order.seconds * 1_000;

let inputs = 0;
for (let batch = 0; performance.now() < end && inputs < order.maxInputs; batch++) {
  const number = order.firstTarget + batch;
  const target = targets[number % targets.length]!;
  const seed = order.seed + batch;
  print({ begins: { target: target.name, seed, number } });
  watch.takeLargest();
  const result = await fuzzBatch(target, seed, order.inputsPerBatch, undefined, keepCurrent);
  inputs += result.inputs;
  const largestAllocation = watch.takeLargest();
  const failures = result.failures.map(({ bytes, ...failure }) => ({
    ...failure,
    bytes: Buffer.from(bytes).toString("base64"),
  }));
  if (largestAllocation > MAX_ALLOCATION_BYTES) {
    const problem = `expected allocations of at most ${MAX_ALLOCATION_BYTES} bytes, received one of ${largestAllocation}`;
    const { step, encoded } = target.chunks[0]!;
    const bytes = Buffer.from(encoded).toString("base64");
    failures.push({ target: target.name, seed, number: -1, kind: "any of the batch", problem, step, bytes });
  }
  const { rss } = process.memoryUsage();
  print({ ends: { target: target.name, ...result, failures, largestAllocation, rss } });
  // As a worker does: nothing else gives back what numcodecs.js leaks.
  if (isNumcodecsWornOut()) break;
}

function print(line: FuzzLine): void {
  console.log(JSON.stringify(line));
}
