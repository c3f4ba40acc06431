import { basename, dirname, join } from "node:path";
import t, { type Test } from "tap";
import { openReaderPage } from "../support/clients/browser-page.js";
import { SOME_GENERATIONS } from "../support/clients/client-generation.js";
import { type Fixtures, openFixtures } from "../support/clients/fixtures.js";
import {
  CLIENTS,
  clientsMissing,
  compareStores,
  compareWithZarrita,
  type ServedStore,
} from "../support/clients/remote-jobs.js";
import { clientMissing } from "../support/clients/require-client.js";
import type { ZarritaValues } from "../support/clients/zarrita-reader.js";
import { icechunkMissing, openIcechunk } from "../support/icechunk/open-icechunk.js";
import { startNginxOrigin } from "../support/origins/nginx-origin.js";
import { type Program, startProgram } from "../support/servers/start-program.js";
import { makeDirectory } from "../support/write-store.js";

t.setTimeout(600_000);

/** Stores of Zarr v3, and how their repositories are made: small chunks are inline, up to so many bytes. */
const STORES = {
  "v3.zarr": { specVersion: 2, inline: 512 },
  "v3-tree.zarr": { specVersion: 1, inline: 30 },
  "v3-more.zarr": { specVersion: 2, inline: 0 },
  "zarr3-types.zarr": { specVersion: 2, inline: 100 },
  "zarr3-codecs.zarr": { specVersion: 1, inline: 0 },
  "zarr3-shards.zarr": { specVersion: 2, inline: 300 },
  "xarray3.zarr": { specVersion: 1, inline: 512 },
  "datatree3.zarr": { specVersion: 2, inline: 512 },
} as const;

/** Icechunk takes no document with a bare `NaN`, such as that attribute: it is null in the repository. */
const hasNaN = (difference: string) => /^\w+ \S+\/zarr3-types\/zarr3?: attributes/.test(difference);

const skip = clientMissing("zarr", "xarray", "gdal") || icechunkMissing();

/** Makes a repository of each fixture, with manifests of a few chunks. @returns Paths by name of the fixture. */
async function writeRepositories(t: Test, fixtures: Fixtures): Promise<Record<string, string>> {
  const icechunk = await openIcechunk(t);
  const directory = await makeDirectory(t);
  const paths: Record<string, string> = {};
  for (const [store, { specVersion, inline }] of Object.entries(STORES)) {
    if (!(store in fixtures.stores)) continue;
    const path = join(directory, store.replace(".zarr", ".icechunk"));
    const splitting = { split_sizes: [["any_array", [{ condition: "Any", num_chunks: 2 }]]] };
    const repository = await icechunk.create({
      ...{ path, specVersion },
      config: { inlineChunkThresholdBytes: inline, manifest: { splitting } },
    });
    await repository.commit("all of it", [{ from: fixtures.path(store) }]);
    paths[store] = path;
  }
  return paths;
}

/** Serves repositories by the names of their fixtures. */
async function serve(
  t: Test,
  locations: Readonly<Record<string, string>>,
): Promise<{ readonly program: Program; readonly stores: readonly ServedStore[] }> {
  const idOf = (store: string) => store.replace(".zarr", "");
  const datasets = Object.fromEntries(
    Object.entries(locations).map(([store, location]) => [idOf(store), { location: `icechunk:${location}` }]),
  );
  const program = await startProgram(t, { config: { datasets }, args: ["--no-cache"] });
  const stores = Object.keys(locations).map((store) => ({
    store,
    urlOf: (prefix: string) => program.storeUrl(idOf(store), prefix),
  }));
  return { program, stores };
}

t.test("repositories are to all clients what the stores are that they were made of", { skip }, async (t) => {
  const fixtures = await openFixtures();
  const paths = await writeRepositories(t, fixtures);
  const { program, stores } = await serve(t, paths);
  for (const generation of SOME_GENERATIONS) {
    await t.test(`${CLIENTS} (${generation})`, { skip: clientsMissing(generation) }, (t) =>
      compareStores(t, CLIENTS, generation, fixtures, stores, hasNaN),
    );
  }
  await t.test("zarrita in Node.js", async (t) => {
    for (const each of stores) await compareWithZarrita(t, fixtures, each);
  });
  await t.test("zarrita in Chromium", { skip: clientMissing("chromium") }, async (t) => {
    const page = await openReaderPage(t);
    const read = (url: string, keys: readonly string[]) =>
      page.evaluate(
        ([url, keys]) =>
          (
            globalThis as unknown as {
              readWithZarrita(url: string, keys: readonly string[]): Promise<ZarritaValues[]>;
            }
          ).readWithZarrita(url, keys),
        [url, keys] as const,
      );
    for (const each of stores) await compareWithZarrita(t, fixtures, each, read);
  });
  await t.test("behind nginx", { skip: clientMissing("nginx") }, async (t) => {
    const { url } = await startNginxOrigin(t, dirname(Object.values(paths)[0] as string));
    const { stores } = await serve(
      t,
      Object.fromEntries(Object.entries(paths).map(([store, path]) => [store, `${url}/${basename(path)}`])),
    );
    await compareStores(t, ["zarr"], "trixie", fixtures, stores, hasNaN);
  });
  // Clients could take a failure for an absent chunk.
  t.notMatch(program.run.stderr(), /"level":50/);
});
