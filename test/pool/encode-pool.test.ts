import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { crc32 } from "node:zlib";
import fc from "fast-check";
import { pino } from "pino";
import t, { type Test } from "tap";
import { elementCount } from "../../src/model/chunk-grid.js";
import { createEncodePool, type EncodePool, type EncodePoolOptions } from "../../src/pool/encode-pool.js";
import { createTaskRunner } from "../../src/pool/run-chunk-task.js";
import type { CodecSpec } from "../../src/zarr/codec-spec.js";
import { createEncodingPlan } from "../../src/zarr/create-encoding-plan.js";
import type { EncodingPlan } from "../../src/zarr/encoding-plan.js";
import { arrayBytes, gridPositions, readerOf } from "../codec/stored-chunks.js";
import { storedArray } from "../zarr/stored-array.js";

function openPool(t: Test, options: Partial<EncodePoolOptions> = {}): EncodePool {
  const pool = createEncodePool({
    threads: 2,
    withChecksums: true,
    log: pino({ level: "silent" }),
    ...options,
  });
  t.teardown(() => pool.close());
  return pool;
}

const crashing = fileURLToPath(new URL("./crashing-worker.js", import.meta.url));

/** What the crashing worker is to do. */
function order(number: number, path = "g/t") {
  return { plan: { path } as EncodingPlan, chunkCoords: [number] };
}

async function writeChunks(directory: string): Promise<void> {
  const stored = storedArray();
  const reader = await readerOf(stored, arrayBytes(stored.shape, 4));
  mkdirSync(directory, { recursive: true });
  for (const coords of gridPositions([3, 3])) {
    const chunk = await reader.read(coords);
    if (coords.join(".") !== "1.1" && chunk !== undefined)
      writeFileSync(join(directory, coords.join(".")), chunk.bytes);
  }
}

/** A worker starts within it on a busy machine, too: starting is part of a task's time. */
const STUCK_AFTER_MS = 4_000;

t.test("a worker gives the same as the same code inline", async (t) => {
  const pool = openPool(t);
  const inline = createTaskRunner({ withChecksums: true });
  const directory = t.testdir();
  await writeChunks(directory);
  const source = { kind: "files", directory, keyEncoding: { name: "v2", separator: "." } } as const;
  const buffer = new SharedArrayBuffer(480);
  new Uint8Array(buffer).set(arrayBytes([10, 12], 4));
  const memory = {
    chunkShape: [10, 12],
    codecs: [],
    compressorCount: 0,
    chunks: { kind: "memory", buffer, byteOffset: 0, byteLength: 480 },
  } as const;

  await fc.assert(
    fc.asyncProperty(
      fc.boolean(),
      fc.option(fc.tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 14 })), {
        nil: undefined,
      }),
      fc.constantFrom<CodecSpec | null | undefined>(
        undefined,
        null,
        { id: "zstd" },
        { id: "lz4" },
        { id: "blosc" },
      ),
      fc.boolean(),
      async (isMemory, chunkShape, compressor, absentIsServed) => {
        const stored = storedArray({
          ...(isMemory ? memory : { chunks: source }),
          fill: { served: null, item: new Uint8Array([1, 2, 3, 4]), absentIsServed },
        });
        const { plan } = createEncodingPlan(stored, { chunkShape, compressor });
        for (const chunkCoords of [...gridPositions(plan.served.gridShape)].slice(0, 6)) {
          const [a, b] = await Promise.all([
            pool.makeChunk({ plan, chunkCoords }),
            inline({ plan, chunkCoords }),
          ]);
          const { timings: _a, ...ours } = a as { timings?: unknown; status: string };
          const { timings: _b, ...theirs } = b as { timings?: unknown; status: string };
          t.notMatch(ours, { status: "failed" });
          if (JSON.stringify(ours) !== JSON.stringify(theirs)) return false;
        }
        return true;
      },
    ),
    { numRuns: 40 },
  );
});

t.test("encoded bytes come as one whole buffer, with timings", async (t) => {
  const pool = openPool(t);
  const buffer = new SharedArrayBuffer(480);
  const stored = storedArray({
    chunkShape: [10, 12],
    codecs: [],
    chunks: { kind: "memory", buffer, byteOffset: 0, byteLength: 480 },
  });
  const { plan } = createEncodingPlan(stored, { compressor: { id: "blosc" } });
  const made = await pool.makeChunk({ plan, chunkCoords: [0, 0] });
  if (made.status !== "encoded") throw new Error(made.status);
  t.equal(made.checksum, crc32(made.bytes));
  const expected = Buffer.from(made.bytes);
  for (let i = 0; i < 5; i++) {
    const memory = made.bytes.buffer;
    pool.recycle?.(made.bytes);
    const again = await pool.makeChunk({ plan, chunkCoords: [0, 0] });
    t.ok(
      again.status === "encoded" && expected.equals(again.bytes),
      "the same in memory that was used before",
    );
    t.ok(i > 0 || memory.byteLength === 0, "which is the worker's again");
    if (again.status === "encoded") pool.recycle?.(again.bytes);
  }
  t.ok(made.bytes instanceof Uint8Array);
  t.ok(Object.values(made.timings).every((duration) => duration >= 0));
  t.ok(made.timings.encode > 0);
  t.equal(elementCount(plan.served.chunkShape) * 4, 480);
});

t.test("errors come back with code and message", async (t) => {
  const pool = openPool(t);
  const directory = t.testdir({ "0.0": "this is no Blosc chunk at all" });
  const stored = storedArray({
    chunks: { kind: "files", directory, keyEncoding: { name: "v2", separator: "." } },
  });
  const { plan } = createEncodingPlan(stored, { compressor: null });
  const outcome = await pool.makeChunk({ plan, chunkCoords: [0, 0] });
  t.match(outcome, {
    status: "failed",
    error: {
      code: "corrupt-chunk",
      message: /^array 'g\/t': stored chunk 0\.0: blosc: expected format version 2/,
    },
  });
});

t.test("a crashed worker fails its own task, by name, and is replaced", async (t) => {
  const pool = openPool(t, { workerFile: crashing });
  const results = await Promise.all(
    [1, 0, 2, 0, 5, 0, 2, 0, 0].map((number) => pool.makeChunk(order(number))),
  );
  t.same(
    results.map(({ status }) => status),
    ["failed", "absent", "failed", "absent", "failed", "absent", "failed", "absent", "absent"],
  );
  t.match(results[0], {
    error: {
      code: "codec-failed",
      message: /array 'g\/t': the worker for chunk 1 failed: thrown in a worker/,
    },
  });
  t.match(results[2], { error: { code: "codec-failed", message: /exited with code: 1/ } });
  t.match(await pool.makeChunk(order(0)), { status: "absent" });
});

t.test("a worker that runs out of memory takes nothing else with it", async (t) => {
  const pool = openPool(t, { workerFile: crashing, threads: 1 });
  t.match(await pool.makeChunk(order(6)), {
    status: "failed",
    error: { code: "codec-failed", message: /memory/ },
  });
  t.match(await pool.makeChunk(order(0)), { status: "absent" });
});

t.test("a worker that is worn out hands its task on", async (t) => {
  const pool = openPool(t, { workerFile: crashing, threads: 1 });
  const file = join(t.testdir(), "seen");
  t.match(await pool.makeChunk(order(3, file)), { status: "absent" });
});

t.test("a worker that takes too long is ended", async (t) => {
  const pool = openPool(t, { workerFile: crashing, threads: 1, taskTimeoutMs: STUCK_AFTER_MS });
  t.match(await pool.makeChunk(order(4)), {
    status: "failed",
    error: { message: new RegExp(`took longer than ${STUCK_AFTER_MS} ms`) },
  });
  t.match(await pool.makeChunk(order(0)), { status: "absent" });
});

t.test("tasks wait in line up to a limit", async (t) => {
  const pool = openPool(t, { workerFile: crashing, threads: 1, maxQueued: 3 });
  const outcomes = Promise.all([0, 0, 0, 0, 0, 0].map((number) => pool.makeChunk(order(number))));
  t.equal(pool.queued, 3);
  t.same(
    (await outcomes).map((outcome) => (outcome.status === "failed" ? outcome.error.code : outcome.status)),
    ["absent", "absent", "absent", "absent", "overloaded", "overloaded"],
  );
  t.equal(pool.queued, 0);
});

t.test("a task that nobody waits for any more makes way for others", async (t) => {
  const pool = openPool(t, { workerFile: crashing, threads: 1, maxQueued: 2, taskTimeoutMs: STUCK_AFTER_MS });
  let isWanted = true;
  const first = pool.makeChunk(order(4));
  // Would end the worker, were it begun.
  const given = [2, 2].map((number) => pool.makeChunk(order(number), () => isWanted));
  t.match(await pool.makeChunk(order(0)), { error: { code: "overloaded" } });
  isWanted = false;
  t.equal(pool.queued, 2);
  const next = [pool.makeChunk(order(0)), pool.makeChunk(order(0))];
  t.equal(pool.queued, 2, "there is room for those who wait");
  for (const outcome of await Promise.all(given)) {
    t.match(outcome, { status: "failed", error: { code: "overloaded", message: /nobody waits/ } });
  }
  await first;
  for (const outcome of await Promise.all(next)) t.match(outcome, { status: "absent" });
});

t.test("closing settles everything", async (t) => {
  const pool = openPool(t, { workerFile: crashing, threads: 1 });
  const outcomes = [4, 0, 0].map((number) => pool.makeChunk(order(number)));
  await new Promise((resolve) => setTimeout(resolve, 200));
  await pool.close();
  for (const outcome of await Promise.all(outcomes)) {
    t.match(outcome, { status: "failed", error: { code: "draining" } });
  }
  t.match(await pool.makeChunk(order(0)), { status: "failed", error: { code: "draining" } });
});

t.test("a worker that cannot start fails its tasks, and the next ones are tried again", async (t) => {
  const workerFile = join(t.testdir({ "broken.mjs": "throw new Error('cannot start');" }), "broken.mjs");
  const pool = openPool(t, { workerFile });
  for (let round = 0; round < 2; round++) {
    const outcomes = await Promise.all([0, 0, 0].map((number) => pool.makeChunk(order(number))));
    for (const outcome of outcomes) {
      t.match(outcome, {
        status: "failed",
        error: { code: "codec-failed", message: /cannot start|terminat/i },
      });
    }
  }
});
