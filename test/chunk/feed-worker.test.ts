import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { createWorkerFeed } from "../../src/chunk/feed-worker.js";
import type { GivenChunk } from "../../src/pool/chunk-task.js";
import { createFileStore } from "../../src/source/bytes/file-store.js";
import { createFileSource } from "../../src/source/formats/file-source.js";
import { createEncodingPlan } from "../../src/zarr/plan/create-encoding-plan.js";
import { DATA_OFFSET, plainArray, plainFile, plainFormat } from "../source/formats/plain-format.js";
import { makeDirectory } from "../source/write-store.js";

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

t.test("workers get bytes that no message has to copy, however they were read", async (t) => {
  const directory = await makeDirectory(t);
  await writeFile(join(directory, "a.plain"), plainFile({ arrays: ARRAYS, data: Uint8Array.of(1, 2, 3, 4) }));
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
    for (const time of ["first", "again"]) {
      await feed({ plan, chunkCoords: [0] });
      t.same(
        given.map(({ bytes = new Uint8Array(0) }) => [
          ...bytes,
          (bytes.buffer as ArrayBufferLike) instanceof SharedArrayBuffer,
        ]),
        [
          [1, 2, true],
          [3, 4, true],
        ],
        `${stored.name}, ${time}`,
      );
    }
  }
});
