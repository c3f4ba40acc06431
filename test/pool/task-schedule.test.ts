import t from "tap";
import { createTaskSchedule, type PoolTask } from "../../src/pool/task-schedule.js";
import type { EncodingPlan } from "../../src/zarr/encoding-plan.js";

let lastQueuedAt = 0;

function taskOf(arrayKey: string, memory = 1, isWanted = () => true): PoolTask {
  return {
    task: { plan: {} as EncodingPlan, chunkCoords: [] },
    isWanted,
    onApart: () => undefined,
    settle: () => undefined,
    arrayKey,
    chunkId: arrayKey,
    memory,
    queuedAt: ++lastQueuedAt,
    deaths: 0,
    notBegun: 0,
  };
}

/** Of 100 bytes for 5 places: what takes more than 10 is large, and has 50. */
const create = () => createTaskSchedule(100, 5);

t.test("first come, first served, small or large", async (t) => {
  const schedule = create();
  const tasks = [taskOf("a"), taskOf("a", 20), taskOf("b"), taskOf("a", 20), taskOf("a")];
  for (const task of tasks) schedule.add(task);
  t.equal(schedule.length, 5);
  for (const task of tasks) {
    const next = schedule.next();
    t.equal(next, task);
    if (next !== undefined) schedule.began(next);
  }
  t.equal(schedule.next(), undefined);
  t.equal(schedule.length, 0);
});

t.test("large ones wait for memory, small ones do not, and one large one may always run", async (t) => {
  const schedule = create();
  const huge = taskOf("a", 1_000);
  const large = [taskOf("a", 20), taskOf("a", 20), taskOf("a", 20)];
  const small = taskOf("a");
  for (const task of [huge, ...large, small]) schedule.add(task);
  const take = () => {
    const next = schedule.next();
    if (next !== undefined) schedule.began(next);
    return next;
  };
  t.equal(take(), huge);
  t.equal(take(), small);
  t.equal(take(), undefined);
  t.equal(schedule.length, 3);
  schedule.ended(huge);
  t.equal(take(), large[0]);
  t.equal(take(), large[1]);
  t.equal(take(), undefined, "60 bytes are too many");
  schedule.ended(large[1] as PoolTask);
  t.equal(take(), large[2]);
  t.equal(schedule.length, 0);
});

t.test(
  "an array over which workers died waits apart, takes turns with others like it, and rests",
  async (t) => {
    const schedule = create();
    const told: string[] = [];
    const suspect = { ...taskOf("a"), onApart: () => told.push("a") };
    schedule.add(suspect);
    schedule.add(taskOf("b"));
    schedule.strike("a", 0);
    t.same(told, ["a"]);
    const later = taskOf("a");
    schedule.add(later);
    t.equal(schedule.next()?.arrayKey, "b");
    t.equal(schedule.next(), undefined, "not by the way of others");
    t.equal(schedule.length, 2);
    const now = performance.now();
    t.equal(schedule.nextOfSuspects(now), suspect, "after the first death at once");
    schedule.strike("a", 0);
    const restUntil = schedule.nextOfSuspects(now);
    t.type(restUntil, "number");
    t.ok((restUntil as number) > now);
    schedule.strike("c", 0);
    const other = taskOf("c");
    schedule.add(other);
    t.equal(schedule.nextOfSuspects(now), other);
    t.equal(schedule.nextOfSuspects(restUntil as number), later);
    t.equal(schedule.suspects, 2);
    t.equal(schedule.nextOfSuspects(restUntil as number), undefined);
  },
);

t.test("of suspects the one of which most wait goes first where there is no room", (t) => {
  const schedule = create();
  schedule.strike("a", 0);
  schedule.strike("b", 0);
  const [b, a1, a2, a3, other] = [taskOf("b"), taskOf("a"), taskOf("a"), taskOf("a"), taskOf("c")];
  for (const task of [b, a1, a2, a3, other]) schedule.add(task);
  t.equal(schedule.ofSuspects, 4);
  t.equal(schedule.removeSuspect(2), a3);
  t.equal(schedule.removeSuspect(2), undefined);
  t.equal(schedule.removeSuspect(), a2);
  t.equal(schedule.ofSuspects, 2);
  t.equal(schedule.length, 3);
  t.end();
});

t.test(
  "an array rests for as long as what killed workers took, and is trusted again step by step",
  async (t) => {
    const schedule = create();
    for (let deaths = 0; deaths < 5; deaths++) schedule.strike("a", 7_000);
    const task = taskOf("a");
    schedule.add(task);
    const now = performance.now();
    t.ok((schedule.nextOfSuspects(now) as number) > now + 6_000);
    const watch = schedule.watchOf("a");
    if (watch === undefined) throw new Error("expected a watch");
    for (const strikes of [2, 1, 0]) {
      schedule.acquit(watch);
      t.equal(watch.strikes, strikes);
    }
    schedule.unwatch(watch);
    t.equal(schedule.watchOf("a"), undefined);
    t.equal(schedule.next(), task, "what waited is among the others again");
    t.equal(schedule.suspects, 0);
  },
);

t.test("an array whose tasks hold up others comes last while they run", async (t) => {
  const schedule = create();
  const [slow, quick] = [taskOf("slow"), taskOf("quick")];
  schedule.add(slow);
  t.notOk(schedule.doOthersWait("slow"));
  schedule.add(quick);
  t.ok(schedule.doOthersWait("slow"));
  const watch = schedule.watch("slow");
  watch.slowRunning++;
  t.equal(schedule.next(), quick);
  t.equal(schedule.next(), slow, "where nobody else waits it goes on");
  watch.slowRunning--;
  schedule.unwatch(watch);
  t.equal(schedule.watchOf("slow"), undefined);
});

t.test("what nobody waits for is taken out wherever it waits, and suspects make way first", async (t) => {
  const schedule = create();
  const never = () => false;
  schedule.strike("a", 0);
  const wanted = taskOf("a");
  for (const task of [
    taskOf("a", 1, never),
    wanted,
    taskOf("b", 1, never),
    taskOf("b", 20, never),
    taskOf("b"),
  ])
    schedule.add(task);
  t.equal(schedule.removeUnwanted().length, 3);
  t.equal(schedule.length, 2);
  t.equal(schedule.removeSuspect(), wanted);
  t.equal(schedule.removeSuspect(), undefined);
  t.equal(schedule.removeAll().length, 1);
  t.equal(schedule.length, 0);
  t.notOk(schedule.doOthersWait("a"));
});
