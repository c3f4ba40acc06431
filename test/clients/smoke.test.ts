import { rm } from "node:fs/promises";
import t from "tap";
import {
  type FixtureArray,
  type FixtureStore,
  makeTemporaryDirectory,
  openFixtures,
  type ReadBackJob,
  readBack,
  serveDatasets,
} from "../support/clients/fixtures.js";
import { checkCleanLog } from "../support/clients/refusals.js";
import { clientMissing } from "../support/clients/require-client.js";
import { datasetId, datasetsOf, VARIANTS } from "../support/clients/served-variants.js";
import { readTrueItems, zarritaDifference } from "../support/clients/true-values.js";
import { readWithZarrita, type ZarritaValues } from "../support/clients/zarrita-reader.js";

const STORES = ["air.zarr", "tree.zarr"];
t.setTimeout(120_000);

/** As stored, and encoded by the pool. */
const SMOKE_VARIANTS = VARIANTS.filter(({ name }) => name === "stored" || name === "zstd");

// The long ring reads every store by every client; here each client reads a flat dataset and a tree.
t.test(
  "one client of each kind reads every value of a flat dataset and of a tree",
  { skip: clientMissing("zarr", "xarray", "fsspec", "dask", "gdal") },
  async (t) => {
    const fixtures = await openFixtures();
    const directory = await makeTemporaryDirectory();
    const server = await serveDatasets(t, {
      datasets: datasetsOf(fixtures, STORES, SMOKE_VARIANTS),
      directory,
    });
    t.teardown(async () => {
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    });
    const served = SMOKE_VARIANTS.flatMap((variant) =>
      STORES.map((store) => ({ store, url: server.storeUrl(datasetId(store, variant)) })),
    );
    const differences = async (url: string, store: string, values: readonly ZarritaValues[]) => {
      const found: string[] = [];
      for (const each of values) {
        const array = (fixtures.stores[store] as FixtureStore).arrays[each.path] as FixtureArray;
        const expected = await readTrueItems(fixtures, array);
        const problem = expected === undefined ? undefined : zarritaDifference(each, array, expected);
        if (problem !== undefined) found.push(`${url} ${each.path}: ${problem}`);
      }
      return found;
    };
    const pathsOf = (store: string) => Object.keys((fixtures.stores[store] as FixtureStore).arrays);

    await t.test("zarr-python, xarray and GDAL", async (t) => {
      const jobs: ReadBackJob[] = served.flatMap(({ store, url }) => [
        { client: "zarr", store, url, consolidated: true, refused: [] },
        {
          client: "xarray",
          store,
          url,
          decode: true,
          consolidated: true,
          refused: [],
          group: "/",
          inPlace: true,
        },
        { client: "gdal", store, url, refused: [] },
      ]);
      const { compared, differences } = await readBack(fixtures, jobs);
      t.same(differences.slice(0, 20), []);
      t.ok(compared >= jobs.length, `${compared} arrays compared`);
    });

    await t.test("zarrita in Node.js", async (t) => {
      for (const { store, url } of served)
        t.same(await differences(url, store, await readWithZarrita(url, pathsOf(store), "v2")), []);
    });

    checkCleanLog(t, server);
  },
);
