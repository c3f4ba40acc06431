import t from "tap";
import { createMemorySource } from "../../src/source/memory.js";
import { startServer } from "../server/start-server.js";

const MAX_QUEUED = 16_384;

t.test("pages are shed when the queue is full, but not by what waits of suspects", async (t) => {
  const source = createMemorySource({
    groups: [{ path: "/", arrays: [{ name: "v", data: new Uint8Array(4), shape: [4] }] }],
  });
  const dataset = { id: "d", location: "memory", immutable: false, encoding: {}, variables: {}, source };
  const waiting = { queued: 0, queuedSuspects: 0 };
  const { get } = await startServer(
    t,
    { datasets: [dataset] },
    {
      process: 1,
      processes: 1,
      inTurn(alone) {
        return {
          makeChunk: async () => ({ status: "absent" }),
          stats: Object.create(alone.stats, {
            queued: { get: () => waiting.queued },
            queuedSuspects: { get: () => waiting.queuedSuspects },
          }),
          close: () => alone.close(),
        };
      },
      allMetrics: async () => [],
    },
  );
  await get("/datasets/d/zarr/v/0");
  const statusOf = async () => (await get("/datasets")).status;
  t.equal(await statusOf(), 200);
  Object.assign(waiting, { queued: MAX_QUEUED, queuedSuspects: MAX_QUEUED / 2 });
  t.equal(await statusOf(), 200, "others find room");
  Object.assign(waiting, { queued: MAX_QUEUED + MAX_QUEUED / 2 });
  t.equal(await statusOf(), 503);
  Object.assign(waiting, { queued: 0, queuedSuspects: 0 });
  t.equal(await statusOf(), 200);
});
