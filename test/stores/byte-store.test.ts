import t, { type Test } from "tap";
import type { ByteStore, ObjectVersion, ReadObjectOptions } from "../../src/stores/byte-store.js";
import { createKeyIndex } from "../../src/stores/key-index.js";
import { mergeRanges } from "../../src/stores/open-byte-store.js";

t.test("lists names below a prefix, also those added after a listing", async (t) => {
  const index = createKeyIndex();
  t.same(await index.list(""), { objects: [], prefixes: [] });
  for (const key of ["a", "a/b", "a-/b", "a/c/d", "a/c/e", "a0", "é/x", "a/"]) index.add(key);
  t.same(await index.list(""), { objects: ["a", "a0"], prefixes: ["a-", "a", "é"] });
  t.same(await index.list("a/"), { objects: ["b"], prefixes: ["c"] });
  t.same(await index.list("a/c/"), { objects: ["d", "e"], prefixes: [] });
  t.same(await index.list("é/"), { objects: ["x"], prefixes: [] });
  t.same(await index.list("b/"), { objects: [], prefixes: [] });
  index.add("b/c");
  t.same(await index.list("b/"), { objects: ["c"], prefixes: [] });
});

const content = Uint8Array.from({ length: 5 * 2 ** 20 }, (_, i) => (i * 7 + (i >> 9)) & 255);
const version: ObjectVersion = { token: "v1" };

/** A store of one object that notes what is read. */
function createNotedStore(failure?: Error) {
  const reads: ReadObjectOptions[] = [];
  const store: ByteStore = {
    location: "memory",
    identity: "memory",
    stat: async () => ({ version, byteLength: content.length }),
    async read(_key, options = {}) {
      reads.push(options);
      if (failure !== undefined) throw failure;
      const { offset, byteLength } = options.range as { offset: number; byteLength: number };
      return { bytes: content.slice(offset, offset + byteLength), version, objectByteLength: content.length };
    },
    readIfChanged: async () => "unchanged",
  };
  return { store: mergeRanges(store), reads };
}

async function readAll(store: ByteStore, ranges: readonly (readonly [number, number])[]) {
  return Promise.all(
    ranges.map(([offset, byteLength]) => store.read("a", { range: { offset, byteLength }, version })),
  );
}

function isRight(
  t: Test,
  found: Awaited<ReturnType<typeof readAll>>,
  ranges: readonly (readonly [number, number])[],
) {
  for (const [i, [offset, byteLength]] of ranges.entries())
    t.ok(
      Buffer.from(found[i]?.bytes ?? []).equals(content.subarray(offset, offset + byteLength)),
      `${offset}`,
    );
}

t.test("neighbours of one turn are read with one request, whatever their order", async (t) => {
  const { store, reads } = createNotedStore();
  const ranges = [
    [300_000, 1_000],
    [0, 100_000],
    [100_000, 100_000],
    [99_000, 2_000],
    [240_000, 10_000],
  ] as const;
  isRight(t, await readAll(store, ranges), ranges);
  t.same(
    reads.map(({ range }) => range),
    [{ offset: 0, byteLength: 301_000 }],
  );
});

t.test("what is far apart, long, or of another turn is read by itself", async (t) => {
  const { store, reads } = createNotedStore();
  const ranges = [
    [0, 1_000],
    [1_000_000, 1_000],
    [1_001_000, 1_900_000],
    [2_901_000, 1_900_000],
  ] as const;
  isRight(t, await readAll(store, ranges), ranges);
  t.equal(reads.length, 3, "the second and third are one");
  await readAll(store, [[1_000, 1_000]]);
  t.equal(reads.length, 4);
});

t.test("each reader gets its bytes in the memory that it asked for, and every one the failure", async (t) => {
  const { store } = createNotedStore();
  const own = new Uint8Array(500);
  const options = { range: { offset: 10, byteLength: 500 }, version, allocate: () => own };
  const [first] = await Promise.all([store.read("a", options), readAll(store, [[600, 10]])]);
  t.equal(first?.bytes, own);
  t.ok(Buffer.from(own).equals(content.subarray(10, 510)));
  const failing = createNotedStore(new Error("gone"));
  const both = await Promise.allSettled(
    [0, 10].map((offset) => failing.store.read("a", { range: { offset, byteLength: 10 }, version })),
  );
  t.same(
    both.map(({ status }) => status),
    ["rejected", "rejected"],
  );
});
