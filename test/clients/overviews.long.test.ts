import { rm } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import { GENERATIONS, type Generation } from "../client-generation.js";
import { clientMissing, clientMissingIn } from "../require-client.js";
import { errorsOf, makeTemporaryDirectory, runPython, startServer } from "./harness.js";

t.setTimeout(120_000);

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

for (const generation of GENERATIONS) {
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

async function compareAll(t: Test, generation: Generation): Promise<void> {
  const directory = await makeTemporaryDirectory();
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  await runPython("write_overview_stores.py", [directory]);
  const location = (id: string) => join(directory, `${id}.zarr`);
  const server = await startServer({
    directory,
    datasets: Object.fromEntries(
      Object.entries(DATASETS).map(([id, { levels }]) => [
        id,
        { location: location(id), overviews: { levels } },
      ]),
    ),
  });
  const job = {
    // zarr-python of Debian 12 knows v2 only.
    formats: generation === "system" ? [2] : [2, 3],
    datatree: generation === "trixie",
    gdal: true,
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
  await server.stop();
}
