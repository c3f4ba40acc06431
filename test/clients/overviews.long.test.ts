import { rm } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import { type Generation, SOME_GENERATIONS } from "../support/clients/client-generation.js";
import { errorsOf, makeTemporaryDirectory, runPython, serveDatasets } from "../support/clients/fixtures.js";
import { clientMissing, clientMissingIn } from "../support/clients/require-client.js";
import type { Program } from "../support/servers/start-program.js";

t.setTimeout(600_000);

/** Groups, coarser levels, and arrays that GDAL reads: level, group and name. */
const DATASETS = {
  globe: {
    groups: [""],
    levels: 3,
    gdal: [
      [1, "", "t2m"],
      [3, "", "counts"],
    ],
  },
  projected: { groups: [""], levels: 2, gdal: [[2, "", "band"]] },
  tree: { groups: ["", "surface", "surface/other"], levels: 2, gdal: [[2, "surface/other", "counts"]] },
} as const;

/** Both generations read from one server. */
let served: ReturnType<typeof serveStores> | undefined;

for (const generation of SOME_GENERATIONS) {
  t.test(
    `overviews are what xarray's coarsen makes (${generation})`,
    {
      skip:
        clientMissing("zarr", "xarray") ||
        clientMissingIn(generation, "zarr", "xarray", "fsspec", "dask", "gdal"),
    },
    (t) => compareAll(t, generation),
  );
}

/** Writes the stores and starts the program. */
async function serveStores(): Promise<{ readonly server: Program; location(id: string): string }> {
  const directory = await makeTemporaryDirectory();
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  await runPython("write_overview_stores.py", [directory]);
  const location = (id: string) => join(directory, `${id}.zarr`);
  const datasets = Object.entries(DATASETS).map(([id, { levels }]) => [
    id,
    { location: location(id), overviews: { levels } },
  ]);
  const server = await serveDatasets(t, { directory, datasets: Object.fromEntries(datasets) });
  t.teardown(() => server.stop());
  return { server, location };
}

async function compareAll(t: Test, generation: Generation): Promise<void> {
  served ??= serveStores();
  const { server, location } = await served;
  const isNew = generation === "trixie";
  const job = {
    // zarr-python of Debian 12 knows v2 only, and its xarray no DataTree.
    formats: isNew ? [2, 3] : [2],
    datatree: isNew,
    datasets: Object.entries(DATASETS).map(([id, dataset]) => ({
      id,
      ...dataset,
      location: location(id),
      url: server.storeUrl(id, "overviews"),
    })),
  };
  const { compared, differences } = JSON.parse(
    await runPython("read_overviews.py", [], JSON.stringify(job), generation),
  );
  t.same(differences, []);
  t.ok(compared > 80, `${compared} variables compared`);
  t.same(errorsOf(server), []);
}
