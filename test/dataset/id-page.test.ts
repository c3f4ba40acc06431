import t from "tap";
import { type IdPageQuery, idPageSteps } from "../../src/dataset/id-page.js";
import { runNow } from "../../src/event-loop/cooperative-task.js";

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
