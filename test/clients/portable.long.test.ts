import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { commandOf } from "../support/clients/client-generation.js";
import type { Prefix } from "../support/clients/client-limits.js";
import { compareWithFiles, type Finding } from "../support/clients/compare-with-files.js";
import {
  type FixtureStore,
  makeTemporaryDirectory,
  openFixtures,
  type ReadBackJob,
  readBack,
  runCommand,
  runPython,
  serveDatasets,
} from "../support/clients/fixtures.js";
import { checkCleanLog } from "../support/clients/refusals.js";
import { clientMissing, clientMissingIn, PYTHON } from "../support/clients/require-client.js";
import { datasetId, datasetsOf, leftOutOfPortable, PORTABLE } from "../support/clients/served-variants.js";
import { readTrueItems, zarritaDifference } from "../support/clients/true-values.js";
import { readWithZarrita } from "../support/clients/zarrita-reader.js";
import { fetchArrays, isForZarrita, namesOf } from "../support/clients/zarrita-support.js";
import { choose } from "../support/effort.js";
import { writeFiles, zarray, zgroup } from "../support/write-store.js";

t.setTimeout(600_000);

/** Differences in what a variable holds; texts of v3 have other types. */
const ABOUT_VALUES =
  /^(values|shape|dimensions|coordinates|dimension .*|encoding (units|calendar|scale_factor|add_offset))$/;

const CODECS: ReadonlySet<string> = new Set([
  ...["bytes", "transpose", "sharding_indexed", "vlen-utf8", "vlen-bytes", "blosc", "gzip", "zstd", "crc32c"],
]);

/**
 * Arrays that GDAL of Debian 14 reads wrong or not at all, by store: fill values beyond 2^53, long texts, orders of axes that are
 * neither C nor F, and a checksum of zstd.
 */
const WRONG_IN_GDAL: Readonly<Record<string, readonly string[]>> = {
  "types.zarr": ["u64_le", "u64_be"],
  "objects.zarr": ["utf8", "utf8_raw"],
  "shapes.zarr": ["uint64_fill"],
  "v3.zarr": ["transposed_odd", "transposed_twice"],
  "zarr3-codecs.zarr": ["zstd_checksum"],
};

t.test(
  "zarr-python and xarray of Debian 13, GDAL of Debian 14 and zarrita read every value of portable stores",
  {
    skip:
      clientMissing("zarr", "xarray", "gdal") ||
      clientMissingIn("trixie", "zarr", "xarray", "fsspec") ||
      clientMissingIn("forky", "gdal"),
  },
  async (t) => {
    const fixtures = await openFixtures();
    const stores = choose(t, Object.keys(fixtures.stores));
    const directory = await makeTemporaryDirectory();
    t.teardown(() => rm(directory, { recursive: true, force: true }));
    const server = await serveDatasets(t, { datasets: datasetsOf(fixtures, stores, [PORTABLE]), directory });
    const jobs: ReadBackJob[] = [];
    const ofGdal: ReadBackJob[] = [];
    const ofZarrita: string[] = [];
    let zarritaCount = 0;
    for (const store of stores) {
      const facts = fixtures.stores[store] as FixtureStore;
      const url = server.storeUrl(datasetId(store, PORTABLE), "zarr3");
      const refused = leftOutOfPortable(facts);
      const job = { store, url, format: 3, portable: true, refused, consolidated: true };
      jobs.push({ ...job, client: "zarr" });
      if (store !== "names.zarr") ofGdal.push({ ...job, client: "gdal", wrong: WRONG_IN_GDAL[store] ?? [] });
      for (const group of facts.dims ? facts.groups : [])
        jobs.push({ ...job, client: "xarray", group, decode: false, inPlace: false });

      const arrays = await fetchArrays(url);
      t.same(
        [...arrays].filter(([, { codecs }]) => !namesOf(codecs).every((name) => CODECS.has(name))),
        [],
        store,
      );
      const paths = [...arrays].filter(([, array]) => isForZarrita(array)).map(([path]) => path);
      for (const values of await readWithZarrita(url, paths, "v3")) {
        const array = facts.arrays[values.path]!;
        const expected = await readTrueItems(fixtures, array);
        if (expected === undefined) continue;
        zarritaCount++;
        const problem = zarritaDifference(values, array, expected);
        if (problem !== undefined) ofZarrita.push(`${url} ${values.path}: ${problem}`);
      }
    }
    t.same(ofZarrita.slice(0, 20), [], `${ofZarrita.length} differences of zarrita`);
    t.ok(zarritaCount > stores.length, `${zarritaCount} arrays read by zarrita`);
    for (const [generation, own, expected] of [
      ["trixie", jobs, stores.length],
      ["forky", ofGdal, stores.length],
    ] as const) {
      const { compared, differences } = await readBack(fixtures, own, generation);
      t.same(differences.slice(0, 20), [], `${generation}: ${differences.length} differences`);
      t.ok(compared > expected, `${generation}: ${compared} arrays compared`);
    }
    checkCleanLog(t, server);
    await server.stop();
  },
);

/** Variable of `nc_fills.nc` without fill values: where nothing was written, netCDF-C reads what happens to be in memory. */
const UNFILLED = "none";

t.test(
  "xarray of Debian 13 reads from portable stores of NetCDF-4 and HDF5 what it reads from the files",
  {
    skip:
      clientMissing("netcdf4", "h5py", "h5netcdf") ||
      clientMissingIn("trixie", "zarr", "xarray", "fsspec", "netcdf4", "h5py"),
  },
  async (t) => {
    const directory = await makeTemporaryDirectory();
    t.teardown(() => rm(directory, { recursive: true, force: true }));
    const files = join(directory, "files");
    await runPython("write_hdf5_files.py", [files]);
    const names = (await readdir(files)).sort();
    const server = await serveDatasets(t, {
      directory,
      datasets: Object.fromEntries(
        names.map((name) => [
          name.replace(".", "-"),
          { location: join(files, name), ...PORTABLE.config({} as FixtureStore) },
        ]),
      ),
    });
    const chosen = choose(t, names, 2);
    const jobsOf = (prefix: Prefix) =>
      chosen.map((name) => [
        join(files, name),
        server.storeUrl(name.replace(".", "-"), prefix),
        ...["--engines", "netcdf4"],
      ]);
    const textOf = ({ group, decode, variable, message }: Finding) =>
      JSON.stringify([group, decode, variable, message]);
    const inV2 = await compareWithFiles(jobsOf("zarr"), "trixie");
    let compared = 0;
    for (const [index, found] of (await compareWithFiles(jobsOf("zarr3"), "trixie")).entries()) {
      // What this netCDF reads wrong is no matter of the format.
      const known = new Set(inV2[index]!.map(textOf));
      const wrong = found.filter(
        (each) =>
          each.kind === "difference" &&
          ABOUT_VALUES.test(String(each.message)) &&
          !known.has(textOf(each)) &&
          each.variable !== UNFILLED,
      );
      t.same(wrong.slice(0, 10), [], `${chosen[index]}: ${wrong.length} differences`);
      compared += Number(found.at(-1)?.compared);
    }
    t.ok(compared > chosen.length, `${compared} variables of ${chosen.length} files compared`);
    checkCleanLog(t, server);
    await server.stop();
  },
);

/** Prints the times of a store in nanoseconds, as xarray decodes them. */
const DECODE = `
import json, sys
import numpy as np, xarray as xr
store = xr.open_zarr(sys.argv[1], zarr_format=3, decode_timedelta=True)
print(json.dumps({name: store[name].values.astype(store[name].dtype.kind + "8[ns]").astype("i8").tolist() for name in store.variables}))
`;

t.test(
  "xarray of Debian 13 decodes times of numpy in a portable store",
  { skip: clientMissingIn("trixie", "zarr", "xarray", "fsspec") },
  async (t) => {
    const directory = await makeTemporaryDirectory();
    t.teardown(() => rm(directory, { recursive: true, force: true }));
    const counts = [0n, -(2n ** 63n), 10_957n, -5n];
    const units = {
      D: 86_400n * 10n ** 9n,
      h: 3_600n * 10n ** 9n,
      s: 10n ** 9n,
      ms: 10n ** 6n,
      us: 1_000n,
      ns: 1n,
    };
    const types = ["M8", "m8"].flatMap((kind) =>
      Object.entries(units).map(([unit, ns]) => ({ kind, unit, ns })),
    );
    const store = join(directory, "times.zarr");
    await writeFiles(store, {
      ".zgroup": zgroup,
      ...Object.fromEntries(
        types.flatMap(({ kind, unit }) => [
          [
            `${kind}_${unit}/.zarray`,
            { ...zarray, shape: [4], chunks: [4], dtype: `<${kind}[${unit}]`, fill_value: "NaT" },
          ],
          [`${kind}_${unit}/.zattrs`, { _ARRAY_DIMENSIONS: ["x"] }],
          [`${kind}_${unit}/0`, Buffer.from(BigInt64Array.from(counts).buffer)],
        ]),
      ),
    });
    const datasets = { times: { location: store, zarr3: { portable: true } } };
    const server = await serveDatasets(t, { datasets, directory });
    const url = server.storeUrl("times", "zarr3");
    const run = await runCommand(...commandOf("trixie", PYTHON, ["-W", "ignore", "-c", DECODE, url]));
    t.equal(run.status, 0, run.stderr);
    const decoded = JSON.parse(run.stdout) as Record<string, readonly number[]>;
    for (const { kind, unit, ns } of types) {
      const expected = counts.map((count) => Number(count < -100n ? count : count * ns));
      t.same(decoded[`${kind}_${unit}`], expected, `${kind} ${unit}`);
    }
    await server.stop();
  },
);
