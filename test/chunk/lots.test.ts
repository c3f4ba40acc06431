import { setImmediate as nextIteration } from "node:timers/promises";
import t from "tap";
import { inLots } from "../../src/chunk/lots.js";
import type { ChunkOutcome } from "../../src/codec/make-chunk.js";
import type { ChunkTask } from "../../src/pool/chunk-task.js";
import { createTaskRunner } from "../../src/pool/run-chunk-task.js";
import { createEncodingPlan } from "../../src/zarr/plan/create-encoding-plan.js";
import { storedArray } from "../support/datasets/stored-array.js";

const MIB = 2 ** 20;

/** A plan that cuts chunks of bytes into pieces. */
function planOf(chunkLength: number, pieceLength: number) {
  const form = { dtype: "|u1", codecs: [], compressorCount: 0 as const };
  const stored = storedArray({ ...form, shape: [2 * chunkLength], chunkShape: [chunkLength] });
  return createEncodingPlan(stored, { chunkShape: [pieceLength], compressor: null }).plan;
}

/** Makes nothing before it is let go, and remembers what it was asked for. */
function waitingMaker() {
  const asked: { readonly coords: number[]; readonly signal: AbortSignal | undefined }[] = [];
  const waiting: (() => void)[] = [];
  const nameOf = ({ chunkCoords }: Pick<ChunkTask, "chunkCoords">): ChunkOutcome => ({
    status: "failed",
    error: { code: "internal", message: chunkCoords.join("."), details: {} },
  });
  return {
    asked,
    makeChunk: inLots(async (task, signal) => {
      asked.push({ coords: [task, ...(task.others ?? [])].map(({ chunkCoords: [at = -1] }) => at), signal });
      await new Promise<void>((resolve) => waiting.push(resolve));
      return { ...nameOf(task), ...(task.others && { others: task.others.map(nameOf) }) };
    }),
    async letGo() {
      for (const go of waiting.splice(0)) go();
      await nextIteration();
    },
  };
}

t.test("pieces of a large chunk are made in lots, one at a time", async (t) => {
  const { asked, makeChunk, letGo } = waitingMaker();
  const plan = planOf(64 * MIB, MIB);
  const make = async (at: number, signal?: AbortSignal) => {
    const outcome = await makeChunk({ plan, chunkCoords: [at] }, signal);
    return outcome.status === "failed" ? outcome.error.message : outcome.status;
  };
  const first = [make(0), make(1), make(2)];
  await nextIteration();
  const others = Array.from({ length: 40 }, (_, at) => make(10 + at));
  const ofOther = make(64);
  await nextIteration();
  t.same(
    asked.map(({ coords }) => coords),
    [[0, 1, 2], [64]],
    "chunks do not wait for each other",
  );
  await letGo();
  t.same(await Promise.all(first), ["0", "1", "2"], "each has its own");
  t.equal(await ofOther, "64");
  t.equal(asked[2]?.coords.length, 32, "as many as a lot may make");
  await letGo();
  t.equal(asked[3]?.coords.length, 8);
  await letGo();
  t.same(
    await Promise.all(others),
    others.map((_, at) => `${10 + at}`),
  );
});

t.test("a lot ends when nobody waits for it, and not before", async (t) => {
  const { asked, makeChunk, letGo } = waitingMaker();
  const plan = planOf(64 * MIB, MIB);
  const clients = [new AbortController(), new AbortController()];
  const made = clients.map(({ signal }, at) => makeChunk({ plan, chunkCoords: [at] }, signal));
  await nextIteration();
  clients[0]?.abort();
  t.notOk(asked[0]?.signal?.aborted);
  const late = new AbortController();
  const cancelled = makeChunk({ plan, chunkCoords: [5] }, late.signal);
  await nextIteration();
  late.abort();
  t.match(await cancelled, { status: "failed", error: { code: "cancelled" } }, "it has not begun");
  clients[1]?.abort();
  t.ok(asked[0]?.signal?.aborted);
  await letGo();
  await Promise.all(made);
  t.equal(asked.length, 1);
});

t.test("small chunks, and those of several large ones, are made one by one", async (t) => {
  const { asked, makeChunk, letGo } = waitingMaker();
  const tasks = [planOf(MIB, MIB / 4), planOf(64 * MIB, 128 * MIB)].flatMap((plan) => [
    makeChunk({ plan, chunkCoords: [0] }),
    makeChunk({ plan, chunkCoords: [0] }),
  ]);
  await nextIteration();
  t.same(
    asked.map(({ coords }) => coords),
    [[0], [0], [0], [0]],
  );
  await letGo();
  await Promise.all(tasks);
});

t.test("a worker reads a stored chunk once for all tasks of a lot", async (t) => {
  const plan = { ...planOf(8, 2), source: { kind: "given", name: "s" } } as const;
  const bytes = Uint8Array.from({ length: 8 }, (_, at) => at);
  const stored = [{ coords: [0], version: "1", bytes }];
  const others = [1, 2, 3].map((at) => ({ plan, chunkCoords: [at] }));
  const outcome = await createTaskRunner()({ plan, chunkCoords: [0], others, stored });
  const made = [outcome, ...(outcome.others ?? [])];
  t.same(
    made.map((each) => each.status === "encoded" && [...each.bytes]),
    [
      [0, 1],
      [2, 3],
      [4, 5],
      [6, 7],
    ],
  );
});
