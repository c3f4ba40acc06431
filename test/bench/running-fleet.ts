import { Agent } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { Test } from "tap";
import type { Load } from "../../bench/cache-hit-ratio.js";
import { type FleetRun, ORIGIN } from "../../bench/fleet/simulate-fleet.js";
import { fetchBody } from "../deploy/checked-load.js";
import type { Balancer, BalancerOptions } from "../deploy/start-balancer.js";
import { type InstanceOptions, startInstances } from "../deploy/start-instances.js";

/** Three instances behind a balancer, and what is asked of them. */
export interface RunningFleetOptions extends InstanceOptions {
  readonly start: (t: Test, options: BalancerOptions) => Promise<Balancer>;
  /** Changes of the balancer's example. */
  readonly changes?: BalancerOptions["changes"];
  /** Numbers of paths, asked for one after another. */
  readonly load: Load;
  readonly pathOf: (number: number) => string;
  readonly isRight: (number: number, body: Buffer) => boolean;
}

/** What a simulation counts, of running instances. */
export interface RunningFleet extends FleetRun {
  /** Names of the instances, as the balancer knows them. */
  readonly names: readonly string[];
}

const INSTANCES = 3;

/** Starts three instances with empty caches, and plays a load. */
export async function runFleet(t: Test, options: RunningFleetOptions): Promise<RunningFleet> {
  const { load, pathOf, isRight, start, changes = {} } = options;
  const instances = await startInstances(t, INSTANCES, options);
  const ports = instances.map(({ port }) => port);
  const balancer = await start(t, { ports, changes });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const origins = new Uint8Array(load.length);
  for (const [i, number] of load.entries()) {
    const { answer, body } = await fetchBody(balancer.port, pathOf(number), {}, agent);
    if (answer.statusCode !== 200 || !isRight(number, body))
      throw new Error(`${pathOf(number)}: ${answer.statusCode}, ${body.byteLength} bytes`);
    origins[i] = answer.headers["x-cache"] === "HIT" ? ORIGIN.hit : ORIGIN.bucket;
  }
  agent.destroy();
  // Requests are logged one after another, as they were sent.
  let logged: string[] = [];
  while (logged.length < load.length) {
    await delay(20);
    const lines = await balancer.log();
    logged = [...lines.matchAll(/ GET \/datasets\/\S* 200 .*?upstream=(\S+)/g)].map(([, name]) => name!);
  }
  const names = ports.map((port) => `127.0.0.1:${port}`);
  const known = balancer.name === "nginx" ? names : names.map((_, i) => `zpublish/zpublish-${i + 1}`);
  await balancer.stop();
  await Promise.all(instances.map((instance) => instance.end("SIGTERM")));
  return { origins, instances: Uint16Array.from(logged, (name) => known.indexOf(name)), names };
}
