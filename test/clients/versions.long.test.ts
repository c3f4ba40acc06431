import t from "tap";
import { openSource } from "../../src/open/open-source.js";
import { SOME_GENERATIONS } from "../support/clients/client-generation.js";
import { openFixtures, runCommand } from "../support/clients/fixtures.js";
import {
  CLIENTS,
  clientsMissing,
  compareStores,
  compareWithZarrita,
} from "../support/clients/remote-jobs.js";
import { clientMissing } from "../support/clients/require-client.js";
import { datasetOf } from "../support/datasets/sample-tree.js";
import { version } from "../support/datasets/versioned-source.js";
import { startServer } from "../support/servers/start-server.js";

t.setTimeout(600_000);

/** Fixtures by the tags of one dataset. */
const STORES = { "v1.0": "v3.zarr", "2026-11-28": "v3-tree.zarr", "a@b": "xarray3.zarr" } as const;

t.test(
  "a version is to all clients what a dataset is",
  { skip: clientMissing("zarr", "xarray", "gdal") },
  async (t) => {
    const fixtures = await openFixtures();
    const tags = Object.entries(STORES).filter(([, store]) => store in fixtures.stores);
    const open = (store: string) => openSource(fixtures.path(store));
    const versions = {
      list: async () => tags.map(([tag], index) => version("tag", tag, `S${index}`)),
      open: async (name: string) => {
        const found = tags.find(([tag]) => tag === name);
        return found && open(found[1]);
      },
    };
    const source = { ...(await open("v3.zarr")), versions };
    const plain = datasetOf("plain", await open("v3.zarr"));
    const { url } = await startServer(t, { datasets: [datasetOf("x", source), plain] });
    const stores = tags.map(([tag, store]) => ({
      store,
      urlOf: (prefix: string) => `${url}/datasets/x@${tag}/${prefix}`,
    }));
    for (const generation of SOME_GENERATIONS) {
      await t.test(`${CLIENTS} (${generation})`, { skip: clientsMissing(generation) }, (t) =>
        compareStores(t, CLIENTS, generation, fixtures, stores),
      );
    }
    await t.test("ncdump", { skip: clientMissing("ncdump") }, async (t) => {
      const dump = async (id: string) => {
        const { status, stdout, stderr } = await runCommand("ncdump", [
          `${url}/datasets/${id}/opendap/${id}.nc`,
        ]);
        t.equal(status, 0, stderr);
        return stdout.replace(/^netcdf .*/, "");
      };
      t.equal(await dump("x@v1.0"), await dump("plain"));
    });
    for (const each of stores) await compareWithZarrita(t, fixtures, each);
  },
);
