import t from "tap";
import { createKeyIndex } from "../../src/stores/key-index.js";

const bytesOf = (key: string) => Buffer.from(key);

t.test("numbers keys in the order in which they are added, each once", async (t) => {
  const index = createKeyIndex();
  const keys = Array.from({ length: 5_000 }, (_, number) => `a/${(number * 7919) % 5_000}/é${number % 3}`);
  for (const [number, key] of keys.entries()) t.equal(index.add(bytesOf(key)), number);
  t.equal(index.size, 5_000);
  t.equal(index.add(bytesOf(keys[17] as string)), 17);
  t.equal(index.size, 5_000);
  t.ok(keys.every((key, number) => index.find(key) === number && index.keyOf(number) === key));
  for (const key of ["", "a", "a/", "a/1", "a/1/é", "x".repeat(10_000), "constructor"])
    t.equal(index.find(key), -1);
  t.equal(index.add(bytesOf("")), 5_000);
  t.equal(index.find(""), 5_000, "the empty key is one, too");
});

t.test("lists names below a prefix, also those added after a listing", async (t) => {
  const index = createKeyIndex();
  t.same(await index.list(""), { objects: [], prefixes: [] });
  for (const key of ["a", "a/b", "a-/b", "a/c/d", "a/c/e", "a0", "é/x", "a/"]) index.add(bytesOf(key));
  t.same(await index.list(""), { objects: ["a", "a0"], prefixes: ["a-", "a", "é"] });
  t.same(await index.list("a/"), { objects: ["b"], prefixes: ["c"] });
  t.same(await index.list("a/c/"), { objects: ["d", "e"], prefixes: [] });
  t.same(await index.list("é/"), { objects: ["x"], prefixes: [] });
  t.same(await index.list("b/"), { objects: [], prefixes: [] });
  index.add(bytesOf("b/c"));
  t.same(await index.list("b/"), { objects: ["c"], prefixes: [] });
});
