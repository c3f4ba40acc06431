import { fileURLToPath } from "node:url";
import { pino } from "pino";
import t from "tap";
import { createMemorySource } from "../../src/open/memory-source.js";
import { createEncodePool, type EncodePool, type EncodePoolOptions } from "../../src/pool/encode-pool.js";
import { type RunningServer, startServer } from "../support/servers/start-server.js";

const workerFile = fileURLToPath(new URL("./poisonous-worker.js", import.meta.url));
const POISONOUS = ["exits", "throws", "hoards", "loops"];
const CHUNKS = 12;
/** Chunks of each poisonous array that are asked for; those that are healthy wait behind them. */
const ASKED = 4;
const TIMEOUT_MS = 2_000;
t.setTimeout(280_000);

/** Arrays of the same content. Some end the worker that makes their chunks. */
function datasets() {
  const arrays = [...POISONOUS, "healthy", "other"].map((name, at) => ({
    name,
    data: Float32Array.from({ length: CHUNKS * 4_096 }, (_, index) => Math.sin(index / 100) + at),
    shape: [CHUNKS * 4_096],
    chunks: [4_096],
  }));
  const source = createMemorySource({ revision: "1", groups: [{ path: "/", arrays }] });
  return [{ id: "d", location: "memory", immutable: false, encoding: {}, variables: {}, source }];
}

const paths = (name: string) =>
  Array.from({ length: CHUNKS }, (_, index) => `/datasets/d/zarr/${name}/${index}`);

async function bytesOf({ get }: RunningServer, path: string): Promise<Buffer> {
  const response = await get(path);
  const body = Buffer.from(await response.arrayBuffer());
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${body}`);
  return body;
}

for (const threads of [1, 2]) {
  t.test(`chunks that end workers leave others' chunks as they are, with ${threads} at work`, async (t) => {
    const clean = await startServer(t, { datasets: datasets() });
    const expected = new Map<string, Buffer>();
    for (const path of [...paths("healthy"), ...paths("other")])
      expected.set(path, await bytesOf(clean, path));

    const options: EncodePoolOptions = {
      threads,
      workerFile,
      taskTimeoutMs: TIMEOUT_MS,
      workerHeapBytes: 64 * 2 ** 20,
      log: pino({ level: "silent" }),
    };
    let pool: EncodePool | undefined;
    const server = await startServer(
      t,
      { datasets: datasets() },
      {
        createPool() {
          pool = createEncodePool(options);
          return pool;
        },
      },
    );
    const stopped = new AbortController();
    // The first chunk of each kind, then the second ones, and so on.
    const poisonous = Array.from({ length: ASKED }, (_, index) =>
      POISONOUS.map((name) => paths(name)[index] as string),
    ).flat();
    const poisoned = poisonous.map((path) =>
      fetch(server.url + path, { signal: stopped.signal }).then(
        async (response) => ({ path, status: response.status, detail: await response.text() }),
        () => undefined,
      ),
    );
    const hasHappened = () => {
      const { workerDeaths, quarantined } = (pool as EncodePool).stats;
      return workerDeaths.crashed > 0 && workerDeaths.timedOut > 0 && quarantined > 0;
    };
    let asked = 0;
    const client = async () => {
      for (;;) {
        for (const [path, bytes] of expected) {
          if (asked > 2 * expected.size && hasHappened()) return;
          if (!bytes.equals(await bytesOf(server, path))) t.fail(`other bytes of ${path}`);
          asked++;
        }
      }
    };
    await Promise.all([client(), client(), client()]);
    t.pass(`${asked} answered, every byte right`);
    stopped.abort();
    const answered = (await Promise.all(poisoned)).filter((answer) => answer !== undefined);
    t.ok(answered.length > 0);
    for (const { path, status, detail } of answered) {
      t.equal(status, 500, path);
      t.match(detail, /^\{"detail":"The data could not be encoded or decoded","id":"[^"]+"\}$/);
    }
    t.ok(hasHappened());
  });
}
