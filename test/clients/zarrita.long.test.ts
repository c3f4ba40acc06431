import { rm } from "node:fs/promises";
import t from "tap";
import {
  type FixtureArray,
  type FixtureStore,
  makeTemporaryDirectory,
  openFixtures,
  serveDatasets,
} from "../support/clients/fixtures.js";
import { checkCleanLog } from "../support/clients/refusals.js";
import { clientMissing } from "../support/clients/require-client.js";
import { datasetId, datasetsOf, variantsNamed, waysOf } from "../support/clients/served-variants.js";
import { readTrueItems, zarritaDifference } from "../support/clients/true-values.js";
import { readWithZarrita } from "../support/clients/zarrita-reader.js";
import { fetchArrayDocuments, zarritaCanRead } from "../support/clients/zarrita-support.js";
import { choose } from "../support/effort.js";

t.setTimeout(600_000);

/** Fewer where other tests run this one under another Node.js. */
const VARIANTS_READ =
  process.env.ZPUBLISH_TEST_VARIANTS ?? "stored,zstd,bare,refiltered,rechunked-packed,rechunked-kept";

t.test(
  "zarrita in Node reads every array it knows the type and codecs of",
  { skip: clientMissing("zarr", "xarray", "gdal") },
  async (t) => {
    const fixtures = await openFixtures();
    const stores = Object.keys(fixtures.stores);
    const directory = await makeTemporaryDirectory();
    t.teardown(() => rm(directory, { recursive: true, force: true }));
    const variants = variantsNamed(...VARIANTS_READ.split(","));
    const chosen = choose(t, stores, 2);
    const server = await serveDatasets(t, { datasets: datasetsOf(fixtures, chosen, variants), directory });
    let compared = 0;
    const differences: string[] = [];
    for (const store of chosen) {
      for (const variant of waysOf(stores.indexOf(store), variants)) {
        const facts = fixtures.stores[store] as FixtureStore;
        const url = server.storeUrl(datasetId(store, variant));
        const documents = await fetchArrayDocuments(url);
        const paths = Object.keys(facts.arrays).filter((path) => {
          const document = documents.get(path);
          return (
            document !== undefined && zarritaCanRead(document, facts.arrays[path] as FixtureArray, false)
          );
        });
        const version = variant.name === "bare" ? "consolidated" : variant.name === "zstd" ? "any" : "v2";
        for (const values of await readWithZarrita(url, paths, version)) {
          const array = facts.arrays[values.path] as FixtureArray;
          const expected = await readTrueItems(fixtures, array);
          if (expected === undefined) continue;
          compared++;
          const problem =
            zarritaDifference(values, array, expected) ??
            (values.dims?.length === array.shape.length ? undefined : `dimensions: received ${values.dims}`);
          if (problem !== undefined) differences.push(`${url} ${version} ${values.path}: ${problem}`);
        }
      }
    }
    t.same(differences.slice(0, 20), [], `${differences.length} differences`);
    t.ok(compared > chosen.length, `${compared} arrays of ${chosen.length} stores compared`);
    checkCleanLog(t, server);
    await server.stop();
  },
);
