import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import type { ByteStore } from "../../src/stores/byte-store.js";
import { createFileStore } from "../../src/stores/file-store.js";
import { makeDirectory, makeOld, writeFiles } from "../support/write-store.js";

const code = (expected: string) => ({ name: "ZpublishError", code: expected });

async function textOf(
  store: ByteStore,
  ...options: Parameters<ByteStore["read"]>
): Promise<string | undefined> {
  const read = await store.read(...options);
  return read && Buffer.from(read.bytes).toString();
}

t.test("reads files, and parts of them", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "a/b": "0123456789", empty: "" });
  for (const store of [createFileStore(root), createFileStore(root, true)]) {
    t.equal(await textOf(store, "a/b"), "0123456789");
    t.equal(await textOf(store, "a/b", { range: { offset: 2, byteLength: 3 } }), "234");
    t.equal(await textOf(store, "a/b", { range: { last: 3 } }), "789");
    t.equal(await textOf(store, "empty"), "");
    const found = await store.stat("a/b");
    t.equal(found?.byteLength, 10);
    t.match(found?.version.token, /^[0-9a-z]+\.[0-9a-z]+$/);
    const read = await store.read("a/b", { range: { last: 1 }, version: found?.version });
    t.same([read?.version, read?.objectByteLength], [found?.version, 10]);
    t.equal(await store.readIfChanged("a/b", found!.version), "unchanged");
    t.match(await store.readIfChanged("a/b", { token: "0" }), { objectByteLength: 10 });
    await t.rejects(store.read("a/b", { version: { token: "0" } }), code("source-changed"));
    await t.rejects(store.read("a/b", { maxByteLength: 9 }), code("corrupt-chunk"));
    for (const range of [{ last: 11 }, { offset: 5, byteLength: 6 }, { offset: 11, byteLength: 0 }]) {
      await t.rejects(store.read("a/b", { range }), code("corrupt-chunk"));
    }
    const memory = new Uint8Array(16);
    const into = await store.read("a/b", { allocate: (byteLength) => memory.subarray(0, byteLength) });
    t.equal(into?.bytes.buffer, memory.buffer);
    await t.rejects(store.read("a/b", { signal: AbortSignal.abort() }), { name: "AbortError" });
  }
});

t.test("tells what is absent from what cannot be read", async (t) => {
  const root = await makeDirectory(t);
  const outside = await makeDirectory(t);
  await writeFiles(root, { "a/b": "1" });
  await writeFiles(outside, { secret: "2" });
  await symlink(join(outside, "secret"), join(root, "out"));
  await symlink(outside, join(root, "folder"));
  await symlink(join(root, "a"), join(root, "inside"));
  await symlink(join(root, "none"), join(root, "broken"));
  const store = createFileStore(root);
  for (const key of ["b", "a/c", "a/b/c", "none/c"]) {
    t.equal(await store.read(key), undefined, key);
    t.equal(await store.stat(key), undefined, key);
    t.equal(await store.readIfChanged(key, { token: "0" }), undefined, key);
  }
  const odd = ["", "..", "../x", "a/../b", "a//b", "./a", "a/", "a", "a\0"];
  for (const key of [...odd, "out", "folder/secret", "broken"]) {
    await t.rejects(store.read(key), code("source-unreadable"), JSON.stringify(key));
    await t.rejects(store.stat(key), code("source-unreadable"), JSON.stringify(key));
  }
  t.equal(await textOf(store, "inside/b"), "1");
  const { objects, prefixes } = await store.list!("");
  t.same([...objects].sort(), ["broken", "folder", "out"]);
  t.same([...prefixes].sort(), ["a", "inside"]);
  t.same(await store.list!("a/"), { objects: ["b"], prefixes: [] });
  t.same(await store.list!("none/"), { objects: [], prefixes: [] });
  await t.rejects(store.list!("folder/"), code("source-unreadable"));
  await t.rejects(store.list!("../"), code("source-unreadable"));
  const error = await store.read("out").catch((thrown: Error) => thrown);
  t.notMatch(String(error), outside, "no path of the machine");
  await rm(root, { recursive: true });
  for (const key of ["a/b", "none"]) {
    await t.rejects(store.read(key), code("source-unreadable"), "the root is gone");
    await t.rejects(store.stat(key), code("source-unreadable"), "the root is gone");
  }
  await t.rejects(store.list!(""), code("source-unreadable"), "the root is gone");
});

t.test("never reads a file that was replaced under the version before", async (t) => {
  const root = await makeDirectory(t);
  await mkdir(join(root, "a"));
  await writeFiles(root, { "a/b": "old" });
  const store = createFileStore(root);
  const { version } = (await store.stat("a/b"))!;
  await writeFile(join(root, "next"), "newer");
  await rename(join(root, "next"), join(root, "a/b"));
  await t.rejects(store.read("a/b", { version }), code("source-changed"));
  await makeOld(join(root, "a/b"));
  await t.rejects(store.read("a/b", { version }), code("source-changed"));
  t.equal(await textOf(store, "a/b"), "newer");
});
