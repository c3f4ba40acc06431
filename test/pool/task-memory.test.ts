import t from "tap";
import { defaultMemoryBudget, memoryOfTask } from "../../src/pool/task-memory.js";
import { createEncodingPlan, type EncodingRequest } from "../../src/zarr/plan/create-encoding-plan.js";
import { storedArray } from "../zarr/stored-array.js";

const MIB = 2 ** 20;

/** Of stored chunks of 1 MiB, encoded with Blosc. */
function memoryOf(asked: EncodingRequest): number {
  const stored = storedArray({ shape: [1_024, 1_024], chunkShape: [512, 512] });
  return memoryOfTask(createEncodingPlan(stored, asked).plan) / MIB;
}

t.test("stored, decoded and encoded bytes and the copy that goes out", async (t) => {
  t.equal(memoryOf({}), 2, "as it is stored");
  t.equal(memoryOf({ compressor: null }), 3);
  t.equal(memoryOf({ compressor: { id: "gzip" } }), 4);
  t.equal(memoryOf({ compressor: { id: "zstd" } }), 6, "with its heap");
  t.equal(memoryOf({ compressor: null, chunkShape: [1_024, 1_024] }), 3 + 2 * 4, "what is decoded is kept");
});

t.test("processes share the memory of the machine, or of their group", async (t) => {
  t.ok(defaultMemoryBudget() > 2 ** 26);
  t.ok(Math.abs(defaultMemoryBudget() - 4 * defaultMemoryBudget(4)) < 8);
});
