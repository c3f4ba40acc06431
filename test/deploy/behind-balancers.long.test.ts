import { createHash } from "node:crypto";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import t, { type Test } from "tap";
import type * as zarrita from "zarrita";
import { openBrowser, startPageServer } from "../support/clients/browser-page.js";
import { clientMissing } from "../support/clients/require-client.js";
import { rawRequest } from "../support/servers/raw-request.js";
import { runProgram } from "../support/servers/run-program.js";
import { BALANCERS, type Balancer, type BalancerOptions, START_BALANCER } from "./balancer.js";
import { type Instance, startInstances } from "./instances.js";
import { type DeploySite, prepareSite, startLoad } from "./site.js";

const skip = clientMissing(...BALANCERS);

t.test("three instances behind nginx and HAProxy", { skip, timeout: 240_000 }, async (t) => {
  const chunks = 200;
  const site = await prepareSite(t, { name: "noise", chunks, chunkBytes: 8 * 1024 });
  const instances = await startInstances(t, 3, {
    config: { datasets: site.datasets },
    args: ["--access-log", "1", "--trusted-proxies", "loopback", "--drain-delay", "600"],
  });
  const ports = instances.map(({ port }) => port);
  const balancers = await Promise.all(
    BALANCERS.map((name) => START_BALANCER[name](t, { ports, hasTls: true })),
  );
  const { plain } = await site.expected(ports[0]!);

  for (const balancer of balancers) {
    await t.test(
      `a request has one id in the logs of ${balancer.name} and of zpublish, and neither has its token`,
      (t) => checkRequestId(t, balancer, instances),
    );
    await t.test(
      `a page in Chromium reads ${chunks} chunks through ${balancer.name} over HTTP/2`,
      { skip: clientMissing("chromium") },
      async (t) => {
        const expected = createHash("sha256");
        for (const { body } of plain) expected.update(body);
        const digest = expected.digest("hex");
        const url = `https://127.0.0.1:${balancer.tlsPort}/datasets/noise/zarr`;
        for (const protocol of ["h2", "http/1.1"] as const)
          t.match(await readInChromium(t, protocol, url), { protocols: [protocol], digest }, protocol);
      },
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

/**
 * Reads the array `noise` with zarrita in a page of Chromium, by connections of its own and with an empty cache. It accepts every certificate.
 * @param protocol The best one that it offers to servers.
 * @returns SHA-256 of the array's bytes in hexadecimal digits, and the protocols of all answers but the page's own, as `h2`.
 */
async function readInChromium(t: Test, protocol: "h2" | "http/1.1", storeUrl: string) {
  const pageServer = await startPageServer();
  t.teardown(() => pageServer.close());
  const browser = await openBrowser(t, ...(protocol === "h2" ? [] : ["--disable-http2"]));
  // Connections and cache are those of a context.
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  try {
    const page = await context.newPage();
    await page.goto(pageServer.url);
    await page.waitForFunction(`document.title === "ready"`);
    const protocols = new Set<string>();
    const session = await context.newCDPSession(page);
    session.on("Network.responseReceived", ({ response }) => protocols.add(response.protocol ?? "none"));
    await session.send("Network.enable");
    const read = await page.evaluate(async (storeUrl) => {
      const { zarrita: zarr } = globalThis as unknown as { zarrita: typeof zarrita };
      const root = zarr.root(new zarr.FetchStore(storeUrl));
      const array = await zarr.open.v2(root.resolve("noise"), { kind: "array" });
      const { data } = await zarr.get(array as zarrita.Array<"uint8", zarrita.Readable>);
      const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", data as Uint8Array<ArrayBuffer>));
      return { digest: Array.from(digest, (n) => n.toString(16).padStart(2, "0")).join("") };
    }, storeUrl);
    return { ...read, protocols: [...protocols] };
  } finally {
    await context.close();
  }
}

/** Some 66 KiB each when packed, 7.8 MiB together: more than one cache holds, and less than three. */
const LARGE_CHUNKS = 120;
const LARGE_BYTES = 128 * 2 ** 10;
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

/** Share of chunks that come from a cache, by a balancer in front of three fresh instances. */
async function hitRatio(
  t: Test,
  site: DeploySite,
  name: Balancer["name"],
  changes: NonNullable<BalancerOptions["changes"]>,
): Promise<number> {
  const instances = await startInstances(t, 3, {
    config: { datasets: site.datasets },
    args: ["--cache-size", CACHE_SIZE],
  });
  const ports = instances.map(({ port }) => port);
  const { packed } = await site.expected(ports[0]!);
  const balancer = await START_BALANCER[name](t, { ports, changes });
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

for (const name of BALANCERS) {
  t.test(
    `behind ${name} the caches of three instances hold three times as much, since each path has an instance`,
    { skip: clientMissing(name), timeout: 120_000 },
    async (t) => {
      const site = await prepareSite(t, { name: "noise", chunks: LARGE_CHUNKS, chunkBytes: LARGE_BYTES });
      const hashed = await hitRatio(t, site, name, {});
      const spread = await hitRatio(t, site, name, WITHOUT[name]);
      const percent = (ratio: number) => `${(ratio * 100).toFixed(1)} %`;
      t.comment(`hit ratio: ${percent(hashed)} by path, ${percent(spread)} in turn`);
      t.ok(hashed > 0.9, `by path: ${percent(hashed)}`);
      t.ok(hashed > spread + 0.2, `in turn: ${percent(spread)}`);
    },
  );
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
    { skip: clientMissing(name), timeout: 60_000 },
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
