import { rm } from "node:fs/promises";
import { join } from "node:path";
import FileSystemStore from "@zarrita/storage/fs";
import t from "tap";
import * as zarr from "zarrita";
import {
  type FixtureArray,
  type FixtureStore,
  makeTemporaryDirectory,
  openFixtures,
  serveDatasets,
} from "../support/clients/fixtures.js";
import { checkCleanLog } from "../support/clients/refusals.js";
import { clientMissing } from "../support/clients/require-client.js";
import { datasetId, datasetsOf, variantsNamed } from "../support/clients/served-variants.js";
import { readTrueItems, zarritaDifference } from "../support/clients/true-values.js";
import { readWithZarrita } from "../support/clients/zarrita-reader.js";
import { fetchArrayDocuments, zarritaCanRead } from "../support/clients/zarrita-support.js";

t.setTimeout(280_000);

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
    const server = await serveDatasets(t, { datasets: datasetsOf(fixtures, stores, variants), directory });
    let compared = 0;
    const differences: string[] = [];
    for (const variant of variants) {
      for (const store of stores) {
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
    t.ok(compared > 500, `${compared} arrays compared`);
    checkCleanLog(t, server);
    await server.stop();
  },
);

t.test("a store that zarrita wrote is read back by zarrita", async (t) => {
  const directory = await makeTemporaryDirectory();
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const location = join(directory, "written.zarr");
  const root = zarr.root(new FileSystemStore(location));
  await zarr.create(root, { attributes: { title: "written by zarrita" } });
  const bytes = { name: "bytes", configuration: { endian: "little" } };
  const zstd = { name: "zstd", configuration: { level: 1, checksum: false } };
  const blosc = {
    name: "blosc",
    configuration: { cname: "lz4", clevel: 5, shuffle: "shuffle", typesize: 4, blocksize: 0 },
  };
  const transpose = { name: "transpose", configuration: { order: [1, 0] } };
  const chains = {
    bare: [bytes],
    zstd: [bytes, zstd],
    blosc: [bytes, blosc],
    transposed: [transpose, bytes, zstd],
  };
  const shape = [5, 7];
  const data = Float32Array.from({ length: 35 }, (_, index) => (index % 6 === 0 ? Number.NaN : index / 3));
  for (const [name, codecs] of Object.entries(chains)) {
    const array = await zarr.create(root.resolve(`group/${name}`), {
      shape,
      chunkShape: [2, 3],
      dtype: "float32",
      codecs,
      fillValue: Number.NaN,
      dimensionNames: ["y", "x"],
      attributes: { units: "K" },
    });
    // Its `bytes` codec encodes the whole buffer behind a view, so every chunk has one of its own.
    await zarr.set(array, null, { data, shape, stride: [7, 1] });
  }
  await zarr.create(root.resolve("group"), {});

  const server = await serveDatasets(t, { datasets: { written: location }, directory });
  const url = server.storeUrl("written");
  const results = await readWithZarrita(
    url,
    Object.keys(chains).map((name) => `group/${name}`),
  );
  for (const { path, items, dims, problem } of results) {
    t.equal(problem, undefined, path);
    t.same(items, [...data], path);
    t.same(dims, ["y", "x"], path);
  }
  t.same((await zarr.open.v2(new zarr.FetchStore(url), { kind: "group" })).attrs, {
    title: "written by zarrita",
  });
  checkCleanLog(t, server);
  await server.stop();
});
