import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextIteration } from "node:timers/promises";
import { inflateSync } from "node:zlib";
import t from "tap";
import { createSharedMemory } from "../../src/chunk/memory.js";
import { createWorkerFeed } from "../../src/chunk/worker-feed.js";
import { createFileSource } from "../../src/formats/file-source.js";
import type { ChunkTask, GivenChunk } from "../../src/pool/chunk-task.js";
import { createTaskRunner } from "../../src/pool/run-chunk-task.js";
import { createFileStore } from "../../src/stores/file-store.js";
import {
  type ChunkPiece,
  type ChunkReader,
  type PartChunkReader,
  PIECED,
} from "../../src/zarr/chunk-reader.js";
import { createEncodingPlan } from "../../src/zarr/plan/create-encoding-plan.js";
import type { EncodingPlan } from "../../src/zarr/plan/encoding-plan.js";
import type { StoredArray } from "../../src/zarr/stored-array.js";
import { layoutOf } from "../support/datasets/joined-array.js";
import { storedArray } from "../support/datasets/stored-array.js";
import { DATA_OFFSET, plainArray, plainFile, plainFormat } from "../support/plain-format.js";
import { makeDirectory } from "../support/write-store.js";

const FORM = { dtype: "|u1", codecs: [], compressorCount: 0 as const };

/** A plan of an array of bytes, each of which is a part of its own with its own reader. */
function planOf(count: number, chunkLength: number, reader: ChunkReader, partChunk = 1): EncodingPlan {
  const joined = storedArray({ ...FORM, shape: [count], chunkShape: [chunkLength] });
  const part = storedArray({ ...FORM, shape: [1], chunkShape: [partChunk] });
  const layout = layoutOf({ stored: part, reader, from: 0, length: 1 }, "p", joined);
  const parts: PartChunkReader = {
    version: () => ({ token: "v" }),
    read: () => Promise.reject(new Error("expected to be asked for pieces")),
    parts: {
      variantOf: () => PIECED,
      piecesOf: async ([index = 0]) =>
        Array.from({ length: chunkLength }, (_, at): ChunkPiece => {
          const place = index * chunkLength + at;
          const [origin, begin, end] = [[place], [place], [place + 1]];
          return { layout, reader, coords: [0], part: `p${place}`, origin, begin, end };
        }),
    },
  };
  const chunks = { kind: "parts", store: "s", path: "p", axis: 0, openReader: () => parts } as const;
  return createEncodingPlan({ ...joined, variants: [[]], chunks }, { compressor: null }).plan;
}

/** A reader whose reads wait until they are let go. */
function waitingReader() {
  const waiting: (() => void)[] = [];
  let reads = 0;
  const reader: ChunkReader = {
    version: () => ({ token: "1" }),
    async read() {
      reads++;
      await new Promise<void>((resolve) => waiting.push(resolve));
      return { bytes: Uint8Array.of(reads), version: "1" };
    },
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

/** Arrays of two chunks, whose items are 1 to 4. */
const ARRAYS = [
  plainArray({
    ...{ name: "listed", shape: [4], chunkShape: [2] },
    chunks: {
      kind: "listed",
      offsets: Float64Array.of(DATA_OFFSET, DATA_OFFSET + 2),
      byteLengths: Uint32Array.of(2, 2),
    },
  }),
  plainArray({
    ...{ name: "made", shape: [4], chunkShape: [2] },
    chunks: {
      kind: "made",
      recipe: [
        [
          [0, 1],
          [1, 1],
        ],
        [[2, 2]],
      ],
    },
  }),
];

t.test(
  "workers get places in local files, and other bytes in memory that no message has to copy",
  async (t) => {
    const directory = await makeDirectory(t);
    await writeFile(
      join(directory, "a.plain"),
      plainFile({ arrays: ARRAYS, data: Uint8Array.of(1, 2, 3, 4) }),
    );
    const source = createFileSource({
      ...{ location: "a", store: createFileStore(directory), key: "a.plain" },
      ...{ formats: [plainFormat], freshness: "always" },
    });
    const { groups } = await source.readTree();
    for (const stored of groups[0]?.arrays ?? []) {
      const { plan } = createEncodingPlan(stored, { chunkShape: [4] });
      let given: readonly GivenChunk[] = [];
      const feed = createWorkerFeed(async (task) => {
        given = task.stored ?? [];
        return { status: "absent" };
      });
      const isPlace = stored.name === "listed";
      for (const time of ["first", "again"]) {
        await feed({ plan, chunkCoords: [0] });
        t.same(
          given.map(({ bytes, place }) => [
            ...(bytes ?? []),
            (bytes?.buffer as ArrayBufferLike | undefined) instanceof SharedArrayBuffer,
            place && [place.directory, place.key, place.offset, place.byteLength],
          ]),
          [0, 2].map((at) =>
            isPlace
              ? [false, [directory, "a.plain", DATA_OFFSET + at, 2]]
              : [at + 1, at + 2, true, undefined],
          ),
          `${stored.name}, ${time}`,
        );
      }
    }
  },
);

t.test(
  "a worker reads the places it gets, pads a short chunk, and refuses another version of the file",
  async (t) => {
    const directory = await makeDirectory(t);
    const array = plainArray({
      ...{ name: "strided", shape: [5], chunkShape: [2] },
      chunks: {
        kind: "strided",
        ...{ start: DATA_OFFSET, strides: [2], byteLength: 2, last: { axis: 0, byteLength: 1 } },
      },
    });
    const path = join(directory, "a.plain");
    await writeFile(path, plainFile({ arrays: [array], data: Uint8Array.of(1, 2, 3, 4, 5, 99) }));
    const source = createFileSource({
      ...{ location: "a", store: createFileStore(directory), key: "a.plain" },
      ...{ formats: [plainFormat], freshness: "always" },
    });
    const [stored] = (await source.readTree()).groups[0]?.arrays ?? [];
    const { plan } = createEncodingPlan(stored as StoredArray, { chunkShape: [6], compressor: null });
    const run = createTaskRunner();
    const make = createWorkerFeed((task) => run(task));
    const made = await make({ plan, chunkCoords: [0] });
    t.same(made.status === "encoded" && [...made.bytes], [1, 2, 3, 4, 5, 0]);
    const { plan: same } = createEncodingPlan(stored as StoredArray, {
      compressor: { id: "zlib", level: 1 },
    });
    const last = await make({ plan: same, chunkCoords: [2] });
    t.same(last.status === "encoded" && [...inflateSync(last.bytes)], [5, 0]);
    await writeFile(path, plainFile({ arrays: [array], data: Uint8Array.of(6, 7, 8, 9, 10, 99, 1) }));
    t.match(await make({ plan: same, chunkCoords: [0] }), {
      status: "failed",
      error: { code: "source-changed" },
    });
  },
);

const KIB = 1024;
const isShared = (bytes: Uint8Array) => (bytes.buffer as ArrayBufferLike) instanceof SharedArrayBuffer;

t.test("memory is used again after a task, and never exceeds its bound", async (t) => {
  const memory = createSharedMemory(64 * KIB);
  const one = memory.lease();
  const first = one.allocate(20 * KIB);
  const second = one.allocate(32 * KIB);
  t.same([first.length, isShared(first), isShared(second)], [20 * KIB, true, true]);
  t.equal(memory.byteLength, 64 * KIB);
  const other = memory.lease();
  t.notOk(isShared(other.allocate(10)), "no shared memory is left");
  one.end(true);
  t.equal(other.allocate(30 * KIB).buffer, second.buffer);
  t.equal(other.place(first).buffer, first.buffer, "bytes of another task are copied");
  t.equal(memory.byteLength, 64 * KIB);
});

t.test("memory that a worker may still read is not used again", async (t) => {
  const memory = createSharedMemory(64 * KIB);
  const lease = memory.lease();
  const bytes = lease.allocate(40 * KIB);
  lease.end(false);
  t.equal(memory.byteLength, 0);
  t.not(memory.lease().allocate(40 * KIB).buffer, bytes.buffer);
  t.notOk(isShared(lease.allocate(10)), "a read that comes late gets memory of its own");
  t.equal(memory.byteLength, 64 * KIB);
});
