import { once } from "node:events";
import { Worker } from "node:worker_threads";
import t from "tap";
import { createCallMemory, createCallRows } from "../../src/source/call-rows.js";
import { callCounts } from "../../src/source/source-stats.js";

/** A thread with a call under way that is hanging, which ends when it is told to. */
const CALLING = `
import { parentPort } from "node:worker_threads";
const { callCounts } = await import(${JSON.stringify(new URL("../../src/source/source-stats.js", import.meta.url).href)});
callCounts.begin();
callCounts.hang();
parentPort.on("message", () => process.exit());
parentPort.postMessage("begun");
`;

/** @returns A thread whose call is under way. */
async function startCalling(): Promise<Worker> {
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(CALLING)}`));
  await once(worker, "message");
  return worker;
}

/** Starts and ends threads that do nothing, until ids have gone on by so many. */
async function passIds(count: number): Promise<void> {
  for (let passed = 0; passed < count; ) {
    const some = Array.from({ length: 8 }, () => new Worker("", { eval: true }));
    await Promise.all(some.map((worker) => once(worker, "exit")));
    passed += some.length;
  }
}

t.test(
  "calls of threads are counted as long as they are under way, whatever threads come and go",
  async (t) => {
    callCounts.begin();
    callCounts.begin();
    const old = await startCalling();
    t.equal(callCounts.foreign(), 3);
    await passIds(300);
    t.equal(callCounts.foreign(), 3, "others have not taken the place of threads that live");
    const young = await startCalling();
    await young.terminate();
    t.equal(callCounts.foreign(), 3, "what has ended has nothing under way");
    t.equal(callCounts.hanging(), 1);
    old.postMessage("end");
    await once(old, "exit");
    t.equal(callCounts.foreign(), 2);
    t.equal(callCounts.hanging(), 0);
    callCounts.end();
    callCounts.end();
    t.equal(callCounts.foreign(), 0);
  },
);

t.test("any number of threads over time finds a row", async (t) => {
  const rows = createCallRows(createCallMemory(4));
  const main = rows.countsOf(0);
  main.begin();
  for (let id = 1; id <= 1_000; id++) {
    const counts = rows.countsOf(id);
    counts.begin();
    counts.begin();
    counts.hang();
    t.same([main.foreign(), main.hanging(), rows.hanging()], [3, 1, 1]);
    rows.giveBack(id);
    t.same([main.foreign(), main.hanging(), rows.hanging()], [1, 0, 0]);
  }
});

t.test(
  "threads too many are counted together, and take rows of their own as soon as there are any",
  async (t) => {
    const rows = createCallRows(createCallMemory(4));
    const threads = Array.from({ length: 10 }, (_, id) => rows.countsOf(id));
    for (const counts of threads) counts.begin();
    const [main, second] = threads as [(typeof threads)[0], (typeof threads)[0]];
    t.equal(main.foreign(), 10);
    rows.giveBack(9);
    t.equal(main.foreign(), 10, "the others' calls are still counted");
    threads[9]?.end();
    second.end();
    rows.giveBack(1);
    const last = threads[8];
    last?.end();
    last?.begin();
    t.equal(main.foreign(), 8);
    rows.giveBack(8);
    t.equal(main.foreign(), 7, "it had a row of its own by then");
    for (const id of [0, 2, 3, 4, 5, 6, 7]) threads[id]?.end();
    t.equal(main.foreign(), 0);
  },
);
