import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { inflateSync } from "node:zlib";
import t from "tap";
import { createWorkerFeed } from "../../src/chunk/worker-feed.js";
import { createFileSource } from "../../src/formats/file-source.js";
import type { GivenChunk } from "../../src/pool/chunk-task.js";
import { createTaskRunner } from "../../src/pool/run-chunk-task.js";
import { createFileStore } from "../../src/stores/file-store.js";
import { createEncodingPlan } from "../../src/zarr/plan/create-encoding-plan.js";
import type { StoredArray } from "../../src/zarr/stored-array.js";
import { DATA_OFFSET, plainArray, plainFile, plainFormat } from "../support/plain-format.js";
import { makeDirectory } from "../support/write-store.js";

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
