import { setImmediate as nextIteration } from "node:timers/promises";
import t from "tap";
import { createWorkerFeed } from "../../src/chunk/worker-feed.js";
import type { ChunkTask } from "../../src/pool/chunk-task.js";
import {
  type ChunkPiece,
  type ChunkReader,
  type PartChunkReader,
  PIECED,
} from "../../src/zarr/chunk-reader.js";
import { createEncodingPlan } from "../../src/zarr/plan/create-encoding-plan.js";
import type { EncodingPlan } from "../../src/zarr/plan/encoding-plan.js";
import { layoutOf } from "../support/datasets/joined-array.js";
import { storedArray } from "../support/datasets/stored-array.js";

const FORM = { dtype: "|u1", codecs: [], compressorCount: 0 as const };

/** A plan of an array of bytes, each of which is a part of its own with its own reader. */
function planOf(count: number, chunkLength: number, reader: ChunkReader, partChunk = 1): EncodingPlan {
  const joined = storedArray({ ...FORM, shape: [count], chunkShape: [chunkLength] });
  const part = storedArray({ ...FORM, shape: [1], chunkShape: [partChunk] });
  const layout = layoutOf({ stored: part, reader, from: 0, length: 1 }, "p", joined);
  const parts: PartChunkReader = {
    variantOf: () => PIECED,
    version: async () => "v",
    read: () => Promise.reject(new Error("expected to be asked for pieces")),
    measure: async () => undefined,
    piecesOf: async ([index = 0]) =>
      Array.from({ length: chunkLength }, (_, at): ChunkPiece => {
        const place = index * chunkLength + at;
        const [origin, begin, end] = [[place], [place], [place + 1]];
        return { layout, reader, coords: [0], part: `p${place}`, origin, begin, end };
      }),
  };
  const chunks = { kind: "parts", store: "s", path: "p", axis: 0, openReader: () => parts } as const;
  return createEncodingPlan({ ...joined, variants: [[]], chunks }, { compressor: null }).plan;
}

/** A reader whose reads wait until they are let go. */
function waitingReader() {
  const waiting: (() => void)[] = [];
  let reads = 0;
  const reader: ChunkReader = {
    version: async () => "1",
    async read() {
      reads++;
      await new Promise<void>((resolve) => waiting.push(resolve));
      return { bytes: Uint8Array.of(reads), version: "1" };
    },
    measure: async () => undefined,
  };
  return {
    reader,
    waiting: () => waiting.length,
    letGo: () => {
      for (const go of waiting.splice(0)) go();
    },
  };
}

/** Waits until as many reads wait as will. */
async function settled(waiting: () => number): Promise<number> {
  for (let iterations = 0, before = -1; iterations < 10; iterations++) {
    if (waiting() !== before) iterations = 0;
    before = waiting();
    await nextIteration();
  }
  return waiting();
}

t.test("thousands of pieces are read some at a time", async (t) => {
  const { reader, waiting, letGo } = waitingReader();
  const tasks: ChunkTask[] = [];
  const make = createWorkerFeed(async (task) => {
    tasks.push(task);
    return { status: "absent" };
  });
  const making = make({ plan: planOf(2_000, 1_000, reader), chunkCoords: [1] });
  let lots = 0;
  for (; tasks.length === 0; lots++) {
    t.ok((await settled(waiting)) <= 16);
    letGo();
    await nextIteration();
  }
  await making;
  t.ok(lots >= 1_000 / 16);
  const [chunk] = tasks[0]?.stored ?? [];
  t.equal(chunk?.pieces?.length, 1_000);
  const bytes = chunk?.pieces?.[999]?.given.bytes?.buffer as ArrayBufferLike | undefined;
  t.ok(bytes instanceof SharedArrayBuffer);
});

t.test("the bytes of pieces count, however few of them a chunk needs", async (t) => {
  const { reader, waiting, letGo } = waitingReader();
  const make = createWorkerFeed(async () => ({ status: "absent" }));
  // Each piece is one byte of a chunk of 40 MiB.
  const large = planOf(8, 2, reader, 40 * 2 ** 20);
  const making = [0, 1, 2].map((index) => make({ plan: large, chunkCoords: [index] }));
  for (let task = 0; task < 3; task++) {
    t.equal(await settled(waiting), 2, "the pieces of one task");
    letGo();
    await making[task];
  }
  const small = planOf(12, 2, reader);
  const others = [3, 4, 5].map((index) => make({ plan: small, chunkCoords: [index] }));
  t.equal(await settled(waiting), 6);
  letGo();
  await Promise.all(others);
});

t.test("a task that is cancelled before its turn reads no pieces", async (t) => {
  const { reader, waiting, letGo } = waitingReader();
  const make = createWorkerFeed(async () => ({ status: "absent" }));
  const large = planOf(8, 2, reader, 40 * 2 ** 20);
  const first = make({ plan: large, chunkCoords: [0] });
  t.equal(await settled(waiting), 2);
  const controller = new AbortController();
  const second = make({ plan: large, chunkCoords: [1] }, controller.signal);
  t.equal(await settled(waiting), 2);
  controller.abort();
  t.match(await second, { status: "failed", error: { code: "cancelled" } });
  letGo();
  t.match(await first, { status: "absent" });
  t.equal(await settled(waiting), 0);
});
