import { spawn } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import t from "tap";
import { askPython } from "../support/clients/ask-python.js";
import { commandOf, GENERATIONS } from "../support/clients/client-generation.js";
import { clientMissing, clientMissingIn } from "../support/clients/require-client.js";
import { runProgram } from "../support/servers/run-program.js";
import { startServer } from "../support/servers/start-server.js";
import { makeDirectory } from "../support/write-store.js";

t.setTimeout(600_000);

/** Files of every layout: chunked, filtered, packed, contiguous, with groups, of NetCDF-3, HDF5 without dimensions; and days to join. */
const WRITE = `
import sys
import h5py, numpy as np, xarray as xr
folder = sys.argv[1]
rng = np.random.default_rng(1)
def day(first, count):
    t2m = rng.normal(280, 10, (count, 37, 61)).astype("f4")
    t2m[0, 0, :3] = np.nan
    return xr.Dataset({"t2m": (("time", "lat", "lon"), t2m, {"units": "K"}), "mean": ("time", t2m.mean((1, 2))), "level": 7},
        coords={"time": ("time", np.arange(first, first + count) * 1.0, {"units": "hours since 2000-01-01"}),
                "lat": np.linspace(75, 15, 37).astype("f4"), "lon": np.arange(61) * 1.0})
chunked = {"zlib": True, "shuffle": True, "chunksizes": (4, 20, 30)}
packed = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32767}
ds = day(0, 24)
ds.to_netcdf(f"{folder}/chunked.nc", encoding={"t2m": chunked})
ds.to_netcdf(f"{folder}/packed.nc", encoding={"t2m": {**chunked, **packed}})
ds.to_netcdf(f"{folder}/contiguous.nc")
ds.to_netcdf(f"{folder}/classic.nc", format="NETCDF3_64BIT", unlimited_dims=["time"])
wide = xr.Dataset({"a": (("y", "x"), rng.normal(size=(3, 200_001)))})
wide.to_netcdf(f"{folder}/wide.nc", format="NETCDF3_64BIT")
for number in range(3):
    day(24 * number, 24).to_netcdf(f"{folder}/day-{number}.nc", encoding={"t2m": {**chunked, "chunksizes": (24, 37, 61)}})
`;

/** Opens references as xarray does, and compares all decoded values with those of the files. */
const COMPARE = `
import json, sys
import fsspec, xarray as xr
case = json.load(sys.stdin)
for name, refs, protocol, files in case:
    storage = {"fo": refs, "remote_protocol": protocol}
    if int(xr.__version__.split(".")[0]) in range(2025, 2100):
        storage |= {"asynchronous": True, "remote_options": {"asynchronous": True}}
        found = xr.open_dataset("reference://", engine="zarr", backend_kwargs={"consolidated": False, "storage_options": storage})
    else:
        found = xr.open_dataset(fsspec.get_mapper("reference://", **storage), engine="zarr", backend_kwargs={"consolidated": False})
    parts = [xr.open_dataset(file) for file in files]
    expected = parts[0] if len(parts) == 1 else xr.concat(parts, "time", data_vars="minimal", coords="minimal", compat="override")
    xr.testing.assert_equal(found.load(), expected.load())
    print("same", name)
`;

const FILES = ["chunked", "packed", "contiguous", "classic", "wide"];

t.test(
  "xarray and fsspec read from references what the files have",
  { skip: clientMissing("xarray", "netcdf4") },
  async (t) => {
    const folder = await makeDirectory(t);
    askPython(WRITE, null, [folder]);
    const days = [0, 1, 2].map((day) => join(folder, `day-${day}.nc`));
    const common = { immutable: false, encoding: {}, variables: {} };
    const concat = { kind: "concat", dimension: "time" } as const;
    const { url } = await startServer(t, {
      datasets: [
        ...FILES.map((id) => ({ ...common, id, location: join(folder, `${id}.nc`) })),
        { ...common, id: "joined", location: join(folder, "day-*.nc"), join: concat },
      ],
    });
    const cases: [name: string, refs: string, protocol: string, files: string[]][] = [];
    for (const id of [...FILES, "joined"]) {
      const files = id === "joined" ? days : [join(folder, `${id}.nc`)];
      const refs = join(folder, `${id}.json`);
      const args = id === "joined" ? [join(folder, "day-*.nc"), "--concat", "time"] : files;
      t.strictSame(await runProgram(["references", ...args, "-o", refs]), {
        code: 0,
        stdout: "",
        stderr: "",
      });
      cases.push(
        [id, refs, "file", files],
        [`${id} over HTTP`, `${url}/datasets/${id}/references.json`, "http", files],
      );
    }
    for (const generation of GENERATIONS) {
      const skip = clientMissingIn(generation, "xarray", "netcdf4");
      await t.test(generation, { skip }, async (t) => {
        const [program, args] = commandOf(generation, "/usr/bin/python3", ["-W", "ignore", "-c", COMPARE]);
        // Not synchronously: the server is in this process.
        const python = spawn(program, args);
        python.stdin.end(JSON.stringify(cases));
        const [stdout, stderr] = await Promise.all([text(python.stdout), text(python.stderr)]);
        t.same(
          stdout.split("\n").slice(0, -1),
          cases.map(([name]) => `same ${name}`),
          stderr.slice(-2_000),
        );
      });
    }
    // The program itself reads them, too.
    for (const id of FILES) {
      const { code, stdout } = await runProgram(["inspect", join(folder, `${id}.json`)]);
      t.match({ code, stdout }, { code: 0, stdout: / 0 refused\n$/ }, id);
    }
  },
);
