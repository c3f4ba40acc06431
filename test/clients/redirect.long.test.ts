import { rm } from "node:fs/promises";
import t, { type Test } from "tap";
import { openReaderPage } from "../support/clients/browser-page.js";
import type { Generation } from "../support/clients/client-generation.js";
import {
  type Fixtures,
  makeTemporaryDirectory,
  openFixtures,
  serveDatasets,
} from "../support/clients/fixtures.js";
import { checkCleanLog } from "../support/clients/refusals.js";
import {
  CLIENTS,
  clientsMissing,
  compareStores,
  compareWithZarrita,
  type ServedStore,
} from "../support/clients/remote-jobs.js";
import { clientMissing } from "../support/clients/require-client.js";
import type { ZarritaValues } from "../support/clients/zarrita-reader.js";
import { filesOf } from "../support/datasets/sample-stores.js";
import { startNginxOrigin } from "../support/origins/nginx-origin.js";
import { startRadosgw } from "../support/origins/radosgw-origin.js";

t.setTimeout(600_000);

/** Of both versions, with groups and shards. */
const STORES = ["air.zarr", "tree.zarr", "v3-tree.zarr"];

/** Starts the program with stores to which it redirects. */
async function serve(t: Test, base: string, store: object, env: Readonly<Record<string, string>> = {}) {
  const directory = await makeTemporaryDirectory();
  const server = await serveDatasets(t, {
    directory,
    datasets: Object.fromEntries(STORES.map((name) => [name.replace(".zarr", ""), base + name])),
    stores: { remote: { url: base, redirect: true, ...store } },
    env,
    args: ["--access-log", "1"],
  });
  t.teardown(async () => {
    await server.stop();
    await rm(directory, { recursive: true, force: true });
  });
  const served: ServedStore[] = STORES.map((store) => ({
    store,
    urlOf: (prefix) => server.storeUrl(store.replace(".zarr", ""), prefix),
  }));
  const redirects = () => server.log().filter(({ status }) => status === 302).length;
  return { server, served, redirects };
}

/** Reads everything with every client of a generation, and looks whether it was redirected. Each generation has an origin of its own. */
async function readAll(
  t: Test,
  fixtures: Fixtures,
  { server, served, redirects }: Awaited<ReturnType<typeof serve>>,
  generation: Generation,
): Promise<void> {
  for (const client of CLIENTS) {
    await t.test(`${client} (${generation})`, { skip: clientsMissing(generation) }, async (t) => {
      const before = redirects();
      await compareStores(t, [client], generation, fixtures, served);
      t.ok(redirects() > before, `${redirects() - before} redirects`);
    });
  }
  await t.test("zarrita in Node.js", async (t) => {
    const before = redirects();
    for (const each of served) await compareWithZarrita(t, fixtures, each);
    t.ok(redirects() > before);
  });
  await t.test("zarrita in Chromium", { skip: clientMissing("chromium") }, async (t) => {
    const page = await openReaderPage(t);
    const read = (url: string, paths: readonly string[]) =>
      page.evaluate(
        ([url, paths]) =>
          (
            globalThis as unknown as {
              readWithZarrita(url: string, paths: readonly string[]): Promise<ZarritaValues[]>;
            }
          ).readWithZarrita(url, paths),
        [url, paths] as const,
      );
    const before = redirects();
    for (const each of served) await compareWithZarrita(t, fixtures, each, read);
    t.ok(redirects() > before);
  });
  checkCleanLog(t, server);
}

t.test(
  "clients follow to a web server",
  { skip: clientMissing("nginx", "zarr", "xarray", "gdal") },
  async (t) => {
    const fixtures = await openFixtures();
    // A page that was redirected has no origin any more, so that only * lets it in.
    const origin = await startNginxOrigin(
      t,
      fixtures.directory,
      "add_header Access-Control-Allow-Origin * always;",
    );
    const started = await serve(t, `${origin.url}/stores/`, {});
    await readAll(t, fixtures, started, "system");
  },
);

t.test(
  "clients follow to a private bucket, by URLs that are signed",
  { skip: clientMissing("radosgw", "zarr", "xarray", "gdal") },
  async (t) => {
    const fixtures = await openFixtures();
    const { createBucket, putObject, credentials, endpoint, setCors } = await startRadosgw(t);
    await createBucket("private");
    await setCors("private");
    for (const store of STORES) {
      for (const [key, content] of await filesOf(fixtures.path(store)))
        await putObject("private", `${store}/${key}`, content);
    }
    const started = await serve(
      t,
      "s3://private/",
      { endpoint },
      { AWS_ACCESS_KEY_ID: credentials.accessKeyId, AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey },
    );
    await readAll(t, fixtures, started, "trixie");
    t.notMatch(JSON.stringify(started.server.log()), credentials.secretAccessKey);
  },
);
