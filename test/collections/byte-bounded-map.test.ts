import t from "tap";
import { createByteBoundedMap } from "../../src/collections/byte-bounded-map.js";

const byteLengthOf = (value: string) => value.length;

t.test("the values that were used longest ago go first", (t) => {
  const map = createByteBoundedMap<string>({ maxBytes: 6, byteLengthOf });
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
  t.equal(map.take("c"), "cc");
  t.equal(map.take("c"), undefined);
  t.equal(map.byteLength, 3);
  t.end();
});

t.test("a value that is too large is not set, and displaces none", (t) => {
  const map = createByteBoundedMap<string>({ maxBytes: 6, maxValueBytes: 3, byteLengthOf });
  map.set("a", "aa");
  map.set("b", "bbbb");
  t.equal(map.get("b"), undefined);
  map.set("a", "aaaa");
  t.equal(map.get("a"), undefined, "nor is its older value");
  t.equal(map.byteLength, 0);
  t.end();
});

t.test("entries are bounded, too", (t) => {
  const map = createByteBoundedMap<string>({ maxBytes: 100, maxEntries: 2, byteLengthOf });
  for (const key of ["a", "b", "c"]) map.set(key, key);
  t.same([map.get("a"), map.get("b"), map.get("c")], [undefined, "b", "c"]);
  t.end();
});
