import { pino } from "pino";
import t from "tap";
import { createProviderList } from "../../../src/dataset/providers/provider-list.js";
import { fakeProvider, type LogLine } from "./fake-provider.js";

function start(ids: readonly unknown[], prefix = "p~") {
  const provider = fakeProvider("p", ids as readonly string[], prefix);
  const lines: (LogLine & { readonly datasets?: number })[] = [];
  const log = pino({ level: "debug" }, { write: (text: string) => void lines.push(JSON.parse(text)) });
  let changes = 0;
  const list = createProviderList(provider, log, () => {
    changes++;
  });
  t.teardown(() => list.close());
  return { provider, list, lines, changes: () => changes };
}

t.test("ids get the prefix, and are sorted by their code units", async (t) => {
  const { list } = start(["b", "é", "B", "a~b"]);
  t.notOk(list.hasAnswered);
  await list.look();
  t.ok(list.hasAnswered);
  t.same(list.ids, ["p~B", "p~a~b", "p~b", "p~é"]);
  t.ok(list.has("p~b"));
  t.notOk(list.has("b"));
  t.notOk(list.has("p~c"));
});

t.test("a dataset is there when the last list has it, and the log has each list that differs", async (t) => {
  const { provider, list, lines, changes } = start(["a", "b"]);
  await list.look();
  const { ids } = list;
  provider.ids = ["b", "a"];
  await list.look();
  t.equal(list.ids, ids, "the same array in another order");
  t.equal(changes(), 1);
  for (const next of [["a"], [], ["a", "c"]]) {
    provider.ids = next;
    await list.look();
    t.same(
      list.ids,
      next.map((id) => `p~${id}`),
    );
  }
  t.equal(changes(), 4);
  t.same(
    lines.map(({ msg, datasets }) => [msg, datasets]),
    [
      ["datasets listed", 2],
      ["datasets listed", 1],
      ["no datasets were found", undefined],
      ["datasets listed", 2],
    ],
  );
});

t.test("items that cannot be ids are left out, and named once", async (t) => {
  const { provider, list, lines } = start(["ok", "a/b", 7, null, "", "ok", "x".repeat(1_100)]);
  await list.look();
  t.same(list.ids, ["p~ok"]);
  const named = () => lines.filter(({ msg }) => msg === "no dataset can have this id");
  const problems = [
    { name: "p~a/b", reason: /without "\/"/ },
    { name: "7", reason: "expected a text" },
    { name: "null", reason: "expected a text" },
    { name: "p~", reason: "expected a non-empty id" },
    { name: /^p~x+$/, reason: /at most 1024 bytes/ },
    { name: "p~ok", reason: /once/ },
  ];
  t.match(named(), problems);
  provider.ids = [...provider.ids, "more"];
  await list.look();
  t.equal(named().length, problems.length);
});

t.test("100,000 ids are listed in slices, between which the event loop runs", async (t) => {
  const received = Array.from({ length: 100_000 }, (_, index) => `${(index * 7_919) % 100_000}~x`);
  const { provider, list } = start(received);
  let turns = 0;
  let isDone = false;
  const count = () => {
    turns++;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  await list.look();
  isDone = true;
  const { ids } = list;
  t.equal(ids.length, 100_000);
  t.ok(turns > 5, `${turns} turns`);
  provider.ids = received.toReversed();
  await list.look();
  t.equal(list.ids, ids);
});
