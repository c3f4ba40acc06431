import t from "tap";
import { LinkedList, type ListEntry } from "../../src/collections/linked-list.js";

t.test("values stay in the order in which they were added, whichever are removed", (t) => {
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
    } else {
      list.remove(entries.get(taken) as ListEntry<number>);
      expected.delete(taken);
    }
    if (i % 40 !== 0) continue;
    t.strictSame([list.size, ...list], [expected.size, ...expected]);
  }
  t.end();
});

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
