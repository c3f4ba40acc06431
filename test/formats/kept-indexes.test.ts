import { mkdir, readdir, readFile, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { LosslessNumber } from "lossless-json";
import t from "tap";
import type { FileIndex } from "../../src/formats/file-index.js";
import { createFileSource } from "../../src/formats/file-source.js";
import { createKeptIndexes, readIndexRecord, writeIndexRecord } from "../../src/formats/kept-indexes.js";
import { createFileStore } from "../../src/stores/file-store.js";
import { effort } from "../support/effort.js";
import { plainArray, plainFile, plainFormat } from "../support/plain-format.js";
import { makeDirectory, makeOld } from "../support/write-store.js";

const INDEX: FileIndex = {
  format: "Plain",
  refused: [{ path: "x", reason: "no" }],
  warnings: ["'y': odd"],
  groups: [
    {
      path: "/",
      attrs: {
        whole: new LosslessNumber("1.0"),
        wide: 2n ** 63n,
        not: Number.NaN,
        zero: -0,
        list: [1, [new LosslessNumber("1e-05")], { isLosslessNumber: true, value: "}" }],
        ["__proto__"]: { "\0": "é\ud800" },
      },
      arrays: [
        plainArray({
          name: "a",
          shape: [3],
          chunkShape: [1],
          chunks: {
            kind: "listed",
            numbers: Float64Array.of(0, 2),
            offsets: Float64Array.of(2 ** 40, 5),
            byteLengths: Uint32Array.of(1, 2 ** 32 - 1),
            variants: Uint8Array.of(1, 0),
          },
          variants: [[{ id: "zlib", level: 1 }]],
        }),
        plainArray({
          name: "b",
          shape: [],
          chunkShape: [],
          chunks: { kind: "made", recipe: { a: [1, "x", new Float32Array(3)], b: undefined } },
        }),
        plainArray({ name: "c", shape: [1], chunkShape: [1], chunks: { kind: "inline", bytes: null } }),
      ],
    },
    { path: "/g", attrs: {}, arrays: [] },
  ],
};

const record = async (stamp: string, index: FileIndex) => Buffer.concat(await writeIndexRecord(stamp, index));

t.test("an index comes back as it was, typed arrays and every digit included", async (t) => {
  const found = await readIndexRecord(["r", "s"], await record("s", INDEX));
  t.strictSame(found, { stamp: "s", index: INDEX });
  const attrs = found?.index.groups[0]?.attrs;
  t.ok(attrs?.whole instanceof LosslessNumber);
  t.ok(Object.is(attrs?.zero, -0));
  t.same(Object.keys(attrs ?? {}), Object.keys(INDEX.groups[0]?.attrs ?? {}));
  t.equal(await readIndexRecord(["other"], await record("s", INDEX)), undefined);
});

t.test("a damaged record is no index", async (t) => {
  const whole = await record("s", INDEX);
  await fc.assert(
    fc.asyncProperty(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), async (at, change) => {
      const damaged = Buffer.from(whole);
      damaged[at] = (damaged[at] as number) ^ change;
      return (
        (await readIndexRecord(["s"], damaged)) === undefined &&
        (await readIndexRecord(["s"], whole.subarray(0, at))) === undefined
      );
    }),
    { numRuns: effort(2_000) },
  );
  t.equal(await readIndexRecord(["s"], Buffer.concat([whole, Buffer.alloc(1)])), undefined);
});

async function setUp(t: Parameters<typeof makeDirectory>[0]) {
  const directory = await makeDirectory(t);
  const cache = join(await makeDirectory(t), "cache");
  const path = join(directory, "a.plain");
  const chunks = { kind: "inline", bytes: Uint8Array.of(1) } as const;
  const contentOf = (name: string) =>
    plainFile({
      arrays: [plainArray({ name, shape: [1], chunkShape: [1], chunks })],
      data: new Uint8Array(0),
    });
  await writeFile(path, contentOf("first"));
  await makeOld(path);
  const kept = createKeptIndexes(cache);
  const writes: Promise<void>[] = [];
  const open = (revision = 1) =>
    createFileSource({
      ...{ location: "a.plain", store: createFileStore(directory), key: "a.plain", freshness: "always" },
      formats: [{ ...plainFormat, revision }],
      kept: {
        ...kept,
        set(file, written) {
          const write = kept.set(file, written);
          writes.push(write);
          return write;
        },
      },
    });
  /** Opens it, and returns its arrays and how often its index was read from the file. */
  const openAgain = async (revision?: number) => {
    const before = plainFormat.reads;
    const { groups } = await open(revision).readTree();
    await Promise.all(writes);
    return [groups[0]?.arrays.map(({ name }) => name).join(), plainFormat.reads - before];
  };
  const folder = join(cache, "zpublish-indexes");
  return { path, contentOf, openAgain, folder };
}

t.test("a file is not read again after a restart, unless it or its format has changed", async (t) => {
  const { path, contentOf, openAgain } = await setUp(t);
  t.same(await openAgain(), ["first", 1]);
  t.same(await openAgain(), ["first", 0]);
  t.same(await openAgain(2), ["first", 1], "another revision of the format");
  t.same(await openAgain(2), ["first", 0]);
  await writeFile(path, contentOf("other"));
  t.same(await openAgain(2), ["other", 1]);
  t.same(await openAgain(2), ["other", 0]);
  await writeFile(path, "no file of the format");
  await t.rejects(openAgain(2), { code: "invalid-metadata" });
});

t.test("a kept index that is damaged, empty or unreadable is made again", async (t) => {
  const { openAgain, folder } = await setUp(t);
  await openAgain();
  const [name = ""] = await readdir(folder);
  const path = join(folder, name);
  const whole = await readFile(path);
  for (const content of [whole.subarray(0, 40), Buffer.alloc(0), Buffer.alloc(1_000)]) {
    await writeFile(path, content);
    t.same(await openAgain(), ["first", 1]);
    t.same(await readFile(path), whole);
  }
  t.same(await readdir(folder), [name], "nothing else is left");
});

t.test("without a place to keep them, files are read each time", async (t) => {
  const kept = createKeptIndexes("/proc/nowhere");
  await kept.set("f", { stamp: "s", index: INDEX });
  t.equal(await kept.get("f", ["s"]), undefined);
  t.equal(await kept.has("f"), false);
});

t.test("all indexes together are bounded, and the oldest go first", async (t) => {
  const directory = await makeDirectory(t);
  const { length } = await record("s", INDEX);
  const kept = createKeptIndexes(directory, 3 * length);
  const folder = join(directory, "zpublish-indexes");
  await mkdir(folder);
  await writeFile(join(folder, "abc.new-1-1"), "left behind");
  await utimes(join(folder, "abc.new-1-1"), 1, 1);
  const stamped = { stamp: "s", index: INDEX };
  for (let index = 0; index < 6; index++) {
    // Each by a process of its own, whose first write looks at the total.
    await createKeptIndexes(directory, 3 * length).set(`f${index}`, stamped);
    for (const name of await readdir(folder)) {
      const path = join(folder, name);
      const { mtimeMs } = await stat(path);
      await utimes(path, mtimeMs / 1_000 - 7_200, mtimeMs / 1_000 - 7_200);
    }
    // One that is used stays.
    t.ok(await kept.get("f0", ["s"]));
  }
  const found = await Promise.all([0, 1, 2, 3, 4, 5].map((index) => kept.has(`f${index}`)));
  t.same(found, [true, false, false, false, true, true]);
  t.equal((await readdir(folder)).length, 3);
  await kept.set("f9", { stamp: "s", index: { ...INDEX, warnings: ["x".repeat(4 * length)] } });
  t.equal(await kept.has("f9"), false, "one that is too long is not kept");
});
