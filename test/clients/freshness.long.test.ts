import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { GENERATIONS, type Generation } from "../support/clients/client-generation.js";
import { makeTemporaryDirectory, runPython, startServer } from "../support/clients/harness.js";
import { checkCleanLog } from "../support/clients/refusals.js";
import { clientMissingIn } from "../support/clients/require-client.js";

const PATIENCE_MS = 15_000;

t.setTimeout(280_000);

for (const generation of GENERATIONS) {
  t.test(
    `a store that changes while it is served (${generation})`,
    { skip: clientMissingIn(generation, "xarray", "zarr", "fsspec") },
    (t) => changeWhileServed(t, generation),
  );
}

async function changeWhileServed(t: Test, generation: Generation): Promise<void> {
  const change = (...args: readonly string[]) => runPython("change_store.py", args, "", generation);
  const directory = await makeTemporaryDirectory();
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const location = join(directory, "growing.zarr");
  await change("create", location);
  const server = await startServer({
    directory,
    args: ["--refresh", "1"],
    datasets: {
      stored: location,
      rechunked: {
        location,
        encoding: { chunks: { time: 5, x: 2 }, compressor: { id: "zstd", level: 1 } },
      },
    },
  });
  const urls = [server.storeUrl("stored"), server.storeUrl("rechunked")];
  const reader = readWithoutEnd(
    urls.flatMap((url) => [`${url}/.zmetadata`, `${url}/t2m/.zarray`, `${url}/t2m/0.0`]),
  );
  const compare = () => change("compare", location, ...urls);
  const waitFor = async (what: string, isThere: (metadata: Metadata) => boolean) => {
    const deadline = Date.now() + PATIENCE_MS;
    for (const url of urls) {
      while (!isThere(await fetchMetadata(url))) {
        if (Date.now() > deadline) throw new Error(`${what} is not served by ${url} after ${PATIENCE_MS} ms`);
        await sleep(50);
      }
    }
  };

  t.match(await compare(), "'time': 6", "as it was at start");
  await t.test("a grown array is served", async (t) => {
    await change("append", location);
    await waitFor("the new length", ({ metadata }) => metadata["t2m/.zarray"]?.shape[0] === 12);
    t.match(await compare(), "'time': 12");
  });
  await t.test("a chunk rewritten in place is not served stale", async (t) => {
    const before = await Promise.all(urls.map((url) => fetchBytes(`${url}/t2m/0.0`)));
    await change("rewrite", location);
    const after = await Promise.all(urls.map((url) => fetchBytes(`${url}/t2m/0.0`)));
    for (const [index, url] of urls.entries()) {
      t.not(Buffer.compare(before[index]!.bytes, after[index]!.bytes), 0, `bytes of ${url}`);
      t.not(before[index]!.etag, after[index]!.etag, `ETag of ${url}`);
    }
    t.match(await compare(), "identical");
  });
  await t.test("a chunk that goes is absent at once, and one that comes is there", async (t) => {
    await change("remove", location);
    t.match(await compare(), "identical", "removed");
    // An absent chunk of Zarr v3 means zeros, which no v2 fill value says without hiding them: it is served filled.
    t.equal((await fetch(`${urls[0]}/t2m/1.0`)).status, generation === "system" ? 404 : 200);
    await change("restore", location);
    t.match(await compare(), "identical", "restored");
    t.equal((await fetch(`${urls[0]}/t2m/1.0`)).status, 200);
  });
  await t.test("new attributes are served", async (t) => {
    await change("annotate", location);
    await waitFor("the attribute", ({ metadata }) => metadata["t2m/.zattrs"]?.note === "changed as well");
    t.match(await compare(), "identical");
  });
  await t.test("a new variable and a new group are served", async (t) => {
    await change("extend", location);
    await waitFor("the group", ({ metadata }) => metadata["inner/deep/.zarray"] !== undefined);
    t.match(await compare(), "'later'");
    t.same(await (await fetch(`${server.url}/datasets/stored/groups`)).json(), ["/", "/inner"]);
  });

  const { requests, failures } = await reader.stop();
  t.same(failures, [], `none of ${requests} requests failed meanwhile`);
  t.ok(requests > 50);
  checkCleanLog(t, server);
  await server.stop();
}

interface Metadata {
  readonly metadata: Readonly<Record<string, { readonly shape: readonly number[]; readonly note?: string }>>;
}

async function fetchMetadata(url: string): Promise<Metadata> {
  return (await fetch(`${url}/.zmetadata`)).json() as Promise<Metadata>;
}

async function fetchBytes(url: string): Promise<{ bytes: Buffer; etag: string | null }> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return { bytes: Buffer.from(await response.arrayBuffer()), etag: response.headers.get("etag") };
}

/** Asks for the same things again and again, as other users do while a store changes. */
function readWithoutEnd(urls: readonly string[]): {
  stop(): Promise<{ requests: number; failures: string[] }>;
} {
  const failures: string[] = [];
  let requests = 0;
  let going = true;
  const loop = (async () => {
    while (going) {
      for (const url of urls) {
        try {
          const response = await fetch(url);
          await response.arrayBuffer();
          if (response.status !== 200) failures.push(`${url}: ${response.status}`);
        } catch (error) {
          failures.push(`${url}: ${error}`);
        }
        requests++;
      }
      await sleep(20);
    }
  })();
  return {
    async stop() {
      going = false;
      await loop;
      return { requests, failures };
    },
  };
}
