import { inflateSync } from "node:zlib";
import t from "tap";
import { cacheHitRatio, withShifts, zipfLoad } from "../../bench/cache-hit-ratio.js";
import { PLACEMENTS, type PlacementName } from "../../bench/fleet/placements.js";
import { type FleetRun, ORIGIN, simulateFleet } from "../../bench/fleet/simulate-fleet.js";
import { prepareSite } from "../deploy/prepare-site.js";
import { type BalancerOptions, startHaproxy, startNginx } from "../deploy/start-balancer.js";
import { startInstances } from "../deploy/start-instances.js";
import { clientMissing } from "../require-client.js";
import { runFleet } from "./running-fleet.js";

t.setTimeout(600_000);

const CHUNKS = 3_000;
/** Half of it is noise: zlib makes some 10.1 KB of it, which take three pages. */
const CHUNK_BYTES = 20_000;
const CACHE_BYTES = 4 * 2 ** 20;
const CHUNK_BYTES_CACHED = 3 * 4_096;
const REQUESTS = 8_000;
/** Difference of the hit ratios of a simulation and of running instances. */
const TOLERANCE = 0.015;

/** Balancers, and what they are simulated by. */
const CASES: readonly {
  readonly balancer: "nginx" | "haproxy";
  readonly changes?: NonNullable<BalancerOptions["changes"]>;
  readonly placement: PlacementName;
}[] = [
  { balancer: "nginx", placement: "consistent" },
  { balancer: "nginx", changes: { "hash $uri consistent;": "hash $uri;" }, placement: "modulo" },
  { balancer: "haproxy", placement: "consistent, HAProxy" },
];

t.test("a simulated instance hits as the cache on a disk does", { timeout: 300_000 }, async (t) => {
  const capacity = 1_024;
  for (const [cost, load] of [
    ["encode", zipfLoad(20_000, 10_000, 0.9, 7)],
    ["read", withShifts(zipfLoad(20_000, 10_000, 1.1, 8), 4, 1_000)],
  ] as const) {
    const onDisk = await cacheHitRatio(load, capacity * 4_096, cost);
    const run = await simulateFleet({
      ...{ load, cost, names: ["one:9000"], place: PLACEMENTS.consistent, capacity, seed: 1 },
      chunkBytes: 4_096,
    });
    const [simulated] = hitRatios(run, 1);
    t.comment(`${cost}: hit ratio ${onDisk} on a disk, ${simulated} simulated`);
    t.ok(Math.abs(onDisk - simulated!) < 0.01, `${cost}: ${onDisk} on a disk, ${simulated} simulated`);
  }
});

t.test("three running instances behave as three simulated ones", { timeout: 600_000 }, async (t) => {
  const site = await prepareSite(t, { name: "noise", chunks: CHUNKS, chunkBytes: CHUNK_BYTES });
  const pathOf = (chunk: number) => `/datasets/noise-packed/zarr/noise/${chunk}.0`;
  const [instance] = await startInstances(t, 1, { config: { datasets: site.datasets } });
  const { plain, packed } = await site.expected(instance!.port);
  await instance!.end("SIGTERM");
  t.equal(Math.ceil((packed[0]!.body.byteLength + 64) / 4_096) * 4_096, CHUNK_BYTES_CACHED);
  const load = zipfLoad(REQUESTS, CHUNKS, 0.9, 1);
  for (const { balancer, changes, placement } of CASES) {
    const skip = clientMissing(balancer);
    t.test(`${placement}, as ${balancer} does it`, { skip, timeout: 300_000 }, async (t) => {
      const running = await runFleet(t, {
        config: { datasets: site.datasets },
        args: ["--cache-size", String(CACHE_BYTES)],
        start: { nginx: startNginx, haproxy: startHaproxy }[balancer],
        ...(changes && { changes }),
        load,
        pathOf,
        isRight: (chunk, body) => inflateSync(body).equals(plain[chunk]!.body),
      });
      const simulated = await simulateFleet({
        load,
        names: running.names,
        place: PLACEMENTS[placement],
        capacity: CACHE_BYTES / CHUNK_BYTES_CACHED,
        chunkBytes: CHUNK_BYTES_CACHED,
        seed: 1,
        pathOf,
      });
      t.strictSame(running.instances, simulated.instances, "each request goes to the same instance");
      const [measured, expected] = [running, simulated].map((run) => hitRatios(run, 2));
      t.comment(`${placement}: hit ratios running ${measured}, simulated ${expected}`);
      for (const [i, ratio] of measured!.entries()) {
        t.ok(
          Math.abs(ratio - expected![i]!) <= TOLERANCE,
          `hits: ${ratio} running, ${expected![i]} simulated`,
        );
      }
    });
  }
});

/** Hit ratios of so many parts of equal length. */
function hitRatios({ origins }: FleetRun, parts: number): number[] {
  const length = origins.length / parts;
  return Array.from({ length: parts }, (_, part) => {
    const some = origins.subarray(part * length, (part + 1) * length);
    return some.filter((origin) => origin === ORIGIN.hit).length / length;
  });
}
