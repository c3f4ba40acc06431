import { rm } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import { GENERATIONS, type Generation } from "../support/clients/client-generation.js";
import { compareWithFiles } from "../support/clients/compare-with-files.js";
import { errorsOf, makeTemporaryDirectory, runPython, startServer } from "../support/clients/harness.js";
import { clientMissing, clientMissingIn } from "../support/clients/require-client.js";

/** Files that scipy cannot read: CDF-5, and a variable alone with records of 5 bytes, as their `vsize` is a multiple of four. */
const NOT_FOR_SCIPY: ReadonlySet<string> = new Set([
  "types_data",
  "large_data",
  "names",
  "alone_bytes",
  "alone_shorts",
]);

t.setTimeout(280_000);

for (const generation of GENERATIONS) {
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
  const names = (await runPython("write_netcdf3.py", [directory])).trim().split("\n");
  const datasets = Object.fromEntries(
    names.map((name) => [name, { location: join(directory, `${name}.nc`) }]),
  );
  const server = await startServer({ directory: join(directory, "server"), datasets });
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
  t.ok(compared > 200, `${compared} variables are equal`);
  t.same(errorsOf(server), []);
  await server.stop();
}
