import { rm } from "node:fs/promises";
import t, { type Test } from "tap";
import { GENERATIONS, type Generation } from "../support/clients/client-generation.js";
import {
  CLIENT_LIMITS,
  formatOf,
  missingBelow,
  type Prefix,
  prefixesOf,
  storesFor,
} from "../support/clients/client-limits.js";
import {
  type FixtureStore,
  type Fixtures,
  makeTemporaryDirectory,
  openFixtures,
  type ReadBackJob,
  readBack,
  serveDatasets,
} from "../support/clients/fixtures.js";
import { checkCleanLog, checkRefusals, type ReadDataset } from "../support/clients/refusals.js";
import { clientMissing, clientMissingIn } from "../support/clients/require-client.js";
import {
  datasetId,
  datasetsOf,
  VARIANTS,
  type Variant,
  variantsNamed,
  waysOf,
} from "../support/clients/served-variants.js";
import { choose, effort } from "../support/effort.js";

t.setTimeout(600_000);

/**
 * Variants that are read by a generation below a prefix, if not all. The bytes below `zarr` are the same for both generations, and those
 * below `zarr3` are mostly the same, too: here their documents matter.
 */
const VARIANTS_READ: Readonly<Record<string, readonly Variant[]>> = {
  "trixie zarr": variantsNamed("stored", "refiltered", "rechunked-packed"),
  "trixie zarr3": variantsNamed("stored", "blosc", "refiltered", "rechunked-packed"),
};

for (const generation of GENERATIONS) {
  t.test(
    `zarr-python reads every value of every store, passed through and transcoded (${generation})`,
    {
      skip:
        clientMissing("zarr", "xarray", "gdal") || clientMissingIn(generation, "zarr", "xarray", "fsspec"),
    },
    (t) => readEverything(t, generation),
  );
}

async function readEverything(t: Test, generation: Generation): Promise<void> {
  const fixtures = await openFixtures();
  const { unopenable, unreadable } = CLIENT_LIMITS[generation];
  const directory = await makeTemporaryDirectory();
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const ways = chooseWays(t, generation, fixtures);
  const read = new Map<string, ReadDataset>();
  for (const { store, variants } of ways)
    for (const variant of variants) read.set(datasetId(store, variant), { store, variant });
  const cannotOpen = unopenable.filter((store) => store in fixtures.stores);
  const server = await serveDatasets(t, {
    datasets: {
      ...Object.fromEntries(
        Object.entries(datasetsOf(fixtures, Object.keys(fixtures.stores), VARIANTS)).filter(([id]) =>
          read.has(id),
        ),
      ),
      ...datasetsOf(fixtures, cannotOpen, VARIANTS.slice(0, 1)),
    },
    directory,
  });

  const jobs: ReadBackJob[] = [];
  for (const { prefix, index, store, variants } of ways) {
    for (const variant of variants) {
      const job: ReadBackJob = {
        client: "zarr",
        store,
        url: server.storeUrl(datasetId(store, variant), prefix),
        format: formatOf(prefix),
        consolidated: true,
        rechunked: variant.rechunked,
        refused: missingBelow(prefix, variant, fixtures.stores[store] as FixtureStore),
        unreadable: unreadable[store] ?? [],
      };
      jobs.push(job);
      if (variant !== VARIANTS[0]) continue;
      if ((fixtures.stores[store]?.groups.length ?? 0) > 1 && (index + 1) % 3 < effort(3))
        jobs.push({ ...job, byGroup: true, note: "every group a store" });
      if (index % 3 < effort(3) && isListed(store, prefix, fixtures))
        jobs.push({ ...job, consolidated: false, note: "not consolidated" });
    }
  }
  const { compared, differences } = await readBack(fixtures, jobs, generation);
  t.same(differences.slice(0, 20), [], `${differences.length} differences`);
  t.ok(compared > read.size, `${compared} arrays of ${read.size} datasets compared`);

  await t.test("what it cannot open is still what the README says", async (t) => {
    for (const store of cannotOpen) {
      const url = server.storeUrl(datasetId(store, VARIANTS[0]!));
      const job = { client: "zarr", store, url, consolidated: true } as const;
      t.match((await readBack(fixtures, [job], generation)).differences, [/Error: /], store);
    }
  });
  checkRefusals(t, server, fixtures, read.values());
  checkCleanLog(t, server);
  await server.stop();
}

/** Chooses stores below each prefix, and the variants in which each of them is read. */
function chooseWays(t: Test, generation: Generation, fixtures: Fixtures) {
  return prefixesOf(generation).flatMap((prefix) => {
    const readable = storesFor(generation, prefix, fixtures);
    const variants = VARIANTS_READ[`${generation} ${prefix}`] ?? VARIANTS;
    return choose(t, readable).map((store) => {
      const index = readable.indexOf(store);
      return { prefix, index, store, variants: waysOf(index, variants) };
    });
  });
}

/** Whether the client finds all nodes of a store by listing. */
function isListed(store: string, prefix: Prefix, fixtures: Fixtures): boolean {
  // fsspec lists names percent-encoded, whatever the server: only plain ones can be found.
  if (store === "names.zarr") return false;
  // zarr-python 3.0 looks for "b/" in the metadata of a group, where its name is "b".
  return prefix === "zarr" || fixtures.stores[store]?.groups.length === 1;
}
