import { join } from "node:path";
import t from "tap";
import { clientMissing } from "../support/clients/require-client.js";
import { rawRequest } from "../support/servers/raw-request.js";
import { runProgram } from "../support/servers/run-program.js";
import { prepareSite } from "./prepare-site.js";
import { startHaproxy, startNginx } from "./start-balancer.js";
import { type Instance, startInstances } from "./start-instances.js";

t.jobs = 2;

const CHUNKS = 60;

/** The instances as the example's file names them, or their number if only that counts. */
const SERVERS = {
  nginx: (ports: readonly number[]) => ports.map((port) => `127.0.0.1:${port}`).join(","),
  haproxy: (ports: readonly number[]) => String(ports.length),
};

const START = { nginx: startNginx, haproxy: startHaproxy };

/** Has each instance's part warmed beside it. @returns Chunks made by each. */
async function warmAll(instances: readonly Instance[], servers: string): Promise<number[]> {
  const made: number[] = [];
  for (const [index, { directory }] of instances.entries()) {
    const { code, stdout, stderr } = await runProgram([
      ...["warm", "--config", join(directory, "config.json"), "--cache-dir", join(directory, "cache")],
      ...["--dataset", "two words-packed", "--instances", servers, "--instance", String(index + 1)],
    ]);
    if (code !== 0) throw new Error(`${code}: ${stderr}`);
    made.push(Number(/made +(\d+)/.exec(stdout)?.[1]));
  }
  return made;
}

for (const name of ["nginx", "haproxy"] as const) {
  t.test(
    `behind ${name} each chunk is in the cache of the instance that gets it, and in no other`,
    { skip: clientMissing(name), timeout: 60_000 },
    async (t) => {
      // A name that clients have to encode.
      const site = await prepareSite(t, { name: "two words", chunks: CHUNKS, chunkBytes: 1_024 });
      const instances = await startInstances(t, 3, { config: { datasets: site.datasets } });
      const ports = instances.map(({ port }) => port);
      const made = await warmAll(instances, SERVERS[name](ports));
      t.equal(
        made.reduce((sum, count) => sum + count),
        CHUNKS,
        `each chunk is made once: ${made.join(" + ")}`,
      );
      t.ok(Math.min(...made) > CHUNKS / 10, "and each instance makes some");
      const balancer = await START[name](t, { ports });
      const origins: Record<string, number> = {};
      for (let chunk = 0; chunk < CHUNKS; chunk++) {
        const path = `/datasets/two%20words-packed/zarr/noise/${chunk}.0`;
        const { status, headers } = await rawRequest(balancer.port, path);
        if (status !== 200) throw new Error(`${path}: ${status}`);
        const origin = String(headers["x-cache"]);
        origins[origin] = (origins[origin] ?? 0) + 1;
      }
      t.strictSame(origins, { HIT: CHUNKS });
      await balancer.stop();
    },
  );
}
