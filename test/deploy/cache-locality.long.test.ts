import t, { type Test } from "tap";
import { clientMissing } from "../support/clients/require-client.js";
import { startLoad } from "./checked-load.js";
import { type DeploySite, prepareSite } from "./prepare-site.js";
import { type BalancerOptions, startHaproxy, startNginx } from "./start-balancer.js";
import { startInstances } from "./start-instances.js";

/** Some 66 KiB each when packed, 7.8 MiB together: more than one cache holds, and less than three. */
const CHUNKS = 120;
const CHUNK_BYTES = 128 * 2 ** 10;
const CACHE_SIZE = "4MiB";
/** Of which the second half counts. */
const REQUESTS = 1_200;

/** The balancers without what makes a path go to the same instance. */
const WITHOUT = {
  nginx: { "    hash $uri consistent;\n": "" },
  haproxy: {
    "    balance uri path-only\n    hash-type consistent sdbm avalanche\n": "    balance roundrobin\n",
  },
};

type StartBalancer = typeof startNginx;

/** Share of chunks that come from a cache, by a balancer in front of three fresh instances. */
async function hitRatio(
  t: Test,
  site: DeploySite,
  start: StartBalancer,
  changes: NonNullable<BalancerOptions["changes"]>,
): Promise<number> {
  const instances = await startInstances(t, 3, {
    config: { datasets: site.datasets },
    args: ["--cache-size", CACHE_SIZE],
  });
  const ports = instances.map(({ port }) => port);
  const { packed } = await site.expected(ports[0]!);
  const balancer = await start(t, { ports, changes });
  const load = startLoad(t, balancer.port, packed, { connections: 4 });
  await load.more(REQUESTS / 2);
  const before = { ...load.result.origins };
  await load.more(REQUESTS / 2);
  const { origins, failures, wrong } = await load.stop();
  t.strictSame([...failures, ...wrong], [], "every answer is right");
  await balancer.stop();
  await Promise.all(instances.map((instance) => instance.end("SIGTERM")));
  const count = (origin: string) => (origins[origin] ?? 0) - (before[origin] ?? 0);
  return count("HIT") / (count("HIT") + count("MISS"));
}

const BALANCERS = { nginx: startNginx, haproxy: startHaproxy };

for (const name of ["nginx", "haproxy"] as const) {
  t.test(
    `behind ${name} the caches of three instances hold three times as much, since each path has an instance`,
    { skip: clientMissing(name), timeout: 120_000 },
    async (t) => {
      const site = await prepareSite(t, { name: "noise", chunks: CHUNKS, chunkBytes: CHUNK_BYTES });
      const hashed = await hitRatio(t, site, BALANCERS[name], {});
      const spread = await hitRatio(t, site, BALANCERS[name], WITHOUT[name]);
      const percent = (ratio: number) => `${(ratio * 100).toFixed(1)} %`;
      t.comment(`hit ratio: ${percent(hashed)} by path, ${percent(spread)} in turn`);
      t.ok(hashed > 0.9, `by path: ${percent(hashed)}`);
      t.ok(hashed > spread + 0.2, `in turn: ${percent(spread)}`);
    },
  );
}
