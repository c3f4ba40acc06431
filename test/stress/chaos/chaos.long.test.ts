import t from "tap";
import { killChildren } from "../../../bench/children.js";
import { makeDirectory } from "../../support/write-store.js";
import {
  ABSENT,
  CHAOS_ARRAYS,
  CHAOS_KEYS,
  type ChaosArray,
  checkChunk,
  filesOf,
  rowValues,
} from "./arrays.js";
import { chaosText, isClean, runChaos } from "./chaos.js";
import { REWRITES, type Stage } from "./events.js";
import { DAMAGED, Judge, type Observation } from "./judge.js";
import { now } from "./timeline.js";

t.setTimeout(240_000);

function arrayOf(dataset: string, path: string): ChaosArray {
  return CHAOS_ARRAYS.find((each) => each.dataset === dataset && each.path === path)!;
}

function keyOf(url: string): number {
  return CHAOS_KEYS.findIndex((key) => key.url === url);
}

const RAW = keyOf("/datasets/plain/zarr/raw/0.0");
const WIDE = keyOf("/datasets/again/zarr/wide/0.0");
const raw = arrayOf("plain", "raw");
const wide = arrayOf("again", "wide");

/** Something seen within the last millisecond. */
function seen(key: number, status: number, more: Partial<Observation> = {}): Observation {
  const until = now();
  return { key, status, from: until, until, ...more };
}

t.test("every value of a chunk is compared with what was written", (t) => {
  const key = CHAOS_KEYS[WIDE]!;
  const chunkOf = (versions: readonly number[]) =>
    Buffer.concat(
      versions.map((version, row) => {
        const values =
          version === ABSENT ? new Int32Array(wide.items).fill(-1) : rowValues(wide, row, version);
        return new Uint8Array(values.buffer);
      }),
    );
  t.same(checkChunk(key, chunkOf([3, 0, ABSENT, 1])), { versions: [3, 0, ABSENT, 1] });
  t.match(checkChunk(key, chunkOf([3, 0, 1])), { problem: /expected 131072 bytes, received 98304/ });
  const torn = chunkOf([3, 3, 3, 3]);
  chunkOf([4, 4, 4, 4]).copy(torn, 40_000, 40_000, 50_000);
  t.match(checkChunk(key, torn), { problem: /row 1, item 1808: expected version 3/ });
  const other = chunkOf([0, 0, 0, 0]);
  other[70_001]! ^= 1;
  t.match(checkChunk(key, other), { problem: /row 2/ });
  const shard = CHAOS_KEYS[keyOf("/datasets/shards/zarr/cut/5.0")]!;
  t.same(filesOf(shard), [1]);
  t.end();
});

t.test("old and new may be answered while a file is written, and only then", (t) => {
  const judge = new Judge();
  const kindOf = (versions: readonly number[], status = 200) =>
    judge.judge(seen(RAW, status, { versions })).kind;
  t.equal(kindOf([0]), "right");
  t.equal(kindOf([1]), "wrong", "not yet");
  const before = now();
  const settle = judge.file(raw, 0).begin(1);
  t.same([kindOf([0]), kindOf([1]), kindOf([2])], ["right", "right", "wrong"]);
  settle();
  while (now() < before + 2);
  t.same([kindOf([0]), kindOf([1])], ["wrong", "right"], "not any more");
  t.equal(kindOf([0], 304), "wrong", "nor is it said to be unchanged");
  const late = { ...seen(RAW, 200, { versions: [0] }), from: before };
  t.equal(judge.judge(late).kind, "right", "but to a client that asked before");
  t.equal(kindOf([ABSENT]), "wrong", "and never fill values");
  t.end();
});

t.test("a chunk of several files is of one moment", (t) => {
  const judge = new Judge();
  const from = now();
  const pause = () => {
    for (const end = now() + 2; now() < end; );
  };
  judge.file(wide, 0).begin(1)();
  pause();
  judge.file(wide, 1).begin(1)();
  pause();
  const kindOf = (versions: readonly number[]) =>
    judge.judge({ ...seen(WIDE, 200, { versions }), from }).kind;
  t.same([kindOf([0, 0, 0, 0]), kindOf([1, 0, 0, 0]), kindOf([1, 1, 0, 0])], ["right", "right", "right"]);
  t.equal(kindOf([0, 1, 0, 0]), "wrong", "the second file was never new while the first was old");
  t.end();
});

t.test("absence is told from failure", (t) => {
  const judge = new Judge();
  const kindOf = (status: number) => judge.judge(seen(RAW, status)).kind;
  t.same(
    [kindOf(404), kindOf(500), kindOf(503), kindOf(0), kindOf(206)],
    ["failed", "failed", "failed", "failed", "right"],
  );
  const settleCut = judge.file(raw, 0).begin(DAMAGED);
  settleCut();
  t.same([kindOf(500), kindOf(404)], ["right", "failed"], "what is damaged is a failure");
  judge.file(raw, 0).begin(ABSENT)();
  for (const end = now() + 2; now() < end; );
  t.same([kindOf(404), kindOf(500)], ["right", "failed"], "what is removed is absent");
  t.end();
});

t.test("an event excuses the troubles that it may bring, where and while it may", async (t) => {
  const judge = new Judge();
  const settle = judge.excuse("test", ["500"], ({ dataset }) => dataset === "plain");
  t.match(judge.judge(seen(RAW, 500)), { kind: "excused", trouble: "500", event: "test" });
  t.equal(judge.judge(seen(RAW, 503)).kind, "failed");
  t.equal(judge.judge(seen(RAW, 404)).kind, "failed");
  t.equal(judge.judge(seen(WIDE, 500)).kind, "failed");
  settle();
  for (const end = now() + 2; now() < end; );
  t.equal(judge.judge(seen(RAW, 500)).kind, "failed");
  const lasting = new Judge();
  const began = now();
  lasting.excuse("lasting", ["500"], () => true, 60_000)();
  lasting.judge({ ...seen(RAW, 500), from: began });
  for (const end = now() + 2; now() < end; );
  t.equal(lasting.judge(seen(RAW, 500)).kind, "excused", "what was troubled once may be so for a while");
  t.equal(lasting.judge(seen(WIDE, 500)).kind, "failed");
});

t.test("bytes of two versions are excused only by a writer that paused", (t) => {
  const judge = new Judge();
  const torn = () => judge.judge(seen(RAW, 200, { wrong: "test", isContent: true }));
  t.equal(torn().kind, "wrong");
  const settlePaused = judge.excuse("a pause", ["torn"], ({ dataset }) => dataset === "plain");
  const settleOther = judge.excuse("none", ["torn"], ({ dataset }) => dataset === "again");
  t.match(torn(), { kind: "excused", trouble: "torn", event: "a pause" });
  t.equal(judge.judge(seen(RAW, 200, { wrong: "test" })).kind, "wrong", "only of what a chunk holds");
  settlePaused(Number.NEGATIVE_INFINITY);
  t.equal(torn().kind, "wrong", "taken back, and not another's");
  settleOther();
  t.end();
});

t.test("nothing excuses an answer that took very long, but what workers die of", (t) => {
  const judge = new Judge();
  judge.excuse("test", ["no answer", "500", "503", "torn"]);
  const after = (ms: number, key: number, status: number, more: Partial<Observation> = {}) => {
    const until = now() + ms;
    return judge.judge({ ...seen(key, status, more), until });
  };
  t.equal(after(19_000, RAW, 200).kind, "right");
  t.equal(after(19_000, RAW, 500).kind, "excused");
  for (const status of [200, 304, 500, 503])
    t.match(after(21_000, RAW, status), { kind: "failed", trouble: "slow" }, `${status}`);
  t.match(after(21_000, RAW, 200, { wrong: "test", isContent: true }), { kind: "failed", trouble: "slow" });
  t.equal(after(21_000, RAW, 200, { wrong: "test" }).kind, "wrong", "which is worse");
  t.equal(after(21_000, RAW, 0).kind, "excused", "no answer at all");
  t.equal(after(21_000, keyOf("/datasets/poison/zarr/exit/0.0"), 500).kind, "excused");
  t.end();
});

t.test("a write excuses the chunks that its file is a part of", async (t) => {
  const judge = new Judge();
  const busyFiles = new Set<string>();
  let checked = false;
  const write = async (array: ChaosArray, file: number) => {
    for (const [i, key] of CHAOS_KEYS.entries()) {
      const isPart = key.kind === "chunk" && key.array === array && filesOf(key).includes(file);
      t.equal(judge.judge(seen(i, 503)).kind, isPart ? "excused" : "failed", key.url);
    }
    checked = true;
    return 0;
  };
  const stage = { judge, busyFiles, versions: new Map(), random: () => 0.4, store: { write } };
  await REWRITES[0]!.happens(stage as unknown as Stage);
  t.ok(checked);
});

const QUIET = { onProgress: () => {} };

t.test("the program comes through half a minute of everything", async (t) => {
  t.teardown(killChildren);
  const folder = await makeDirectory(t);
  const report = await runChaos({ ...QUIET, seed: 4, seconds: 25, processes: 2, folder });
  const text = chaosText(report, 4);
  t.ok(isClean(report), text);
  t.ok(report.tally.requests > 1_000);
  t.ok(report.events.size > 6, "much has happened");
  const happened = [...report.events.keys()];
  t.ok(
    happened.some((name) => name.startsWith("worker killed")),
    "a worker was killed",
    { happened },
  );
  const excused = [...report.tally.excused.keys()];
  t.ok(
    excused.some((reason) => reason.endsWith(": poisonous chunk")),
    "workers died of chunks",
    { excused },
  );
  t.match(text, /wrong bytes 0/);
  t.notMatch(text, /NaN|undefined/);
});

t.test("wrong bytes, leaks, and failures said to be absence are found", async (t) => {
  t.teardown(killChildren);
  const folder = await makeDirectory(t);
  const report = await runChaos({
    ...QUIET,
    seed: 5,
    seconds: 8,
    processes: 1,
    settleMs: 2_000,
    folder,
    only: ["source fails (error)", "rewritten"],
    preload: new URL("chaos-defects.js", import.meta.url).href,
  });
  const text = chaosText(report, 5);
  t.notOk(isClean(report));
  t.ok(report.tally.wrong > 0, "wrong bytes");
  t.match(text, /WRONG: .*(?:item \d+: expected version|other bytes under)/);
  t.match(text, /failed: \/datasets\/flaky\/zarr\/raw\/\d+\.0: 404/);
  t.ok(
    report.failures.some((failure) => /descriptors: expected at most/.test(failure)),
    "leaks",
    { failures: report.failures },
  );
});
