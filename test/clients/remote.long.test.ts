import { symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import type { Generation } from "../support/clients/client-generation.js";
import { type Fixtures, openFixtures } from "../support/clients/fixtures.js";
import {
  CLIENTS,
  clientsMissing,
  compareStores,
  compareWithZarrita,
  type ServedStore,
} from "../support/clients/remote-jobs.js";
import { clientMissing } from "../support/clients/require-client.js";
import { filesOf } from "../support/datasets/sample-stores.js";
import { choose } from "../support/effort.js";
import { startNginxOrigin } from "../support/origins/nginx-origin.js";
import { type RadosgwOrigin, startRadosgw } from "../support/origins/radosgw-origin.js";
import { PROGRAM, runScript } from "../support/servers/run-program.js";
import { startProgram } from "../support/servers/start-program.js";
import { makeDirectory } from "../support/write-store.js";
import { writeZip } from "../support/write-zip.js";

t.setTimeout(600_000);

/** Consolidated stores, some with groups and shards: nothing else can be found over HTTP. The last one is of Debian 13's clients. */
const CONSOLIDATED = { v2: ["air.zarr", "tree.zarr"], v3: ["v3-tree.zarr", "zarr3-shards.zarr"] } as const;
/** Stores without consolidated metadata, of which the second one has shards. */
const UNCONSOLIDATED = ["air-plain.zarr", "v3.zarr"];

/** Stores that a program serves, and its log so far. */
interface Served {
  readonly stores: readonly ServedStore[];
  log(): string;
}

/** Runs the program with arguments of its command line alone, and serves fixture stores by their names. */
async function serve(
  t: Test,
  locations: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string>> = {},
  args: readonly string[] = [],
): Promise<Served> {
  const datasets = Object.entries(locations).map(([store, location]) => `${idOf(store)}=${location}`);
  const program = await startProgram(t, { args: [...datasets, "--no-cache", ...args], env });
  const stores = Object.keys(locations).map((store) => ({
    store,
    urlOf: (prefix: string) => program.storeUrl(idOf(store), prefix),
  }));
  return { stores, log: program.run.stderr };
}

function idOf(store: string): string {
  return store.replace(".zarr", "");
}

function locationsBelow(base: string, stores: readonly string[], extension = ""): Record<string, string> {
  return Object.fromEntries(stores.map((store) => [store, `${base}/${store}${extension}`]));
}

/** Consolidated stores of both versions, others for each way of the bytes. */
function consolidatedOf(t: Test, fixtures: Fixtures): string[] {
  const [v2, v3] = [CONSOLIDATED.v2, CONSOLIDATED.v3.filter((store) => store in fixtures.stores)];
  return [...choose<string>(t, v2, 2), ...choose<string>(t, v3, 2)];
}

/**
 * Reads served stores with clients of a generation, and with zarrita. Where the bytes come from is nothing that clients see, so that one
 * generation is enough, and both have their turn.
 */
async function readAll(
  t: Test,
  fixtures: Fixtures,
  { stores, log }: Served,
  generation: Generation,
  clients = CLIENTS,
): Promise<void> {
  await t.test(`${clients} (${generation})`, { skip: clientsMissing(generation) }, (t) =>
    compareStores(t, clients, generation, fixtures, stores),
  );
  await t.test("zarrita", async (t) => {
    for (const each of stores) await compareWithZarrita(t, fixtures, each);
  });
  // Clients could take a failure for an absent chunk.
  t.notMatch(log(), /"level":50/);
}

t.test(
  "a store behind nginx is what it is on disk",
  { skip: clientMissing("nginx", "zarr", "xarray", "gdal") },
  async (t) => {
    const fixtures = await openFixtures();
    const { url } = await startNginxOrigin(t, fixtures.directory);
    const stores = consolidatedOf(t, fixtures);
    await readAll(t, fixtures, await serve(t, locationsBelow(`${url}/stores`, stores)), "system");
  },
);

t.test(
  "a zipped store behind nginx is what it is on disk",
  { skip: clientMissing("nginx", "zarr", "xarray", "gdal") },
  async (t) => {
    const fixtures = await openFixtures();
    const directory = await makeDirectory(t);
    const stores = consolidatedOf(t, fixtures);
    for (const [index, store] of stores.entries()) {
      const files = [...(await filesOf(fixtures.path(store)))];
      const zip = writeZip(files.map(([name, content]) => ({ name, content, isDeflated: index % 2 === 1 })));
      await writeFile(join(directory, `${store}.zip`), zip);
    }
    const { url } = await startNginxOrigin(t, directory);
    await readAll(t, fixtures, await serve(t, locationsBelow(url, stores, ".zip")), "trixie", ["zarr"]);
  },
);

t.test(
  "a store behind kerchunk references on nginx is what it is on disk",
  { skip: clientMissing("nginx", "zarr", "xarray", "gdal") },
  async (t) => {
    const fixtures = await openFixtures();
    const directory = await makeDirectory(t);
    await symlink(join(fixtures.directory, "stores"), join(directory, "stores"));
    const stores = consolidatedOf(t, fixtures);
    for (const store of stores) {
      const refs: Record<string, unknown> = {};
      for (const [name, content] of await filesOf(fixtures.path(store))) {
        // Metadata as text; chunks as whole objects, and as ranges of them.
        if (/(^|\/)(\.z[a-z]+|zarr\.json)$/.test(name)) refs[name] = Buffer.from(content).toString();
        else if (content.length % 2 === 0) refs[name] = [`stores/${store}/${name}`];
        else refs[name] = [`stores/${store}/${name}`, 0, content.length];
      }
      await writeFile(join(directory, `${store}.json`), JSON.stringify({ version: 1, refs }));
    }
    const { url } = await startNginxOrigin(t, directory);
    await readAll(t, fixtures, await serve(t, locationsBelow(url, stores, ".json")), "system", ["zarr"]);
  },
);

t.test(
  "a store in a bucket is what it is on disk",
  { skip: clientMissing("radosgw", "zarr", "xarray", "gdal") },
  async (t) => {
    const fixtures = await openFixtures();
    const origin = await startRadosgw(t);
    const { credentials, endpoint } = origin;
    const stores = [...consolidatedOf(t, fixtures), ...UNCONSOLIDATED];
    await origin.createBucket("archive");
    await putStores(origin, fixtures, "archive", stores);
    const locations = locationsBelow("s3://archive/2026", stores);
    const alone = { AWS_ENDPOINT_URL: endpoint, AWS_EC2_METADATA_DISABLED: "true" };

    await t.test("with keys from the environment alone", async (t) => {
      const env = {
        AWS_ACCESS_KEY_ID: credentials.accessKeyId,
        AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
      };
      await readAll(t, fixtures, await serve(t, locations, { ...alone, ...env }), "trixie");
    });

    await t.test("with a profile", async (t) => {
      const file = join(await makeDirectory(t), "credentials");
      const { accessKeyId, secretAccessKey } = credentials;
      await writeFile(
        file,
        `[archive]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`,
      );
      const env = { ...alone, AWS_SHARED_CREDENTIALS_FILE: file, AWS_PROFILE: "archive" };
      const { stores } = await serve(t, locationsBelow("s3://archive/2026", ["air-plain.zarr"]), env);
      await compareWithZarrita(t, fixtures, stores[0] as ServedStore);
    });

    await t.test("anonymously, if all may read", async (t) => {
      await origin.createBucket("open", "public-read");
      await putStores(origin, fixtures, "open", ["air-plain.zarr"], "public-read");
      const config = join(await makeDirectory(t), "zpublish.json");
      const open = { url: "s3://open/", endpoint, anonymous: true };
      await writeFile(config, JSON.stringify({ stores: { open } }));
      const locations = locationsBelow("s3://open/2026", ["air-plain.zarr"]);
      const { stores } = await serve(t, locations, {}, ["--config", config]);
      await compareWithZarrita(t, fixtures, stores[0] as ServedStore);
    });

    await t.test("wrong keys are no absent store", async (t) => {
      const env = { ...alone, AWS_ACCESS_KEY_ID: "NOBODY", AWS_SECRET_ACCESS_KEY: "a-wrong-secret" };
      const run = runScript(PROGRAM, ["inspect", "s3://archive/2026/air.zarr"], { env });
      t.equal(await run.ended, 1);
      t.match(run.stderr(), /it answers 403 InvalidAccessKeyId/);
      t.notMatch(run.stderr() + run.stdout(), "a-wrong-secret");
    });
  },
);

/** Puts stores into a bucket, 16 objects at a time. */
async function putStores(
  origin: RadosgwOrigin,
  fixtures: Fixtures,
  bucket: string,
  stores: readonly string[],
  acl: "private" | "public-read" = "private",
): Promise<void> {
  for (const store of stores) {
    const files = [...(await filesOf(fixtures.path(store)))];
    const putRest = async () => {
      for (let file = files.pop(); file !== undefined; file = files.pop())
        await origin.putObject(bucket, `2026/${store}/${file[0]}`, file[1], acl);
    };
    await Promise.all(Array.from({ length: 16 }, putRest));
  }
}
