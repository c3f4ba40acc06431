import fc from "fast-check";
import t from "tap";
import {
  type IdPageQuery,
  type IdSelection,
  idFolderSteps,
  idPageSteps,
  selectIds,
} from "../../src/dataset/id-page.js";
import { runNow } from "../../src/event-loop/cooperative-task.js";
import { effort } from "../support/effort.js";

const IDS = ["z", "a", "M", "archive~1", "archive~2", "archive~3", "b~1"];
const CONFIGURED = 3;

function page(query: Partial<IdPageQuery>) {
  return runNow(idPageSteps(IDS, CONFIGURED, { filter: "", after: "", limit: 2, ...query }));
}

t.test("pages follow each other, configured ids first", async (t) => {
  const seen: string[] = [];
  let before: string | undefined;
  for (let after: string | undefined = ""; after !== undefined; ) {
    const { ids, previous, next, skipped, matching } = page({ after });
    t.equal(matching, IDS.length);
    t.equal(skipped, seen.length);
    t.equal(previous, before);
    seen.push(...ids);
    before = after;
    after = next;
  }
  t.same(seen, IDS);
});

t.test("a page begins behind an id that is gone", async (t) => {
  t.same(page({ after: "archive~11" }).ids, ["archive~2", "archive~3"]);
  t.same(page({ after: "aaa" }).ids, ["archive~1", "archive~2"]);
  t.match(page({ after: "zz" }), { ids: [], next: undefined, skipped: 7, previous: "archive~2" });
});

t.test("a filter is a text in any case, and pages are of what passes", async (t) => {
  t.match(page({ filter: "ARCHIVE" }), { ids: ["archive~1", "archive~2"], matching: 3, next: "archive~2" });
  t.match(page({ filter: "archive", after: "archive~2" }), {
    ids: ["archive~3"],
    previous: "",
    next: undefined,
  });
  t.match(page({ filter: "m" }), { ids: ["M"], matching: 1, previous: undefined, next: undefined });
  t.match(page({ filter: "none" }), { ids: [], matching: 0, previous: undefined, next: undefined });
});

t.test("a folder has the ids below it, and a folder with nothing but one is that one", async (t) => {
  const ids = ["z", "a~b", "d!x", "d~1~x", "d~1~y~z", "d~2", "d~3~only~x", "d~3~only~y", "d\u007f", "e~"];
  const inFolder = (folder: string) => {
    const { counts, below, ...found } = runNow(idFolderSteps(ids, 2, folder));
    return { ...found, counts: [...counts.values()], below: below.length };
  };
  t.same(inFolder(""), {
    ...{ folder: "", configuredCount: 2, below: 10, counts: [5, 1] },
    entries: ["z", "a~b", "d!x", "d~", "d\u007f", "e~"],
  });
  t.same(inFolder("d"), {
    ...{ folder: "d", configuredCount: 0, below: 5, counts: [2, 2] },
    entries: ["d~1~", "d~2", "d~3~"],
  });
  t.same(inFolder("d~1"), {
    ...{ folder: "d~1", configuredCount: 0, below: 2, counts: [1] },
    entries: ["d~1~x", "d~1~y~"],
  });
  t.match(inFolder("d~3"), { folder: "d~3~only", entries: ["d~3~only~x", "d~3~only~y"] });
  t.match(inFolder("e"), { folder: "e", entries: ["e~"], counts: [] });
  t.match(inFolder("none"), { entries: [], below: 0 });
  const one = Array.from({ length: 9 }, (_, index) => `archive~${index}`);
  t.match(runNow(idFolderSteps(one, 0, "")), { folder: "archive", entries: one });
});

function select(ids: readonly string[], configuredCount: number, asked: Partial<IdSelection>) {
  return selectIds(ids, configuredCount, { prefix: "", after: undefined, limit: 2, ...asked });
}

t.test("selections have every id once, also while others come and go", async (t) => {
  const names = fc.uniqueArray(fc.stringMatching(/^[a-f]{1,3}$/));
  const all = fc.record({ stays: names, comes: fc.array(names, { minLength: 1, maxLength: 5 }) });
  fc.assert(
    fc.property(
      all,
      fc.nat(4),
      fc.integer({ min: 1, max: 4 }),
      ({ stays, comes }, configuredCount, limit) => {
        const configured = stays.slice(0, configuredCount);
        const seen: string[] = [];
        let after: string | undefined;
        for (let round = 0; ; round++) {
          const others = new Set([...stays, ...(comes[round % comes.length] as string[])]);
          for (const id of configured) others.delete(id);
          const ids = [...configured, ...[...others].sort()];
          const found = select(ids, configured.length, { after, limit });
          seen.push(...found.ids);
          after = found.ids.at(-1);
          if (!found.hasMore) break;
        }
        t.equal(new Set(seen).size, seen.length, "none twice");
        t.same(
          stays.filter((id) => !seen.includes(id)),
          [],
          "none is left out",
        );
      },
    ),
    { numRuns: effort(1_000) },
  );
});
