import fc from "fast-check";
import t from "tap";
import {
  compareIds,
  hasId,
  type ListedIds,
  mergeIds,
  NO_IDS,
  placeOfId,
  updateIds,
} from "../../../src/dataset/providers/update-ids.js";
import { type CooperativeTask, runNow } from "../../../src/event-loop/cooperative-task.js";
import { effort } from "../../effort.js";

function update(before = NO_IDS, received: readonly unknown[] = [], prefix = "p~") {
  const problems: [string, string][] = [];
  const after = runNow(updateIds(before, received, prefix, (item, reason) => problems.push([item, reason])));
  return { after, problems };
}

function merge(
  configured: readonly string[],
  lists: readonly (readonly string[])[],
  before: readonly string[] = [],
) {
  const clashes: [string, number, number][] = [];
  const ids = runNow(mergeIds(configured, lists, before, (...clash) => clashes.push(clash)));
  return { ids, clashes };
}

/** Returns the longest time of one step, in milliseconds. */
function longestStep<T>(steps: CooperativeTask<T>): { readonly value: T; readonly steps: number } {
  let count = 0;
  for (;;) {
    const step = steps.next();
    if (step.done) return { value: step.value, steps: count };
    count++;
  }
}

t.test("ids get the prefix, and are sorted by their code units", async (t) => {
  const { after } = update(NO_IDS, ["b", "é", "B", "a~b"]);
  t.same(after.ids, ["p~B", "p~a~b", "p~b", "p~é"]);
  t.same(after.own, ["B", "a~b", "b", "é"]);
});

t.test("an id goes when two lists in a row do not have it", async (t) => {
  const first = update(NO_IDS, ["a", "b", "c"]).after;
  const second = update(first, ["a", "c"]).after;
  t.equal(second.ids, first.ids, "the same array: nothing has gone yet");
  t.same(second.missed, ["b"]);
  t.same(update(second, ["a", "c"]).after.ids, ["p~a", "p~c"]);
  const back = update(second, ["a", "b", "c"]).after;
  t.equal(back.ids, first.ids);
  t.same(back.missed, []);
  t.same(update(back, ["a", "c"]).after.missed, ["b"], "and then it takes two lists again");
  t.same(update(update(first, []).after, []).after.ids, []);
});

t.test("a list that does not count brings ids, and takes none away", async (t) => {
  const between = (before: ListedIds, received: readonly string[]) =>
    runNow(updateIds(before, received, "", () => t.fail("no problem expected"), false));
  const first = update(NO_IDS, ["a", "b", "c"], "").after;
  const second = between(between(first, ["c", "d"]), ["c", "d"]);
  t.same(second.ids, ["a", "b", "c", "d"]);
  t.same(second.missed, []);
  t.ok(second.isBehind);
  const third = update(second, ["a", "c", "d"], "").after;
  t.same(third.missed, ["b"]);
  t.same(between(third, ["d"]).missed, ["b"]);
  t.same(update(between(third, ["d"]), ["a", "d"], "").after.ids, ["a", "c", "d"]);
});

t.test("items that cannot be ids are left out, and named", async (t) => {
  const { after, problems } = update(NO_IDS, ["ok", "a/b", 7, null, "", "ok", "x".repeat(1_100)]);
  t.same(after.ids, ["p~ok"]);
  t.match(problems, [
    ["7", "expected a text"],
    ["null", "expected a text"],
    ["p~", "expected a non-empty id"],
    ["p~a/b", /without "\/"/],
    ["p~ok", /once/],
    [/^p~x+$/, /at most 1024 bytes/],
  ]);
});

t.test("ids are those of the last two lists, whatever these are", async (t) => {
  const list = fc.uniqueArray(fc.stringMatching(/^[a-d]{1,2}$/));
  fc.assert(
    fc.property(fc.array(list, { minLength: 1, maxLength: 8 }), (lists) => {
      let state = NO_IDS;
      const known = new Map<string, number>();
      for (const received of lists) {
        state = update(state, received, "").after;
        for (const [id, missed] of [...known]) {
          if (received.includes(id)) known.set(id, 0);
          else if (missed === 1) known.delete(id);
          else known.set(id, 1);
        }
        for (const id of received) if (!known.has(id)) known.set(id, 0);
        t.same(state.ids, [...known.keys()].sort(compareIds));
      }
    }),
    { numRuns: effort(1_000) },
  );
});

t.test(
  "configured ids come first, then those of providers, the first provider of which counts",
  async (t) => {
    const { ids, clashes } = merge(
      ["z", "b"],
      [
        ["a", "b", "d"],
        ["a", "c", "d", "z"],
      ],
    );
    t.same(ids, ["z", "b", "a", "c", "d"]);
    t.same(clashes, [
      ["a", 1, 0],
      ["b", 0, -1],
      ["d", 1, 0],
      ["z", 1, -1],
    ]);
    t.equal(merge(["z", "b"], [["a", "c", "d"]], ids).ids, ids, "the same array if nothing has changed");
    t.not(merge(["z", "b"], [["a", "c"]], ids).ids, ids);
    t.same(merge([], []).ids, []);
  },
);

t.test("ids are found in the sorted part", async (t) => {
  const ids = ["z", "a", "c", "e"];
  t.equal(placeOfId(ids, "b", 1), 2);
  t.equal(placeOfId(ids, "c", 1), 2);
  t.equal(placeOfId(ids, "f", 1), 4);
  t.ok(hasId(["a", "c"], "c"));
  t.notOk(hasId(["a", "c"], "b"));
});

t.test("100,000 ids are listed and merged in small steps", async (t) => {
  const received = Array.from({ length: 100_000 }, (_, index) =>
    `${(index * 7_919) % 100_000}/x`.replace("/", "~"),
  );
  const first = longestStep(updateIds(NO_IDS, received, "p~", () => t.fail("no problem expected")));
  t.equal(first.value.ids.length, 100_000);
  t.ok(first.steps > 1_000, `${first.steps} steps`);
  const again = longestStep(updateIds(first.value, received.toReversed(), "p~", () => t.fail()));
  t.equal(again.value.ids, first.value.ids);
  const merged = longestStep(mergeIds(["first"], [first.value.ids, ["p~0~x", "q"]], [], () => undefined));
  t.equal(merged.value.length, 100_002);
  t.ok(merged.steps > 100);
});
