import t from "tap";
import { createMemorySource } from "../../src/open/memory-source.js";
import { createEncodePool } from "../../src/pool/encode-pool.js";
import { startServer } from "../support/servers/start-server.js";

const MAX_QUEUED = 16_384;

t.test("pages are shed while the queue of chunks is full", async (t) => {
  const source = createMemorySource({
    groups: [{ path: "/", arrays: [{ name: "v", data: new Uint8Array(4), shape: [4] }] }],
  });
  const dataset = { id: "d", location: "memory", immutable: false, encoding: {}, variables: {}, source };
  const waiting = { queued: 0 };
  const { get } = await startServer(
    t,
    { datasets: [dataset] },
    {
      createPool(options) {
        const alone = createEncodePool(options);
        return {
          makeChunk: async () => ({ status: "absent" }),
          stats: Object.create(alone.stats, { queued: { get: () => waiting.queued } }),
          close: () => alone.close(),
        };
      },
    },
  );
  await get("/datasets/d/zarr/v/0");
  const statusOf = async () => (await get("/datasets")).status;
  t.equal(await statusOf(), 200);
  waiting.queued = MAX_QUEUED;
  t.equal(await statusOf(), 503);
  waiting.queued = 0;
  t.equal(await statusOf(), 200);
});
