import { pino } from "pino";
import t from "tap";
import type { ChunkOutcome, ChunkTask } from "../../src/pool/chunk-task.js";
import { createEncodePool, type EncodePool } from "../../src/pool/encode-pool.js";
import type { TurnFromProcess } from "../../src/processes/process-message.js";
import { createRecentOutcomes } from "../../src/processes/recent-outcomes.js";
import { createTurnPool } from "../../src/processes/turn-pool.js";
import type { EncodingPlan } from "../../src/zarr/encoding-plan.js";

function encoded(byteLength = 1): ChunkOutcome {
  const timings = { read: 0, decode: 0, encode: 1 };
  return { status: "encoded", checksum: 0, bytes: new Uint8Array(byteLength), stamp: "s", timings };
}

function taskOf(number: number, id = "p"): ChunkTask {
  const source = { kind: "files", directory: "/d", keyEncoding: { name: "v2", separator: "." } };
  return { plan: { id, path: "a", source } as unknown as EncodingPlan, chunkCoords: [number, 0] };
}

/** A pool that makes what it is told to when it is told to. */
function setUp(maxWaiting = 10) {
  const sent: TurnFromProcess[] = [];
  const makers: ((outcome: ChunkOutcome) => void)[] = [];
  let isClosed = false;
  const pool: EncodePool = {
    makeChunk: () => new Promise((resolve) => makers.push(resolve)),
    stats: createEncodePool({ threads: 1, log: pino({ level: "silent" }) }).stats,
    close: async () => {
      isClosed = true;
    },
  };
  const turns = createTurnPool({
    pool,
    send: (message) => void sent.push(message),
    log: pino({ level: "silent" }),
    maxWaiting,
  });
  return {
    turns,
    told: () => sent.splice(0),
    async make(outcome: ChunkOutcome) {
      makers.shift()?.(outcome);
      await new Promise(setImmediate);
    },
    asked: () => makers.length,
    isClosed: () => isClosed,
  };
}

t.test("makes a chunk when it is its turn", async (t) => {
  const { turns, told, make, asked } = setUp();
  const made = turns.makeChunk(taskOf(1));
  const [question] = told();
  t.match(question, { kind: "ask", id: 1 });
  t.equal(asked(), 0, "not before");
  turns.receive({ kind: "turn", id: 1 });
  t.equal(asked(), 1);
  const outcome = encoded();
  await make(outcome);
  t.equal(await made, outcome);
  t.strictSame(told(), [{ kind: "made", id: 1 }], "its bytes stay here");
});

t.test("asks by what tells chunks apart in all processes", async (t) => {
  const keys = [setUp(), setUp()].map(({ turns, told }) => {
    for (const task of [taskOf(1), taskOf(1), taskOf(2), taskOf(1, "q")]) void turns.makeChunk(task);
    return told().map((message) => (message.kind === "ask" ? message.key : ""));
  });
  t.strictSame(keys[0], keys[1]);
  t.equal(keys[0]![0], keys[0]![1]);
  t.equal(new Set(keys[0]).size, 3);
});

t.test("takes what another process has made", async (t) => {
  const { turns, told, asked } = setUp();
  const made = turns.makeChunk(taskOf(1));
  told();
  turns.receive({ kind: "outcome", id: 1, outcome: { status: "absent" } });
  t.strictSame(await made, { status: "absent" });
  t.equal(asked(), 0);
});

t.test("tells what came of it where others wait, and for a while after", async (t) => {
  const { turns, told, make } = setUp();
  void turns.makeChunk(taskOf(1));
  turns.receive({ kind: "turn", id: 1 });
  turns.receive({ kind: "share", id: 1 });
  told();
  const outcome = encoded();
  await make(outcome);
  t.strictSame(told(), [{ kind: "made", id: 1, outcome }]);
  turns.receive({ kind: "share", id: 1 });
  t.strictSame(told(), [{ kind: "made", id: 1, outcome }]);
  turns.receive({ kind: "share", id: 99 });
  t.strictSame(told(), [{ kind: "made", id: 99 }], "not of what it does not know");
});

t.test("what waits for its turn, or for what another process makes, has waited so long", async (t) => {
  const { turns, make } = setUp();
  const { wait } = turns.stats;
  const observed = () => wait.counts.reduce((sum, count) => sum + count, 0);
  const own = turns.makeChunk(taskOf(1));
  const others = turns.makeChunk(taskOf(2));
  const unwanted = turns.makeChunk(taskOf(3), () => false);
  const began = performance.now();
  await new Promise((resolve) => setTimeout(resolve, 30));
  t.equal(observed(), 0);
  const waited = (performance.now() - began) / 1000;
  turns.receive({ kind: "turn", id: 1 });
  t.equal(observed(), 1);
  t.ok(wait.sum >= waited, `${wait.sum} s`);
  turns.receive({ kind: "outcome", id: 2, outcome: { status: "absent" } });
  t.equal(observed(), 2);
  t.ok(wait.sum >= 2 * waited, `${wait.sum} s`);
  turns.receive({ kind: "turn", id: 3 });
  await make(encoded());
  await Promise.all([own, others, unwanted]);
  t.equal(observed(), 2, "nor twice, nor what nobody waited for");
});

t.test("does not make what nobody waits for when its turn comes", async (t) => {
  const { turns, told, asked } = setUp();
  const made = turns.makeChunk(taskOf(1), () => false);
  told();
  turns.receive({ kind: "turn", id: 1 });
  t.match(await made, { status: "failed", error: { code: "overloaded", details: { abandoned: true } } });
  t.strictSame(told(), [{ kind: "decline", id: 1 }]);
  t.equal(asked(), 0);
});

t.test("what the pool gave up is for others to try", async (t) => {
  const { turns, told, make } = setUp();
  const made = turns.makeChunk(taskOf(1));
  turns.receive({ kind: "turn", id: 1 });
  turns.receive({ kind: "share", id: 1 });
  told();
  const outcome: ChunkOutcome = { status: "failed", error: { code: "draining", message: "", details: {} } };
  await make(outcome);
  t.equal(await made, outcome);
  t.strictSame(told(), [{ kind: "decline", id: 1 }]);
});

t.test("what failed is told to those who wait, and not kept", async (t) => {
  const { turns, told, make } = setUp();
  void turns.makeChunk(taskOf(1));
  turns.receive({ kind: "turn", id: 1 });
  turns.receive({ kind: "share", id: 1 });
  told();
  const outcome: ChunkOutcome = {
    status: "failed",
    error: { code: "corrupt-chunk", message: "", details: {} },
  };
  await make(outcome);
  t.strictSame(told(), [{ kind: "made", id: 1, outcome }]);
  turns.receive({ kind: "share", id: 1 });
  t.strictSame(told(), [{ kind: "made", id: 1 }]);
});

t.test("more than may wait are turned away, those first that nobody waits for", async (t) => {
  const { turns, told } = setUp(2);
  let isWanted = true;
  const left = turns.makeChunk(taskOf(1), () => isWanted);
  void turns.makeChunk(taskOf(2));
  t.match(await turns.makeChunk(taskOf(3)), { status: "failed", error: { code: "overloaded" } });
  isWanted = false;
  told();
  void turns.makeChunk(taskOf(4));
  t.match(await left, { status: "failed", error: { details: { abandoned: true } } });
  t.match(told(), [
    { kind: "decline", id: 1 },
    { kind: "ask", id: 3 },
  ]);
});

t.test("closing ends what waits", async (t) => {
  const { turns, told, isClosed } = setUp();
  const made = turns.makeChunk(taskOf(1));
  told();
  await turns.close();
  t.match(await made, { status: "failed", error: { code: "draining" } });
  t.strictSame(told(), [{ kind: "decline", id: 1 }]);
  t.ok(isClosed());
  t.match(await turns.makeChunk(taskOf(2)), { status: "failed", error: { code: "draining" } });
});

t.test("recent outcomes are bounded in bytes and time", async (t) => {
  const recent = createRecentOutcomes(10, 20);
  recent.keep(1, encoded(6));
  recent.keep(2, encoded(4));
  t.ok(recent.get(1) && recent.get(2));
  recent.keep(3, encoded(5));
  t.notOk(recent.get(1), "the oldest goes");
  t.ok(recent.get(2) && recent.get(3));
  recent.keep(4, encoded(11));
  t.notOk(recent.get(4), "too large alone");
  await new Promise((resolve) => setTimeout(resolve, 60));
  t.notOk(recent.get(2) || recent.get(3));
  recent.keep(5, encoded(10));
  t.ok(recent.get(5), "their bytes are free again");
});
