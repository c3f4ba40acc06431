/**
 * A process of its own: `node file-worker.js JSON` reads damaged files until its time is over, as a `FileFuzzOrder` says, and prints a
 * line of JSON before and after every batch. What is about to be read is always in the file `current`, for those who find the
 * process dead or stuck.
 */
import { mkdirSync } from "node:fs";
import { createFileTarget, type FileTarget, findSeeds } from "./file-targets.js";
import { fuzzFile } from "./fuzz-file.js";
import type { FileFuzzLine, FileFuzzOrder } from "./run-file-fuzz.js";
import { watchAllocations } from "./watch-allocations.js";
import { createInputKeeper } from "./worker-lines.js";

/** More than files as small as these can need: a chunk of 16 MiB, as it is read, decoded and encoded. */
const MAX_ALLOCATION_BYTES = 64 * 2 ** 20;
/** Resident memory, which contains buffers that were not collected yet. */
const MAX_RESIDENT_BYTES = 1536 * 2 ** 20;

const order = JSON.parse(process.argv[2]!) as FileFuzzOrder;
mkdirSync(order.folder, { recursive: true });
const seeds = findSeeds(order.seedFolders, order.only);
if (seeds.length === 0) throw new Error(`expected files whose names begin with ${order.only}, received none`);
print({ note: `${new Set(seeds.map(({ name }) => name)).size} files were damaged.` });
const targets = new Map<string, Promise<FileTarget>>();
const keepCurrent = createInputKeeper(order.folder);
const watch = watchAllocations();
const end = performance.now() + order.seconds * 1_000;

for (let batch = 0; performance.now() < end && batch < order.maxBatches; batch++) {
  const seed = seeds[(order.firstTarget + batch) % seeds.length]!;
  const number = order.seed + batch;
  print({ begins: { target: seed.name, seed: number } });
  keepCurrent(seed.bytes);
  const target = targets.get(seed.name) ?? createFileTarget(seed);
  targets.set(seed.name, target);
  watch.takeLargest();
  const result = await fuzzFile(await target, number, order.inputsPerBatch, keepCurrent);
  const largestAllocation = watch.takeLargest();
  const { rss } = process.memoryUsage();
  const problems = [
    ...(largestAllocation > MAX_ALLOCATION_BYTES
      ? [
          `expected allocations of at most ${MAX_ALLOCATION_BYTES} bytes, received one of ${largestAllocation}`,
        ]
      : []),
    ...(rss > MAX_RESIDENT_BYTES
      ? [`expected at most ${MAX_RESIDENT_BYTES} resident bytes, received ${rss}`]
      : []),
  ];
  const failures = [
    ...result.failures.map(({ bytes, ...failure }) => ({
      ...failure,
      bytes: Buffer.from(bytes).toString("base64"),
    })),
    ...problems.map((problem) => ({
      ...{ target: seed.name, seed: number, number: -1, kind: "any of the batch", problem },
      bytes: Buffer.from(seed.bytes).toString("base64"),
    })),
  ];
  print({ ends: { format: seed.format.id, ...result, failures, largestAllocation, rss } });
}

function print(line: FileFuzzLine): void {
  console.log(JSON.stringify(line));
}
