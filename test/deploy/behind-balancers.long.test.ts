import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import t, { type Test } from "tap";
import { clientMissing } from "../support/clients/require-client.js";
import { rawRequest } from "../support/servers/raw-request.js";
import { runProgram } from "../support/servers/run-program.js";
import { BALANCERS, type Balancer, START_BALANCER } from "./balancer.js";
import { type Instance, startInstances } from "./instances.js";
import { prepareSite } from "./site.js";

t.setTimeout(600_000);

const skip = clientMissing(...BALANCERS);

t.test("three instances behind nginx and HAProxy", { skip }, async (t) => {
  const chunks = 200;
  const site = await prepareSite(t, { name: "noise", chunks, chunkBytes: 8 * 1024 });
  const args = ["--access-log", "1", "--trusted-proxies", "loopback", "--drain-delay", "600"];
  const config = { datasets: site.datasets };
  // The checks of HAProxy's example need no other port.
  const [first, others] = await Promise.all([
    startInstances(t, 1, { config, args: [...args, "--admin-port", "0"] }),
    startInstances(t, 2, { config, args }),
  ]);
  const instances = [...first, ...others];
  const ports = instances.map(({ port }) => port);
  const balancers = await Promise.all(
    BALANCERS.map((name) => START_BALANCER[name](t, { ports, hasTls: true })),
  );

  for (const balancer of balancers) {
    await t.test(
      `a request has one id in the logs of ${balancer.name} and of zpublish, and neither has its token`,
      (t) => checkRequestId(t, balancer, instances),
    );
  }

  await t.test("HAProxy leaves out an instance that drains, which answers on until it is over", (t) =>
    checkDraining(t, balancers.find(({ name }) => name === "haproxy")!, instances),
  );
});

async function checkRequestId(t: Test, balancer: Balancer, instances: readonly Instance[]): Promise<void> {
  const path = "/datasets/noise/zarr/noise/0.0";
  const { status } = await rawRequest(balancer.port, `${path}?token=secret`, {
    headers: { "X-Request-Id": "forged", Authorization: "Bearer secret" },
  });
  t.equal(status, 200);
  const [, id = "none"] = await balancer.logged(/ \/datasets\/noise\/zarr\/noise\/0\.0 .*\bid=(\S+)/);
  const lines = () => instances.flatMap((instance) => instance.log().split("\n"));
  while (!lines().some((line) => line.includes(id) && line.includes(path))) await delay(20);
  for (const text of [lines().join("\n"), await balancer.log()]) t.notMatch(text, /secret|forged/);
}

/** Ends the first instance. */
async function checkDraining(t: Test, balancer: Balancer, instances: readonly Instance[]): Promise<void> {
  const [leaving, ...staying] = instances;
  const paths = Array.from({ length: 30 }, (_, i) => `/datasets/noise-packed/zarr/noise/${i}.0`);
  t.match(await balancer.log(), /upstream=zpublish\//, "checks find all of them well");
  t.notMatch(await balancer.log(), "zpublish_last_resort");
  const ended = leaving!.end("SIGTERM");
  await balancer.logged(/zpublish-1 is DOWN, reason: Layer7/);
  t.equal((await rawRequest(leaving!.port, "/readyz")).status, 503);
  t.equal((await rawRequest(leaving!.port, "/healthz")).status, 200, "it lives");
  t.equal((await rawRequest(leaving!.port, "/datasets")).status, 200, "and answers");
  const before = instances.map((instance) => instance.log().length);
  for (const path of paths) t.equal((await rawRequest(balancer.port, path)).status, 200, path);
  const logged = () => staying.map((instance, i) => instance.log().slice(before[i + 1])).join("");
  for (const path of paths) {
    while (!logged().includes(`"${path}"`)) await delay(20);
  }
  t.notMatch(leaving!.log().slice(before[0]), "/datasets/noise", "nothing new goes to it");

  leaving!.end("SIGTERM");
  t.equal(await ended, 128 + 15, "a second signal ends it now");
}

const WARM_CHUNKS = 60;

/** The instances as the example's file names them, or their number if only that counts. */
const SERVERS = {
  nginx: (ports: readonly number[]) => ports.map((port) => `127.0.0.1:${port}`).join(","),
  haproxy: (ports: readonly number[]) => String(ports.length),
};

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

for (const name of BALANCERS) {
  t.test(
    `behind ${name} each chunk is in the cache of the instance that gets it, and in no other`,
    { skip: clientMissing(name) },
    async (t) => {
      // A name that clients have to encode.
      const site = await prepareSite(t, { name: "two words", chunks: WARM_CHUNKS, chunkBytes: 1_024 });
      const instances = await startInstances(t, 3, { config: { datasets: site.datasets } });
      const ports = instances.map(({ port }) => port);
      const made = await warmAll(instances, SERVERS[name](ports));
      t.equal(
        made.reduce((sum, count) => sum + count),
        WARM_CHUNKS,
        `each chunk is made once: ${made.join(" + ")}`,
      );
      t.ok(Math.min(...made) > WARM_CHUNKS / 10, "and each instance makes some");
      const balancer = await START_BALANCER[name](t, { ports });
      const origins: Record<string, number> = {};
      for (let chunk = 0; chunk < WARM_CHUNKS; chunk++) {
        const path = `/datasets/two%20words-packed/zarr/noise/${chunk}.0`;
        const { status, headers } = await rawRequest(balancer.port, path);
        if (status !== 200) throw new Error(`${path}: ${status}`);
        const origin = String(headers["x-cache"]);
        origins[origin] = (origins[origin] ?? 0) + 1;
      }
      t.strictSame(origins, { HIT: WARM_CHUNKS });
      await balancer.stop();
    },
  );
}
