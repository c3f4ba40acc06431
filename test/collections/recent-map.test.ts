import t from "tap";
import { createRecentMap } from "../../src/collections/recent-map.js";

t.test("is bounded, and keys that are found again stay", async (t) => {
  const map = createRecentMap<number>(8);
  map.set("kept", -1);
  for (let i = 0; i < 100; i++) {
    map.set(`${i}`, i);
    t.equal(map.get("kept"), -1);
    t.ok(map.size <= 8, `${map.size}`);
  }
  t.equal(map.get("0"), undefined);
  t.equal(map.get("99"), 99);
});

t.test("has a key once, with its latest value, whichever generation it was in", async (t) => {
  const map = createRecentMap<number>(4);
  for (const key of ["a", "b", "c"]) map.set(key, 0);
  map.set("a", 1);
  t.equal(map.get("a"), 1);
  map.delete("a");
  t.equal(map.get("a"), undefined);
  t.equal(map.size, 2);
  map.clear();
  t.equal(map.size, 0);
  t.equal(map.get("c"), undefined);
});
