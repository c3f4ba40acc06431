import t from "tap";
import { ZpublishError } from "../../../src/errors.js";
import { openChunkReader } from "../../../src/open/chunk-reader.js";
import type { Source, StoredTree } from "../../../src/zarr/stored-tree.js";
import { createObjectSource, type ObjectSourceOptions } from "../../../src/zarr-store/zarr-source.js";
import { openReader } from "../../support/async-reader.js";
import { createMemoryStore, type MemoryStore } from "../../support/memory-store.js";
import { v3Array, v3Group, zarray, zgroup } from "../../support/write-store.js";

type Documents = Readonly<Record<string, string | object>>;

const FAILURE = new ZpublishError("source-unreadable", "it answers 503");

const V2: Documents = {
  ".zgroup": zgroup,
  ".zattrs": { title: "two" },
  "t/.zarray": zarray,
  "t/.zattrs": { _ARRAY_DIMENSIONS: ["x"] },
  "t/0": "ab",
  "g/.zgroup": zgroup,
  "g/u/.zarray": zarray,
  "g/u/0": "cd",
};
const V3: Documents = {
  "zarr.json": { ...v3Group, attributes: { title: "three" } },
  "t/zarr.json": v3Array,
  "t/c/0": "ab",
  "g/zarr.json": v3Group,
  "g/u/zarr.json": v3Array,
  "g/u/c/0": "cd",
};
const ZMETADATA = {
  ".zmetadata": {
    zarr_consolidated_format: 1,
    metadata: Object.fromEntries(Object.entries(V2).filter(([key]) => /\.z(?:group|array|attrs)$/.test(key))),
  },
};
const CONSOLIDATED_V3 = {
  "zarr.json": {
    ...v3Group,
    attributes: { title: "three" },
    consolidated_metadata: {
      kind: "inline",
      must_understand: false,
      metadata: { t: v3Array, g: v3Group, "g/u": v3Array },
    },
  },
};

function openStore(documents: Documents): MemoryStore {
  const texts = Object.entries(documents).map(([key, content]) => [
    key,
    typeof content === "string" ? content : JSON.stringify(content),
  ]);
  return createMemoryStore(Object.fromEntries(texts));
}

function open(store: MemoryStore, options: Partial<ObjectSourceOptions> = {}): Source {
  return createObjectSource({
    ...{ location: "remote", store, rootArrayName: "root", freshness: "always", names: [] },
    ...options,
  });
}

function withoutListing(store: MemoryStore): MemoryStore {
  return { ...store, list: undefined };
}

function pathsOf({ groups }: StoredTree): string[] {
  return groups.flatMap(({ path, arrays }) => [path, ...arrays.map((array) => array.path)]);
}

function put(store: MemoryStore, documents: Documents): void {
  for (const [key, content] of Object.entries(documents)) store.put(key, JSON.stringify(content));
}

async function readAll(tree: StoredTree): Promise<string[]> {
  const arrays = tree.groups.flatMap((group) => group.arrays);
  const chunks = arrays.map((array) => openChunkReader(array.chunks).read(array.shape.map(() => 0)));
  return (await Promise.all(chunks)).map((chunk) => Buffer.from(chunk?.bytes ?? []).toString());
}

const ALL = ["/", "t", "/g", "g/u"];

t.test("consolidated metadata is read with two requests", async (t) => {
  for (const documents of [
    { ...V2, ...ZMETADATA },
    { ...V3, ...CONSOLIDATED_V3 },
  ]) {
    const store = openStore(documents);
    const tree = await open(withoutListing(store)).readTree();
    t.same(pathsOf(tree), ALL);
    t.same(tree.refused, []);
    t.same(store.takeRequests().sort(), ["read .zmetadata", "read zarr.json"]);
    t.same(await readAll(tree), ["ab", "cd"]);
  }
});

t.test("a store that is not consolidated is listed, level by level", async (t) => {
  for (const [documents, perNode] of [
    [V2, 3],
    [V3, 1],
  ] as const) {
    const store = openStore(documents);
    const source = open(store);
    const progress: number[] = [];
    const tree = await source.readTree((count) => progress.push(count));
    t.same(pathsOf(tree), ALL);
    t.same(progress, [1, 2]);
    const requests = store.takeRequests();
    t.same(requests.filter((request) => request.startsWith("list")).sort(), ["list ", "list g/"]);
    t.equal(
      requests.filter((request) => request.startsWith("read")).length,
      2 + 4 * perNode - (perNode === 1 ? 1 : 0),
    );
    t.equal(new Set(requests).size, requests.length, "no request twice");
    t.same(await readAll(tree), ["ab", "cd"]);
  }
});

t.test("arrays are named if nothing lists them, and their groups are found", async (t) => {
  for (const documents of [V2, V3]) {
    const store = withoutListing(openStore(documents));
    const tree = await open(store, { names: ["g/u", "t", "none"] }).readTree();
    t.same(pathsOf(tree), ALL);
    const rootless = openStore(documents);
    for (const key of [".zgroup", ".zattrs", "zarr.json"]) rootless.remove(key);
    const names = documents === V2 ? ["g/u", "t"] : [];
    if (names.length > 0) t.same(pathsOf(await open(withoutListing(rootless), { names }).readTree()), ALL);
    await t.rejects(open(store).readTree(), {
      code: "unsupported",
      message: /^remote: its groups cannot be listed/,
    });
  }
});

t.test("a single array at the root is a dataset", async (t) => {
  for (const documents of [
    { ".zarray": zarray, "0": "ab" },
    { "zarr.json": v3Array, "c/0": "ab" },
  ] as Documents[]) {
    for (const store of [openStore(documents), withoutListing(openStore(documents))]) {
      const tree = await open(store).readTree();
      t.same(
        tree.groups.flatMap(({ arrays }) => arrays.map(({ path }) => path)),
        ["root"],
      );
      t.same(await readAll(tree), ["ab"]);
    }
  }
});

t.test(
  "a place without a store is none, and a place that cannot be read is no place without a store",
  async (t) => {
    const store = openStore({ "readme.txt": "text" });
    await t.rejects(open(store).readTree(), {
      code: "invalid-metadata",
      message: /^remote: it is no Zarr store/,
    });
    store.failWith(FAILURE);
    await t.rejects(open(store).readTree(), {
      code: "source-unreadable",
      message: /^remote: it answers 503/,
    });
  },
);

t.test("broken documents are refused by name, and others are served", async (t) => {
  const broken = {
    "g/u/.zarray": "{",
    "h/.zarray": JSON.stringify({ ...zarray, dtype: "what" }),
    "i/.zgroup": "[]",
  };
  const tree = await open(openStore({ ...V2, ...broken })).readTree();
  t.ok(pathsOf(tree).includes("t"));
  t.same(tree.refused.map(({ path }) => path).sort(), ["g/u", "h", "i"]);
  const v3 = await open(openStore({ ...V3, "g/u/zarr.json": "{", "h/zarr.json": "7" })).readTree();
  t.ok(pathsOf(v3).includes("t"));
  t.same(v3.refused.map(({ path }) => path).sort(), ["g/u", "h"]);
  for (const root of [
    { ...V2, ".zgroup": "{" },
    { ...V3, "zarr.json": "{" },
  ] as Documents[])
    await t.rejects(open(openStore(root)).readTree(), { code: "invalid-metadata", message: /^remote: / });
});

t.test("broken consolidated metadata is ignored with a warning if the store can be listed", async (t) => {
  const store = openStore({ ...V2, ".zmetadata": "{" });
  const tree = await open(store).readTree();
  t.same(pathsOf(tree), ALL);
  t.match(tree.warnings, [/consolidated metadata is ignored/]);
});

t.test("a failure at any request of the reading is a failure of it, and not remembered", async (t) => {
  for (const documents of [V2, V3, { ...V2, ...ZMETADATA }, { ...V3, ...CONSOLIDATED_V3 }]) {
    const counting = openStore(documents);
    await open(counting).readTree();
    const total = counting.takeRequests().length;
    for (let failing = 0; failing < total; failing++) {
      const store = openStore(documents);
      const source = open(store);
      let count = 0;
      store.onRequest = () => store.failWith(count++ === failing ? FAILURE : undefined);
      await t.rejects(source.readTree(), { code: "source-unreadable" }, `request ${failing}`);
      t.same(pathsOf(await source.readTree()), ALL);
    }
  }
});

t.test("a refresh costs a conditional request per document, and finds what changed", async (t) => {
  for (const [documents, array, added] of [
    [V2, "t/.zarray", "new/.zarray"],
    [V3, "t/zarr.json", "new/zarr.json"],
  ] as const) {
    const store = openStore(documents);
    const source = open(store);
    const before = await source.readTree();
    store.takeRequests();
    t.equal(await source.fingerprint(), before.fingerprint);
    t.ok(
      store
        .takeRequests()
        .every((request) => /^(?:readIfChanged|list|read \S+\.z|read \.z|read zarr)/.test(request)),
    );
    const again = await source.readTree();
    t.equal(again.fingerprint, before.fingerprint);
    t.equal(again.groups[1]?.arrays[0], before.groups[1]?.arrays[0], "an unchanged array is the same object");
    const longer = { ...(documents[array] as object), shape: [4] };
    const steps: [string, () => void, string[]][] = [
      ["changed", () => put(store, { [array]: longer }), ALL],
      ["added", () => put(store, { [added]: documents[array] as object }), ["/", "new", "t", "/g", "g/u"]],
      ["removed", () => store.remove(added), ALL],
    ];
    for (const [name, change, paths] of steps) {
      const { fingerprint } = await source.readTree();
      change();
      t.not(await source.fingerprint(), fingerprint, name);
      const tree = await source.readTree();
      t.same(pathsOf(tree), paths, name);
      t.equal(await source.fingerprint(), tree.fingerprint, name);
      t.equal(
        tree.groups[1]?.arrays[0],
        before.groups[1]?.arrays[0],
        "an unchanged array is the same object",
      );
    }
    t.same((await source.readTree()).groups[0]?.arrays[0]?.shape, [4]);
  }
});

t.test("a change is found after a refresh that failed", async (t) => {
  for (const [documents, array] of [
    [V2, "t/.zarray"],
    [V3, "t/zarr.json"],
  ] as const) {
    const store = openStore(documents);
    const source = open(store);
    const { fingerprint } = await source.readTree();
    put(store, { [array]: { ...(documents[array] as object), shape: [4] } });
    t.not(await source.fingerprint(), fingerprint);
    // The document that has changed is read before the one that fails.
    let isRead = false;
    store.onRequest = (request) => {
      isRead ||= request.endsWith(` ${array}`);
      store.failWith(isRead && /g\/u/.test(request) ? FAILURE : undefined);
    };
    await t.rejects(source.readTree(), { code: "source-unreadable" });
    store.onRequest = undefined;
    store.failWith(undefined);
    t.not(await source.fingerprint(), fingerprint, "it has not been served yet");
    t.same((await source.readTree()).groups[0]?.arrays[0]?.shape, [4]);
  }
});

t.test("a refresh that cannot ask is a failure, no change", async (t) => {
  const store = openStore(V3);
  const source = open(store);
  const { fingerprint } = await source.readTree();
  store.failWith(FAILURE);
  await t.rejects(source.fingerprint(), { code: "source-unreadable" });
  store.failWith(undefined);
  t.equal(await source.fingerprint(), fingerprint);
});

t.test("a chunk is absent while its array's metadata exists, and a failure else", async (t) => {
  for (const [documents, chunk, document] of [
    [V2, "t/0", "t/.zarray"],
    [V3, "t/c/0", "t/zarr.json"],
    [{ ...V2, ...ZMETADATA }, "t/0", ".zmetadata"],
  ] as const) {
    const store = openStore(documents);
    const tree = await open(store).readTree();
    const reader = openReader(tree.groups[0]!.arrays[0]!.chunks);
    store.remove(chunk);
    t.equal(await reader.version([0]), undefined);
    t.equal(await reader.read([0]), undefined);
    store.remove(document);
    const asks: (() => Promise<unknown>)[] = [() => reader.version([0]), () => reader.read([0])];
    for (const ask of asks)
      await t.rejects(ask(), { code: "source-unreadable", message: /the metadata of its array/ }, document);
    store.failWith(FAILURE);
    for (const ask of asks) await t.rejects(ask(), { code: "source-unreadable", message: /503/ });
  }
});

t.test("a part of a chunk that changed is read in its new version", async (t) => {
  const store = openStore(V2);
  const source = open(store, { freshness: { seconds: 3_600 } });
  const reader = openReader((await source.readTree()).groups[0]!.arrays[0]!.chunks);
  const part = (byteLength: number) => ({ start: byteLength - 1, byteLength: 1 });
  const read = async () => Buffer.from((await reader.read([0], { part }))?.bytes ?? []).toString();
  t.equal(await read(), "b");
  store.put("t/0", "xyz");
  await t.rejects(read(), { code: "source-changed" }, "the part may be another one now");
  t.equal(await read(), "z");
  store.remove("t/0");
  await reader.read([0], { part }).catch(() => undefined);
  t.equal(await reader.read([0], { part }), undefined);
});
