import t from "tap";
import { defaultMemoryBudget, memoryOfTask } from "../../src/pool/chunk-task.js";
import { createEncodingPlan, type EncodingRequest } from "../../src/zarr/plan/create-encoding-plan.js";
import { storedArray } from "../support/datasets/stored-array.js";

const MIB = 2 ** 20;

/** Estimates a task in MiB, with stored chunks of 1 MiB, encoded with Blosc. */
function memoryOf(asked: EncodingRequest): number {
  const stored = storedArray({ shape: [1_024, 1_024], chunkShape: [512, 512] });
  return memoryOfTask({ plan: createEncodingPlan(stored, asked).plan }) / MIB;
}

t.test("a task takes stored, decoded and encoded bytes, and the copy that leaves the worker", async (t) => {
  t.equal(memoryOf({}), 2, "served as stored");
  t.equal(memoryOf({ compressor: null }), 3);
  t.equal(memoryOf({ compressor: { id: "gzip" } }), 4);
  t.equal(memoryOf({ compressor: { id: "zstd" } }), 6, "with its heap");
  t.equal(
    memoryOf({ compressor: null, chunkShape: [1_024, 1_024] }),
    3 + 2 * 4,
    "with the cached decoded chunk",
  );
});

t.test("processes share the memory of the machine, or of their control group", async (t) => {
  t.ok(defaultMemoryBudget() > 2 ** 26);
  t.ok(Math.abs(defaultMemoryBudget() - 4 * defaultMemoryBudget(4)) < 8);
});
