import t from "tap";
import { ZpublishError } from "../../../src/errors.js";
import { createRemoteSource, type RemoteSourceOptions } from "../../../src/open/remote-source.js";
import type { Source, StoredTree } from "../../../src/zarr/stored-tree.js";
import { createMemoryStore } from "../../support/memory-store.js";
import { v3Array, v3Group, zgroup } from "../../support/write-store.js";

const FAILURE = new ZpublishError("source-unreadable", "it answers 503");
const MAGIC = "PK\x03\x04";
const CONSOLIDATED = JSON.stringify({
  ...v3Group,
  consolidated_metadata: { kind: "inline", must_understand: false, metadata: { t: v3Array } },
});

const TREE: StoredTree = {
  ...{ groups: [], refused: [], warnings: [], identity: "file", fingerprint: "file" },
};

/** A source of any file that begins as a zip archive. */
const FILE: Source = {
  location: "x",
  readTree: async () => TREE,
  fingerprint: async () => "file",
  close: async () => undefined,
};

function open(
  directory: Readonly<Record<string, string>>,
  files: Readonly<Record<string, string>>,
  options: Partial<RemoteSourceOptions> = {},
) {
  const store = createMemoryStore(directory);
  const fileStore = createMemoryStore(files);
  const source = createRemoteSource({
    ...{ location: "x", store, rootArrayName: "x", freshness: "always", names: [] },
    file: { store: fileStore, key: "x" },
    openFile: (_store, _key, head) =>
      Buffer.from(head.bytes).toString().startsWith(MAGIC) ? FILE : undefined,
    openReferences: () => undefined,
    ...options,
  });
  return { source, store, fileStore };
}

t.test("a directory is found with three requests at once", async (t) => {
  const { source, store, fileStore } = open({ "zarr.json": CONSOLIDATED }, {});
  t.equal((await source.readTree()).groups[0]?.arrays.length, 1);
  t.same(store.takeRequests().sort(), ["read .zmetadata", "read zarr.json"]);
  t.same(fileStore.takeRequests(), ["read x 0+4096"]);
});

t.test("a file is found by its first bytes, also if it is short", async (t) => {
  for (const content of [MAGIC, MAGIC.padEnd(5_000)])
    t.equal(await open({}, { x: content }).source.readTree(), TREE, `${content.length} bytes`);
  await t.rejects(open({}, { x: "\x89HDF" }).source.readTree(), {
    code: "unsupported",
    message: /begins with/,
  });
  await t.rejects(open({}, { x: "" }).source.readTree(), { code: "unsupported" });
});

t.test("a directory whose name cannot be read as a file is a directory", async (t) => {
  const { source, fileStore } = open({ ".zgroup": JSON.stringify(zgroup) }, {});
  fileStore.failWith(new ZpublishError("source-unreadable", "'x': it redirects"));
  t.equal((await source.readTree()).groups.length, 1);
  fileStore.takeRequests();
  await source.readTree();
  t.same(fileStore.takeRequests(), [], "it is not asked for again");
});

t.test("a file that could not be read is found as soon as it can be", async (t) => {
  const { source, store, fileStore } = open({}, { x: MAGIC });
  fileStore.failWith(FAILURE);
  await t.rejects(source.readTree(), { message: /503/ });
  await t.rejects(source.fingerprint(), { message: /503/ });
  fileStore.failWith(undefined);
  store.failWith(FAILURE);
  await t.rejects(source.readTree(), { code: "source-unreadable", message: /503/ });
  store.failWith(undefined);
  t.equal(await source.readTree(), TREE);
});

t.test("a place that has nothing yet is looked at again", async (t) => {
  const { source, store } = open({}, {});
  await t.rejects(source.readTree(), { code: "invalid-metadata" });
  store.put("zarr.json", CONSOLIDATED);
  t.equal((await source.readTree()).groups[0]?.arrays.length, 1);
  const other = open({}, {});
  await t.rejects(other.source.readTree(), { code: "invalid-metadata" });
  other.fileStore.put("x", MAGIC);
  t.equal(await other.source.readTree(), TREE);
});
