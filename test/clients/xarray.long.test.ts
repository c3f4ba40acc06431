import { rm } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import { GENERATIONS, type Generation } from "../support/clients/client-generation.js";
import {
  CLIENT_LIMITS,
  canOpenInPlace,
  decodingsOf,
  formatOf,
  missingBelow,
  prefixesOf,
  storesFor,
} from "../support/clients/client-limits.js";
import {
  type FixtureStore,
  makeTemporaryDirectory,
  openFixtures,
  type ReadBackJob,
  readBack,
  serveDatasets,
} from "../support/clients/fixtures.js";
import { checkCleanLog } from "../support/clients/refusals.js";
import { clientMissing, clientMissingIn } from "../support/clients/require-client.js";
import { datasetId, datasetsOf, VARIANTS } from "../support/clients/served-variants.js";
import { choose, effort } from "../support/effort.js";

/** Stores that xarray takes for a DataTree: coordinates of a group fit those of the groups above it. */
const TREES: ReadonlySet<string> = new Set(["datatree2.zarr", "datatree3.zarr"]);

t.setTimeout(600_000);

for (const generation of GENERATIONS) {
  t.test(
    `xarray makes of a store over HTTP what it makes of it in place (${generation})`,
    {
      skip:
        clientMissing("zarr", "xarray", "gdal") ||
        clientMissingIn(generation, "zarr", "xarray", "fsspec", "dask"),
    },
    (t) => readEverything(t, generation),
  );
}

async function readEverything(t: Test, generation: Generation): Promise<void> {
  const fixtures = await openFixtures();
  const { notForXarray } = CLIENT_LIMITS[generation];
  const variants = VARIANTS.filter(({ name }) => ["stored", "blosc", "rechunked-packed"].includes(name));
  const directory = await makeTemporaryDirectory();
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const read = prefixesOf(generation).map((prefix) => {
    const readable = storesFor(generation, prefix, fixtures);
    return { prefix, readable, chosen: new Set(choose(t, readable, 2)) };
  });
  const server = await serveDatasets(t, {
    directory,
    args: ["--access-log", "1"],
    datasets: {
      ...datasetsOf(fixtures, [...new Set(read.flatMap(({ chosen }) => [...chosen]))], variants),
      "air-by-name": {
        location: fixtures.path("air.zarr"),
        encoding: { chunks: { time: 5, lon: 17 } },
        variables: {
          air: { chunks: { lat: -1, time: 1 }, compressor: { id: "zstd", level: 1 }, filters: null },
        },
      },
    },
  });

  const alone = await serveDatasets(t, {
    directory: join(directory, "alone"),
    args: ["--single", "--workers", "1"],
    datasets: { air: { location: fixtures.path("air.zarr"), encoding: { chunks: { time: 5 } } } },
  });

  const jobs: ReadBackJob[] = [];
  for (const { prefix, readable, chosen } of read) {
    for (const [index, store] of readable.entries()) {
      if (!chosen.has(store)) continue;
      const facts = fixtures.stores[store] as FixtureStore;
      const inPlace = canOpenInPlace(generation, facts);
      // They take turns from store to store. What is below `zarr` is the same for both generations.
      const ways = generation === "trixie" && prefix === "zarr" ? variants.slice(0, 1) : variants;
      const count = effort(variants.length);
      for (const variant of ways.filter((_, at) => (at + index) % variants.length < count)) {
        const job = {
          client: "xarray",
          store,
          url: server.storeUrl(datasetId(store, variant), prefix),
          ...(generation === "trixie" ? { format: formatOf(prefix) } : {}),
          refused: missingBelow(prefix, variant, facts),
          drop: notForXarray[store] ?? [],
          consolidated: true,
          inPlace,
        } as const;
        const decodings = decodingsOf(facts, inPlace, prefix).filter(
          // Values are the same as stored in every variant. What they are when they are not decoded is seen in some stores.
          (decode, _, all) =>
            decode || all.length === 1 || (variant === variants[0] && index % 2 < effort(2)),
        );
        for (const group of facts.groups) {
          for (const decode of decodings) jobs.push({ ...job, group, decode });
        }
        if (generation === "trixie" && TREES.has(store)) jobs.push({ ...job, tree: true, note: "DataTree" });
        if (variant !== variants[0] || !decodings.includes(true)) continue;
        const group = facts.groups.at(-1);
        const isListed = store !== "names.zarr" && (prefix === "zarr" || facts.groups.length === 1);
        const more: ReadBackJob[] = [
          { ...job, group, asStore: false, decode: true, note: "group=" },
          { ...job, group: "/", decode: true, dask: true, note: "dask" },
          ...(isListed
            ? [{ ...job, group, decode: true, consolidated: false, note: "not consolidated" }]
            : []),
        ];
        const turn = Math.floor(index / variants.length);
        jobs.push(...more.filter((_, at) => (at + turn) % more.length < effort(more.length)));
      }
    }
  }
  for (const decode of [true, false]) {
    const url = server.storeUrl("air-by-name");
    jobs.push({ client: "xarray", store: "air.zarr", url, consolidated: true, inPlace: true, decode });
  }

  const url = alone.storeUrl("air");
  jobs.push({ client: "xarray", store: "air.zarr", url, consolidated: true, inPlace: true, decode: true });
  jobs.push({ client: "zarr", store: "air.zarr", url, consolidated: true });

  const { compared, differences } = await readBack(fixtures, jobs, generation);
  // What the client took for missing, if it was answered so.
  const refusals = server.log().filter(({ status }) => Number(status) >= 400);
  t.same(differences.slice(0, 20), [], `${differences.length} differences`, {
    refusals: differences.length === 0 ? [] : refusals.slice(-40),
    answers: server.log().filter(({ status }) => status !== undefined).length,
  });
  t.ok(compared > jobs.length, `${compared} variables of ${jobs.length} jobs compared`);
  const airDocument = await (await fetch(`${server.storeUrl("air-by-name")}/air/.zarray`)).json();
  t.match(airDocument, { chunks: [1, 25, 20], compressor: { id: "zstd", level: 1 }, filters: null });
  const noiseDocument = await (await fetch(`${server.storeUrl("air-by-name")}/noise/.zarray`)).json();
  t.match(noiseDocument, { chunks: [5, 25] });
  for (const each of [server, alone]) {
    checkCleanLog(t, each);
    await each.stop();
  }
}
