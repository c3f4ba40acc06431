import { fileURLToPath } from "node:url";
import { pino } from "pino";
import t, { type Test } from "tap";
import { createEncodePool } from "../../src/pool/encode-pool.js";
import { type ChunkTurns, createChunkTurns, type TurnMember } from "../../src/processes/chunk-turns.js";
import { createTurnPool, type TurnPool } from "../../src/processes/turn-pool.js";
import { createEncodingPlan } from "../../src/zarr/create-encoding-plan.js";
import type { EncodingPlan } from "../../src/zarr/encoding-plan.js";
import { storedArray } from "../zarr/stored-array.js";

const workerFile = fileURLToPath(new URL("./crashing-worker.js", import.meta.url));
const { plan: PLAN } = createEncodingPlan(storedArray(), { compressor: null });
t.setTimeout(120_000);

/** A process's pool, which asks for its turns. */
function join(t: Test, turns: ChunkTurns, taskTimeoutMs = 120_000): TurnPool {
  const log = pino({ level: "silent" });
  const pool = createEncodePool({ threads: 1, workerFile, taskTimeoutMs, log });
  const member: TurnMember = { send: (message) => void setImmediate(() => turnPool.receive(message)) };
  const send = (message: Parameters<ChunkTurns["receive"]>[1]) =>
    void setImmediate(() => turns.receive(member, message));
  const turnPool = createTurnPool({ pool, send, log, maxWaiting: 1_000 });
  t.teardown(() => turnPool.close());
  return turnPool;
}

/** For an array of that path: what the crashing worker is to do. */
function orders(path: string, number: number, count: number) {
  const plan: EncodingPlan = { ...PLAN, path };
  return Array.from({ length: count }, (_, index) => ({ plan, chunkCoords: [number, index] }));
}

t.test("chunks that wait apart in one process take no turn from another", async (t) => {
  const turns = createChunkTurns({ slots: 1, slotsPerMember: 1 });
  const [one, other] = [join(t, turns), join(t, turns)];
  const poisoned = orders("poisoned", 2, 20).map((task) => one.makeChunk(task));
  for (let round = 0; round < 5; round++) {
    const healthy = orders("healthy", 0, 20).flatMap((task) => [one.makeChunk(task), other.makeChunk(task)]);
    for (const outcome of await Promise.all(healthy)) t.match(outcome, { status: "absent" });
  }
  t.ok(one.stats.workerDeaths.crashed < 20, "suspects rest");
  t.match(turns.stats, { making: 0, waiting: 0 }, "without a turn");
  await one.close();
  for (const outcome of await Promise.all(poisoned)) t.match(outcome, { status: "failed" });
});

t.test("chunks that make way for others give their turn to them", async (t) => {
  const turns = createChunkTurns({ slots: 2, slotsPerMember: 2 });
  const pool = join(t, turns, 8_000);
  let isSlowMade = false;
  const slow = pool.makeChunk(orders("slow", 10, 4_001).at(-1)!).then((outcome) => {
    isSlowMade = true;
    return outcome;
  });
  const quick = await Promise.all(orders("quick", 0, 10).map((task) => pool.makeChunk(task)));
  for (const outcome of quick) t.match(outcome, { status: "absent" });
  t.notOk(isSlowMade);
  t.match(await slow, { status: "absent" });
});
