import { once } from "node:events";
import { createServer, get, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import t, { type Test } from "tap";
import { PLACEMENTS } from "../../bench/fleet/placements.js";
import { startHaproxy } from "../deploy/start-balancer.js";
import { clientMissing } from "../require-client.js";

const INSTANCES = 3;
const REQUESTS = 120;

/** Starts servers that answer nothing but health checks until the test ends. @param onArrival Gets the server's place. */
async function startHolding(t: Test, onArrival: (instance: number) => void): Promise<number[]> {
  return Promise.all(
    Array.from({ length: INSTANCES }, async (_, instance) => {
      const server = createServer((request: IncomingMessage, response: ServerResponse) => {
        if (request.url === "/readyz") response.end();
        else onArrival(instance);
      });
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      t.teardown(() => {
        server.closeAllConnections();
        server.close();
      });
      return (server.address() as AddressInfo).port;
    }),
  );
}

t.test(
  "simulated bounded loads put requests that stay under way where HAProxy puts them",
  { skip: clientMissing("haproxy"), timeout: 60_000 },
  async (t) => {
    let arrived: (instance: number) => void = () => {};
    const ports = await startHolding(t, (instance) => arrived(instance));
    const hashing = "    hash-type consistent sdbm avalanche\n";
    const { port, stop } = await startHaproxy(t, {
      ports,
      changes: { [hashing]: `${hashing}    hash-balance-factor 125\n` },
    });
    const members = ports.map((_, instance) => ({ name: "", instance }));
    const placement = PLACEMENTS["bounded, 125 %"](members);
    const pathOf = (number: number) => `/datasets/air/zarr/t2m/${number}.0`;
    const fleet = {
      isUp: new Uint8Array(INSTANCES).fill(1),
      upInAll: INSTANCES,
      underWay: new Int32Array(INSTANCES),
      underWayInAll: 0,
    };
    const expected: number[] = [];
    const received: number[] = [];
    for (let i = 0; i < REQUESTS; i++) {
      // Two of three ask for one chunk: without a bound its instance would take them all.
      const chunk = i % 3 === 0 ? i : 0;
      const at = new Promise<number>((resolve) => {
        arrived = resolve;
      });
      get({ host: "127.0.0.1", port, path: pathOf(chunk), agent: false }).on("error", () => {});
      received.push(await at);
      const chosen = placement.choose(pathOf, chunk, fleet);
      expected.push(chosen);
      fleet.underWay[chosen]!++;
      fleet.underWayInAll++;
    }
    await stop();
    t.strictSame(received, expected);
    t.ok(new Set(received).size === INSTANCES);
  },
);
