import { utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { createFileSource } from "../../../src/formats/file-source.js";
import { openSource } from "../../../src/open/open-source.js";
import { createFileStore } from "../../../src/stores/file-store.js";
import { openPyramid } from "../../support/datasets/pyramid.js";
import { startFaultyOrigin } from "../../support/origins/faulty-origin.js";
import { DATA_OFFSET, plainArray, plainFile, plainFormat } from "../../support/plain-format.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../../support/write-store.js";

/** A square of bytes in chunks of 2 × 2, each of which holds its number. */
const SIDE = 16;
const GRID = SIDE / 2;
const numbers = Array.from({ length: GRID * GRID }, (_, index) => index);
const request = { keepsType: true, factors: [2, 2] };

t.test(
  "levels of a remote store read each chunk once, and ask again as often as it is believed",
  async (t) => {
    const directory = await makeDirectory(t);
    const files: Record<string, Uint8Array | object> = {
      ".zgroup": zgroup,
      "a/.zarray": { ...zarray, shape: [SIDE, SIDE], chunks: [2, 2] },
    };
    for (const number of numbers)
      files[`a/${Math.floor(number / GRID)}.${number % GRID}`] = new Uint8Array(4).fill(number);
    await writeFiles(directory, files);
    const origin = await startFaultyOrigin(t, { directory });
    const source = await openSource(origin.url, { freshness: "always", names: ["a"] });
    t.teardown(() => source.close());
    const pyramid = await openPyramid(source, "a", { levels: 3, request, freshness: "always" });
    origin.resetCounts();
    const before = await pyramid.fetch(3, "0.0");
    t.equal(origin.count({ key: /^a\/\d/, status: 200 }), numbers.length);
    origin.put("a/0.0", new Uint8Array(4).fill(200));
    const after = await pyramid.fetch(3, "0.0");
    t.not(after.etag, before.etag);
    t.not(after.bytes?.[0], before.bytes?.[0]);
    t.equal(after.bytes?.[3], before.bytes?.[3]);
    origin.setFault(({ key }) => (key === "a/7.7" ? { status: 403 } : undefined));
    await t.rejects(pyramid.fetch(3, "0.0"), { code: "source-unreadable" });
  },
);

t.test("levels of a file that is replaced say so, until the dataset is refreshed", async (t) => {
  const directory = await makeDirectory(t);
  const file = join(directory, "a.plain");
  const write = async (data: Uint8Array, seconds: number) => {
    const offsets = Float64Array.from(numbers, (number) => DATA_OFFSET + 4 * number);
    // The last chunk is absent.
    offsets[offsets.length - 1] = -1;
    const chunks = {
      kind: "listed",
      offsets,
      byteLengths: Uint32Array.from(numbers, (number) => (number === numbers.length - 1 ? 0 : 4)),
    } as const;
    const array = plainArray({ name: "a", shape: [SIDE, SIDE], chunkShape: [2, 2], chunks });
    await writeFile(file, plainFile({ arrays: [array], data }));
    await utimes(file, seconds, seconds);
  };
  const source = () =>
    createFileSource({
      ...{ location: "a", store: createFileStore(directory), key: "a.plain" },
      ...{ formats: [plainFormat], freshness: "always" },
    });
  await write(Uint8Array.from(numbers.flatMap((number) => new Array<number>(4).fill(number))), 1e9);
  const pyramid = await openPyramid(source(), "a", { levels: 3, request, freshness: "always" });
  const before = await pyramid.fetch(3, "0.0");
  // Means are rounded half to even: 0, 1, 8, 9 make 4, and 4, 6, 20, 22 make 13.
  t.same([...(before.bytes ?? [])].slice(0, 2), [13, 17]);
  await write(new Uint8Array(4 * numbers.length).fill(9), 1e9 + 60);
  await t.rejects(pyramid.fetch(3, "0.0"), {
    code: "source-changed",
    details: { staleIdentity: pyramid.base.identity },
  });
  const reopened = await openPyramid(source(), "a", { levels: 3, request, freshness: "always" });
  t.same([...((await reopened.fetch(3, "0.0")).bytes ?? [])].slice(0, 2), [9, 9]);
});
