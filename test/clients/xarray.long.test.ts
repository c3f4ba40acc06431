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
import { checkCleanLog } from "./refusals.js";
import { datasetId, datasetsOf, refusedBy, VARIANTS } from "./served-variants.js";

/** Types and object codecs that xarray cannot hold or compare, in place or over HTTP. */
const NOT_FOR_XARRAY: Readonly<Record<string, readonly string[]>> = {
  "types.zarr": ["V3", "record", "nested_record"],
  "v3-more.zarr": ["struct"],
};

t.setTimeout(280_000);

t.test(
  "xarray makes of a store over HTTP what it makes of it in place",
  { skip: clientMissing("zarr", "xarray", "fsspec", "dask", "gdal") },
  async (t) => {
    const fixtures = await openFixtures();
    const stores = Object.keys(fixtures.stores);
    const variants = VARIANTS.filter(({ name }) => ["stored", "blosc", "rechunked-packed"].includes(name));
    const directory = await makeTemporaryDirectory();
    t.teardown(() => rm(directory, { recursive: true, force: true }));
    const server = await startServer({
      directory,
      args: ["--access-log", "1"],
      datasets: {
        ...datasetsOf(fixtures, stores, variants),
        "air-by-name": {
          location: fixtures.path("air.zarr"),
          encoding: { chunks: { time: 5, lon: 17 } },
          variables: {
            air: { chunks: { lat: -1, time: 1 }, compressor: { id: "zstd", level: 1 }, filters: null },
          },
        },
      },
    });

    const jobs: ReadBackJob[] = [];
    for (const variant of variants) {
      for (const store of stores) {
        const facts = fixtures.stores[store] as FixtureStore;
        const refused = refusedBy(variant, facts);
        // Arrays whose dimensions only the server names have a fill value that xarray takes for the mark of missing ones.
        const decodings = facts.format === 3 || facts.dims ? [true, false] : [false];
        const drop = NOT_FOR_XARRAY[store] ?? [];
        const common = {
          client: "xarray",
          store,
          url: server.storeUrl(datasetId(store, variant)),
          refused,
          drop,
        } as const;
        for (const group of facts.groups) {
          for (const decode of decodings) jobs.push({ ...common, group, decode, consolidated: true });
        }
        if (variant !== variants[0] || decodings.length === 1) continue;
        const deepest = facts.groups.at(-1);
        jobs.push({
          ...common,
          group: deepest,
          asStore: false,
          decode: true,
          consolidated: true,
          note: "group=",
        });
        jobs.push({ ...common, group: "/", decode: true, consolidated: true, dask: true, note: "dask" });
        if (store !== "names.zarr") {
          jobs.push({
            ...common,
            group: deepest,
            decode: true,
            consolidated: false,
            note: "not consolidated",
          });
        }
      }
    }
    const byName = {
      client: "xarray",
      store: "air.zarr",
      url: server.storeUrl("air-by-name"),
      consolidated: true,
    } as const;
    jobs.push({ ...byName, decode: true }, { ...byName, decode: false });

    const { compared, differences } = await readBack(fixtures, jobs);
    // What the client took for missing, if it was answered so.
    const refusals = server.log().filter(({ status }) => Number(status) >= 400);
    t.same(differences.slice(0, 20), [], `${differences.length} differences`, {
      refusals: differences.length === 0 ? [] : refusals.slice(-40),
      answers: server.log().filter(({ status }) => status !== undefined).length,
    });
    t.ok(compared > 1_000, `${compared} variables compared`);
    const airDocument = await (await fetch(`${server.storeUrl("air-by-name")}/air/.zarray`)).json();
    t.match(airDocument, { chunks: [1, 25, 20], compressor: { id: "zstd", level: 1 }, filters: null });
    const noiseDocument = await (await fetch(`${server.storeUrl("air-by-name")}/noise/.zarray`)).json();
    t.match(noiseDocument, { chunks: [5, 25] });
    checkCleanLog(t, server);
    await server.stop();
  },
);
