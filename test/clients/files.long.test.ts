import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import { hasJpeg } from "../../src/codec/file-formats/jpeg.js";
import { type Generation, SOME_GENERATIONS } from "../support/clients/client-generation.js";
import { compareWithFiles, type Finding } from "../support/clients/compare-with-files.js";
import { errorsOf, makeTemporaryDirectory, runPython, serveDatasets } from "../support/clients/fixtures.js";
import { checkCleanLog } from "../support/clients/refusals.js";
import { clientMissing, clientMissingIn } from "../support/clients/require-client.js";
import { choose } from "../support/effort.js";

t.setTimeout(600_000);

/** Files that scipy cannot read: CDF-5, and a variable alone with records of 5 bytes, as their `vsize` is a multiple of four. */
const NOT_FOR_SCIPY: ReadonlySet<string> = new Set([
  "types_data",
  "large_data",
  "names",
  "alone_bytes",
  "alone_shorts",
]);

for (const generation of SOME_GENERATIONS) {
  t.test(
    `xarray reads a NetCDF-3 file over HTTP as it reads it in place (${generation})`,
    {
      skip:
        clientMissing("netcdf4", "scipy") ||
        clientMissingIn(generation, "xarray", "zarr", "fsspec", "netcdf4", "scipy", "h5py"),
    },
    (t) => compareFiles(t, generation),
  );
}

async function compareFiles(t: Test, generation: Generation): Promise<void> {
  const directory = await makeTemporaryDirectory();
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const names = choose(t, (await runPython("write_netcdf3.py", [directory])).trim().split("\n"), 2);
  const datasets = Object.fromEntries(
    names.map((name) => [name, { location: join(directory, `${name}.nc`) }]),
  );
  const server = await serveDatasets(t, { directory: join(directory, "server"), datasets });
  let compared = 0;
  const jobs = names.map((name) => {
    const engines = NOT_FOR_SCIPY.has(name) ? "netcdf4" : "netcdf4,scipy";
    const file = join(directory, `${name}.nc`);
    return [file, server.storeUrl(name), "--groups", "/", "--engines", engines];
  });
  for (const [index, found] of (await compareWithFiles(jobs, generation)).entries()) {
    const wrong = found.filter(({ kind }) => kind !== "summary");
    t.same(wrong, [], names[index] as string);
    compared += Number(found.at(-1)?.compared);
  }
  t.ok(compared >= names.length, `${compared} variables of ${names.length} files are equal`);
  t.same(errorsOf(server), []);
  await server.stop();
}

/**
 * Findings that are not failures, by file, variable and message; `*` stands for all. Both engines of Debian 12 are wrong about them,
 * or have no name for what is there.
 */
const EXPECTED: readonly (readonly [file: string, finding: Partial<Finding>])[] = [
  // h5netcdf gives a variable of three axes one dimension.
  ["h5_arrays", { kind: "difference", message: "dimensions" }],
  // netCDF gives up all attributes of a variable because of one, and the file because of a link or an empty dataset.
  ["h5_matrices", { kind: "oracle", engine: "netcdf4" }],
  ["h5_refused", { kind: "oracle" }],
  // netCDF4 1.6 crashes over strings of a fixed length.
  ["h5_fixed_texts", { kind: "oracle", engine: "netcdf4" }],
  // h5netcdf gives bytes, among which xarray finds no `_FillValue`, which is a text.
  ["h5_fixed_texts", { kind: "difference", engine: "h5netcdf", decode: "on", variable: "utf8_marked" }],
  ["h5_mixed", { kind: "oracle", engine: "h5netcdf" }],
  ["nc_absent_texts", { kind: "oracle", variable: null }],
];

/** Kinds of findings of which any number may be there. */
const HARMLESS: ReadonlySet<string> = new Set(["disagreement", "extra", "flags", "summary"]);

t.test(
  "xarray reads from NetCDF-4 and HDF5 over HTTP what it reads from the file",
  { skip: clientMissing("xarray", "zarr", "netcdf4", "h5py", "h5netcdf") },
  async (t) => {
    const directory = await makeTemporaryDirectory();
    t.teardown(() => rm(directory, { recursive: true, force: true }));
    const files = join(directory, "files");
    await runPython("write_hdf5_files.py", [files]);
    const names = (await readdir(files)).sort();
    const server = await serveDatasets(t, {
      directory,
      datasets: Object.fromEntries(names.map((name) => [idOf(name), join(files, name)])),
    });
    let compared = 0;
    const chosen = choose(t, names, 2);
    const jobs = chosen.map((name) => [join(files, name), server.storeUrl(idOf(name))]);
    for (const [index, found] of (await compareWithFiles(jobs)).entries()) {
      const name = chosen[index] as string;
      const wrong = found.filter((finding) => !HARMLESS.has(finding.kind) && !isExpected(name, finding));
      t.same(wrong.slice(0, 10), [], `${name}: ${wrong.length} findings`);
      compared += Number(found.at(-1)?.compared);
    }
    t.ok(compared > chosen.length, `${compared} variables of ${chosen.length} files compared`);
    const refused = server
      .log()
      .filter(({ msg, dataset }) => msg === "refused" && dataset === "h5_refused_latest-h5");
    t.same(
      refused.map(({ path }) => path).sort(),
      ["dangling", "elsewhere", "lists", "long_double", "nothing", "references", "texts_in_fields"],
      "what is not served is refused by name",
    );
    t.same(
      await readTexts(server.storeUrl("nc_absent_texts-nc")),
      {
        filled: ["a", "none", "none", "none", "none", "none"],
        chunked: [...Array(11).fill(""), "b", "ü", "d", ...Array(16).fill("")],
      },
      "strings that HDF5 1.10 cannot read",
    );
    checkCleanLog(t, server);
    await server.stop();
  },
);

function idOf(name: string): string {
  return name.replace(".", "-");
}

function isExpected(name: string, finding: Finding): boolean {
  return EXPECTED.some(
    ([file, expected]) =>
      name.startsWith(file) && Object.entries(expected).every(([key, value]) => finding[key] === value),
  );
}

/** The items of all variables of a store of strings, read by zarr-python. */
async function readTexts(url: string): Promise<unknown> {
  return JSON.parse(await runPython("read_texts.py", [url]));
}

/** Overviews of the files that have some. */
const OVERVIEWS: Readonly<Record<string, number>> = {
  "cog_0.tif": 2,
  "cog_1.tif": 2,
  "cog_2.tif": 2,
  "cog_3.tif": 2,
  "jpeg_cog.tif": 1,
  "pyramid.tif": 2,
};

t.test(
  "xarray reads from served TIFF files what rioxarray reads from the files",
  { skip: clientMissing("xarray", "zarr", "fsspec", "gdal", "rasterio", "rioxarray", "tifffile", "tiffcp") },
  async (t) => {
    const directory = await makeTemporaryDirectory();
    const files = join(directory, "files");
    await mkdir(files);
    const written = JSON.parse(await runPython("write_tiffs.py", [files]));
    const served = (written.served as string[]).filter((name) => hasJpeg() || !name.startsWith("jpeg"));
    const refused = (written.refused as string[]).filter((name) => name.endsWith(".tif"));
    const datasets = Object.fromEntries([
      ...served.map((name, index) => [`file${index}`, { location: join(files, name) }]),
      ...refused.map((name, index) => [`refused${index}`, { location: join(files, "refused", name) }]),
    ]);
    const server = await serveDatasets(t, { datasets, directory });
    t.teardown(async () => {
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    });

    const jobs = choose(t, served).map((name) => ({
      file: join(files, name),
      url: server.storeUrl(`file${served.indexOf(name)}`),
      overviews: OVERVIEWS[name] ?? 0,
      pages: name === "pages.tif" ? 3 : 1,
    }));
    const { compared, differences } = JSON.parse(
      await runPython("compare_tiffs.py", [], JSON.stringify(jobs)),
    );
    t.same(differences, []);
    t.ok(compared >= 4 * jobs.length, `compared ${compared} variables of ${jobs.length} files`);

    t.same(errorsOf(server), []);

    for (const [index, name] of refused.entries()) {
      const reply = await fetch(`${server.storeUrl(`refused${index}`)}/.zmetadata`);
      t.not(reply.status, 200, `${name} is refused`);
      await reply.arrayBuffer();
    }
  },
);
