import t from "tap";
import { defaultMemoryBudget, memoryOfTask } from "../../src/pool/chunk-task.js";
import { createQuarantine } from "../../src/pool/encode-pool.js";
import { createEncodingPlan, type EncodingRequest } from "../../src/zarr/plan/create-encoding-plan.js";
import { storedArray } from "../support/datasets/stored-array.js";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

/** A quarantine whose clock the test sets. */
function create() {
  const clock = { ms: 0 };
  const quarantine = createQuarantine(() => clock.ms);
  return {
    clock,
    quarantine,
    /** Puts a chunk into quarantine. @returns Milliseconds for which it is refused. */
    refusedFor(chunkId: string): number {
      quarantine.add(chunkId, `because of ${chunkId}`);
      const addedAt = clock.ms;
      while (quarantine.reasonFor(chunkId) !== undefined) clock.ms += SECOND;
      return clock.ms - addedAt;
    },
  };
}

t.test("a chunk is refused for 5 s at first, and for twice as long each time, up to a minute", async (t) => {
  const { refusedFor } = create();
  const times = Array.from({ length: 7 }, () => refusedFor("a"));
  t.same(
    times,
    [5, 10, 20, 40, 60, 60, 60].map((seconds) => seconds * SECOND),
  );
});

t.test("a chunk with another version counts as new, and other chunks are not refused", async (t) => {
  const { quarantine, refusedFor } = create();
  for (let time = 0; time < 5; time++) refusedFor("a\n1");
  quarantine.add("a\n1", "again");
  t.equal(quarantine.reasonFor("a\n1"), "again");
  t.equal(quarantine.reasonFor("a\n2"), undefined);
  t.equal(refusedFor("a\n2"), 5 * SECOND);
});

t.test(
  "a chunk counts as new ten minutes after its last failure, even if it was requested meanwhile",
  async (t) => {
    const { clock, quarantine, refusedFor } = create();
    refusedFor("a");
    quarantine.add("a", "again");
    for (let minute = 0; minute < 9; minute++) {
      clock.ms += MINUTE;
      quarantine.reasonFor("a");
    }
    t.equal(refusedFor("a"), 20 * SECOND);
    quarantine.add("a", "again");
    for (let minute = 0; minute < 10; minute++) {
      clock.ms += MINUTE;
      quarantine.reasonFor("a");
    }
    t.equal(refusedFor("a"), 5 * SECOND);
  },
);

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
