import t from "tap";
import { LazyMap } from "../../src/collections/lazy-map.js";

t.test("values are made once, when they are asked for, in the order of the keys", async (t) => {
  const made: string[] = [];
  const map = new LazyMap(
    () => ["b", "none", "a"],
    (key) => {
      made.push(key);
      return key === "b" || key === "a" ? { key } : undefined;
    },
  );
  t.same(made, []);
  t.equal(map.get("a"), map.get("a"));
  t.same(made, ["a"]);
  t.notOk(map.has("none"));
  t.notOk(map.has("unknown"));
  const [first] = map.keys();
  t.equal(first, "b");
  t.same(made, ["a", "none", "unknown", "b"], "no value behind the one that was asked for");
  t.same([...map], [...["b", "a"].map((key) => [key, { key }])]);
  t.same([...map.values()], [{ key: "b" }, { key: "a" }]);
  t.equal(map.size, 2);
  const seen: string[] = [];
  map.forEach((_, key) => {
    seen.push(key);
  });
  t.same(seen, ["b", "a"]);
  t.equal(made.filter((key) => key === "a").length, 1);
});
