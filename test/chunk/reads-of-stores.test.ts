import { join } from "node:path";
import t from "tap";
import { createServer } from "../../src/index.js";
import { faultMountMissing, mountFaults } from "../support/fault-mount.js";
import { parseMetrics } from "../support/servers/parse-metrics.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../support/write-store.js";

t.setTimeout(120_000);
const CHUNKS = 100;

function storeFiles(name: string, value: number) {
  const chunks = Array.from(
    { length: CHUNKS },
    (_, n) => [`${name}/v/${n}`, Buffer.alloc(4_000, value)] as const,
  );
  return {
    [`${name}/.zgroup`]: zgroup,
    [`${name}/v/.zarray`]: { ...zarray, shape: [4_000 * CHUNKS], chunks: [4_000] },
    ...Object.fromEntries(chunks),
  };
}

t.test(
  "a store that hangs does not hold up the chunks of another",
  { skip: faultMountMissing() },
  async (t) => {
    const mount = await mountFaults(t);
    const local = await makeDirectory(t);
    await writeFiles(mount.behind, storeFiles("a", 1));
    await writeFiles(local, storeFiles("b", 2));
    const server = await createServer({
      // No version is checked before a read: all requests wait for reads.
      datasets: {
        a: { source: join(mount.directory, "a"), immutable: true },
        b: { source: join(local, "b") },
      },
      log: "silent",
    });
    t.teardown(() => server.close());
    const { url } = await server.listen({ host: "127.0.0.1", port: 0 });
    const get = async (path: string) => {
      const response = await fetch(`${url}${path}`);
      return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()) };
    };
    const metric = async (name: string) =>
      parseMetrics((await get("/metrics")).bytes.toString()).value(name, {});
    t.equal((await get("/datasets/a/zarr/v/0")).status, 200);
    await mount.fail("hang read /a/v/*");
    let answered = 0;
    const hanging = Array.from({ length: CHUNKS - 1 }, async (_, index) => {
      const { status } = await get(`/datasets/a/zarr/v/${index + 1}`);
      answered++;
      return status;
    });
    while (((await metric("zpublish_http_requests_in_flight")) ?? 0) < CHUNKS - 1)
      await new Promise((resolve) => setTimeout(resolve, 20));
    for (const key of [0, 1, 2]) {
      t.match(await get(`/datasets/b/zarr/v/${key}`), { status: 200, bytes: Buffer.alloc(4_000, 2) });
    }
    t.equal(answered, 0, "while all of the other store wait");
    t.ok(((await metric("zpublish_chunk_reads_waiting")) ?? 0) > 0);
    await mount.fail();
    t.same(new Set(await Promise.all(hanging)), new Set([200]), "answered when the store continues");
  },
);
