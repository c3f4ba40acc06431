import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { compareWithFiles, type Finding } from "../support/clients/compare-with-files.js";
import { makeTemporaryDirectory, runPython, startServer } from "../support/clients/harness.js";
import { checkCleanLog } from "../support/clients/refusals.js";
import { clientMissing } from "../support/clients/require-client.js";

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

t.setTimeout(280_000);

t.test(
  "xarray reads from NetCDF-4 and HDF5 over HTTP what it reads from the file",
  { skip: clientMissing("xarray", "zarr", "netcdf4", "h5py", "h5netcdf") },
  async (t) => {
    const directory = await makeTemporaryDirectory();
    t.teardown(() => rm(directory, { recursive: true, force: true }));
    const files = join(directory, "files");
    await runPython("write_hdf5_files.py", [files]);
    const names = (await readdir(files)).sort();
    const server = await startServer({
      directory,
      datasets: Object.fromEntries(names.map((name) => [idOf(name), join(files, name)])),
    });
    let compared = 0;
    const jobs = names.map((name) => [join(files, name), server.storeUrl(idOf(name))]);
    for (const [index, found] of (await compareWithFiles(jobs)).entries()) {
      const name = names[index] as string;
      const wrong = found.filter((finding) => !HARMLESS.has(finding.kind) && !isExpected(name, finding));
      t.same(wrong.slice(0, 10), [], `${name}: ${wrong.length} findings`);
      compared += Number(found.at(-1)?.compared);
    }
    t.ok(compared > 1_000, `${compared} variables compared`);
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
