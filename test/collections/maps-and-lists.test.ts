import t from "tap";
import { createBoundedMap } from "../../src/collections/bounded-map.js";
import { LazyMap } from "../../src/collections/lazy-map.js";
import { LinkedList, type ListEntry } from "../../src/collections/linked-list.js";

const byteLengthOf = (value: string) => value.length;

t.test("the values that were used longest ago go first", (t) => {
  const map = createBoundedMap<string>({ maxBytes: 6, byteLengthOf });
  for (const key of ["a", "b", "c"]) map.set(key, key.repeat(2));
  t.equal(map.get("a"), "aa");
  map.set("d", "dd");
  t.same(
    ["a", "b", "c", "d"].map((key) => map.get(key)),
    ["aa", undefined, "cc", "dd"],
  );
  t.equal(map.byteLength, 6);
  map.set("a", "a");
  t.equal(map.byteLength, 5);
  t.equal(map.delete("c"), "cc");
  t.equal(map.delete("c"), undefined);
  t.equal(map.byteLength, 3);
  t.end();
});

t.test("a value that is too large is not set, and displaces none", (t) => {
  const map = createBoundedMap<string>({ maxBytes: 6, maxValueBytes: 3, byteLengthOf });
  map.set("a", "aa");
  map.set("b", "bbbb");
  t.equal(map.get("b"), undefined);
  map.set("a", "aaaa");
  t.equal(map.get("a"), undefined, "nor is its older value");
  t.equal(map.byteLength, 0);
  t.end();
});

t.test("the number of keys is bounded, and keys that are found again stay", async (t) => {
  const map = createBoundedMap<number>({ maxEntries: 8 });
  map.set("kept", -1);
  for (let i = 0; i < 100; i++) {
    map.set(`${i}`, i);
    t.equal(map.get("kept"), -1);
    t.ok(map.size <= 8, `${map.size}`);
  }
  t.equal(map.get("0"), undefined);
  t.equal(map.get("99"), 99);
});

t.test("of many keys, those stay that were found since half as many others were set", async (t) => {
  const map = createBoundedMap<number>({ maxEntries: 1_000 });
  for (let i = 0; i < 5_000; i++) {
    map.set(`${i}`, i);
    if (i % 400 === 0) for (let kept = 0; kept < 100; kept++) map.get(`${kept}`);
  }
  t.equal(map.size, 1_000);
  for (let kept = 0; kept < 100; kept++) t.equal(map.get(`${kept}`), kept);
  t.equal(map.get("4000"), undefined);
});

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

t.test(
  "values stay in the order in which they were added, whichever are removed or moved to the end",
  (t) => {
    const list = new LinkedList<number>();
    t.same([...list], []);
    const entries = new Map<number, ListEntry<number>>();
    const expected = new Set<number>();
    let state = 1;
    for (let i = 0; i < 2_000; i++) {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      const known = [...expected];
      const taken = known[state % (known.length + 3)];
      if (taken === undefined) {
        entries.set(i, list.add(i));
        expected.add(i);
      } else if (state % 2 === 0) {
        list.moveToEnd(entries.get(taken)!);
        expected.delete(taken);
        expected.add(taken);
      } else {
        list.remove(entries.get(taken)!);
        expected.delete(taken);
      }
      if (i % 40 !== 0) continue;
      t.strictSame([list.size, ...list], [expected.size, ...expected]);
    }
    t.end();
  },
);

t.test("the current value of an iteration may be removed", (t) => {
  const list = new LinkedList<string>();
  const entries = ["a", "b", "c"].map((value) => list.add(value));
  const seen: unknown[] = [];
  for (const value of list) {
    seen.push(value);
    list.remove(entries[seen.length - 1]!);
  }
  t.same(seen, ["a", "b", "c"]);
  t.equal(list.size, 0);
  t.end();
});

t.test("a removed entry refers to no other", (t) => {
  const list = new LinkedList<number>();
  const [, second] = [1, 2, 3].map((value) => list.add(value));
  list.remove(second!);
  t.same([second!.previous, second!.next], [undefined, undefined]);
  t.end();
});
