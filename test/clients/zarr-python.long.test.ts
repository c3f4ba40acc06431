import { rm } from "node:fs/promises";
import t from "tap";
import { clientMissing } from "../require-client.js";
import {
  type FixtureStore,
  makeTemporaryDirectory,
  openFixtures,
  type ReadBackJob,
  readBack,
  startServer,
} from "./harness.js";
import { checkCleanLog, checkRefusals } from "./refusals.js";
import { datasetId, datasetsOf, refusedBy, VARIANTS } from "./served-variants.js";

t.setTimeout(280_000);

t.test(
  "zarr-python reads every value of every store, passed through and transcoded",
  { skip: clientMissing("zarr", "xarray", "fsspec", "gdal") },
  async (t) => {
    const fixtures = await openFixtures();
    const stores = Object.keys(fixtures.stores);
    const directory = await makeTemporaryDirectory();
    t.teardown(() => rm(directory, { recursive: true, force: true }));
    const server = await startServer({ datasets: datasetsOf(fixtures, stores, VARIANTS), directory });

    const jobs: ReadBackJob[] = VARIANTS.flatMap((variant) =>
      stores.map((store) => ({
        client: "zarr",
        store,
        url: server.storeUrl(datasetId(store, variant)),
        consolidated: true,
        rechunked: variant.rechunked,
        refused: refusedBy(variant, fixtures.stores[store] as FixtureStore),
      })),
    );
    for (const store of stores) {
      const [stored] = VARIANTS;
      const url = server.storeUrl(datasetId(store, stored!));
      jobs.push({
        client: "zarr",
        store,
        url,
        consolidated: true,
        byGroup: true,
        note: "every group a store",
      });
      // fsspec lists names percent-encoded, whatever the server: only plain ones can be found by listing.
      if (store === "names.zarr") continue;
      jobs.push({ client: "zarr", store, url, consolidated: false, note: "not consolidated" });
    }
    const { compared, differences } = await readBack(fixtures, jobs);
    t.same(differences.slice(0, 20), [], `${differences.length} differences`);
    t.ok(compared > 2_000, `${compared} arrays compared`);
    checkRefusals(t, server, fixtures, stores, VARIANTS);
    checkCleanLog(t, server);
    await server.stop();
  },
);
