import { rm } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import { commandOf, type Generation, SOME_GENERATIONS } from "../support/clients/client-generation.js";
import {
  type FixtureStore,
  makeTemporaryDirectory,
  openFixtures,
  type ReadBackJob,
  readBack,
  runCommand,
  serveDatasets,
} from "../support/clients/fixtures.js";
import { checkCleanLog } from "../support/clients/refusals.js";
import { clientMissing, clientMissingIn } from "../support/clients/require-client.js";
import { datasetId, datasetsOf, refusedBy, VARIANTS, waysOf } from "../support/clients/served-variants.js";
import { choose } from "../support/effort.js";

t.setTimeout(600_000);

for (const generation of SOME_GENERATIONS) {
  t.test(
    `GDAL reads over HTTP what it reads in place, and its own stores (${generation})`,
    {
      skip: clientMissing("zarr", "xarray", "gdal") || clientMissingIn(generation, "gdal", "gdalinfo"),
    },
    (t) => readEverything(t, generation),
  );
}

async function readEverything(t: Test, generation: Generation): Promise<void> {
  const runGdal = (program: string, args: readonly string[]) =>
    runCommand(...commandOf(generation, program, args));
  const fixtures = await openFixtures();
  // GDAL asks for URLs without encoding spaces and the like.
  const stores = Object.keys(fixtures.stores).filter((store) => store !== "names.zarr");
  const variants = VARIANTS.filter(({ name }) =>
    ["stored", "zstd", "bare", "rechunked-packed"].includes(name),
  );
  const directory = await makeTemporaryDirectory();
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const chosen = choose(t, stores, 2);
  const server = await serveDatasets(t, {
    datasets: {
      ...datasetsOf(fixtures, chosen, variants),
      ...datasetsOf(fixtures, ["air.zarr", "forecast.zarr"], variants.slice(0, 1)),
    },
    directory,
  });

  const jobs: ReadBackJob[] = chosen.flatMap((store) =>
    waysOf(stores.indexOf(store), variants).map((variant) => ({
      client: "gdal",
      store,
      url: server.storeUrl(datasetId(store, variant)),
      refused: refusedBy(variant, fixtures.stores[store] as FixtureStore),
    })),
  );
  const { compared, differences } = await readBack(fixtures, jobs, generation);
  t.same(differences.slice(0, 20), [], `${differences.length} differences`);
  t.ok(compared > jobs.length, `${compared} arrays of ${jobs.length} datasets compared`);

  const url = server.storeUrl("air-stored");
  await t.test("gdalmdiminfo lists a store and a group of a tree", async (t) => {
    const flat = await runGdal("gdalmdiminfo", [`ZARR:"/vsicurl/${url}"`]);
    t.equal(flat.status, 0, flat.stderr);
    t.hasStrict(JSON.parse(flat.stdout).arrays.area.dimension_size, [25, 53]);
    const group = await runGdal("gdalmdiminfo", [
      `ZARR:"/vsicurl/${server.storeUrl("forecast-stored")}/surface/ensemble"`,
    ]);
    t.equal(group.status, 0, group.stderr);
    t.hasStrict(JSON.parse(group.stdout).arrays.noise.dimension_size, [8, 25]);
  });
  await t.test("the store's plain URL is recognised", async (t) => {
    const plain = await runGdal("gdalinfo", [`/vsicurl/${url}/`]);
    t.equal(plain.status, 0, plain.stderr);
    t.match(plain.stdout, "Driver: Zarr/Zarr");
  });
  await t.test("gdal_translate copies an array with its values", async (t) => {
    const target = join(directory, "area.tif");
    const source = `ZARR:"/vsicurl/${url}":/area`;
    const { status, stderr } = await runGdal("gdal_translate", ["-q", source, target]);
    t.equal(status, 0, stderr);
    const remote = await runGdal("gdalinfo", ["-checksum", source]);
    const local = await runGdal("gdalinfo", ["-checksum", `ZARR:"${fixtures.path("air.zarr")}":/area`]);
    const copy = await runGdal("gdalinfo", ["-checksum", target]);
    const checksum = /Checksum=\d+/.exec(local.stdout)?.[0] ?? "none";
    t.match(remote.stdout, checksum);
    t.match(copy.stdout, checksum);
  });
  checkCleanLog(t, server);
  await server.stop();
}
