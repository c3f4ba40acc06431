import { join } from "node:path";
import t from "tap";
import { askPython } from "../support/clients/ask-python.js";
import { clientMissing } from "../support/clients/require-client.js";
import { runProgram } from "../support/servers/run-program.js";
import { startProgram } from "../support/servers/start-program.js";
import { countsOf } from "../support/warm-store.js";
import { makeDirectory, writeFiles } from "../support/write-store.js";

t.setTimeout(600_000);

/** Writes a file a day: packed numbers with gaps, and others. */
const WRITE = `
import sys
import numpy as np, xarray as xr
rng = np.random.default_rng(1)
for day in range(40):
    t2m = rng.normal(280, 10, (1, 12, 20))
    t2m[0, day % 12, :3] = np.nan
    xr.Dataset(
        {"t2m": (("time", "lat", "lon"), t2m), "count": (("time", "lat"), rng.integers(0, 2**40, (1, 12)))},
        coords={"time": [np.datetime64("2001-02-20", "ns") + np.timedelta64(day, "D")],
                "lat": np.linspace(55, 0, 12), "lon": np.arange(20.0)},
    ).to_netcdf(f"{sys.argv[1]}/d{day:03}.nc", unlimited_dims=["time"],
        encoding={"t2m": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32767, "zlib": True, "chunksizes": (1, 12, 20)},
                  "time": {"units": "days since 2000-01-01"}})
`;

/** Compares stores and selections with the files. Prints what differs. */
const COMPARE = `
import io, sys, urllib.request
import numpy as np, xarray as xr
folder, url = sys.argv[1:]
files = xr.concat([xr.open_dataset(f"{folder}/d{day:03}.nc").load() for day in range(40)], "time")
wrong = []
def check(name, found, expected):
    for variable in expected.variables:
        a, b = found[variable], expected[variable]
        if a.dtype != b.dtype or not np.array_equal(a.values, b.values, equal_nan=a.dtype.kind == "f"):
            wrong.append(f"{name}: {variable}")
for store in ("zarr", "encodings/series/zarr", "encodings/blocks/zarr"):
    found = xr.open_zarr(f"{url}/{store}", consolidated=True, chunks=None)
    check(store, found.load(), files)
print(found.t2m.encoding["chunks"], file=sys.stderr)
for query, box in (
    ("lat=55&lon=7", dict(lat=0, lon=7)), ("lat=0&lon=19&time=2001-03", dict(lat=11, lon=19, time=slice(9, 40))),
    ("isel.time=3", dict(time=3)), ("isel.lat=2:5&isel.lon=::-3", dict(lat=slice(2, 5), lon=slice(None, None, -3))),
):
    body = urllib.request.urlopen(f"{url}/select?var=t2m&{query}&f=nc").read()
    with open(f"{folder}/answer.nc", "wb") as file: file.write(body)
    with xr.open_dataset(f"{folder}/answer.nc", engine="netcdf4") as answer:
        check(query, answer.load(), files[["t2m"]].isel(box))
print("\\n".join(wrong), end="")
`;

t.test(
  "xarray reads the values of the files from every encoding, and selections are equal, first and warmed",
  { skip: clientMissing("xarray", "netcdf4") },
  async (t) => {
    const directory = await makeDirectory(t);
    askPython(WRITE, null, [directory]);
    const series = { chunks: { time: -1, lat: 4, lon: 4 } };
    const blocks = { chunks: { time: 16, lat: 5, lon: 20 }, compressor: { id: "zstd", level: 1 } };
    const air = { location: join(directory, "d*.nc"), concat: "time", encodings: { series, blocks } };
    await writeFiles(directory, { "config.json": { datasets: { air } } });
    const config = ["--config", join(directory, "config.json"), "--workers", "1"];
    const args = [...config, "--cache-dir", join(directory, "cache")];
    const compare = async (more: readonly string[]) => {
      const { url, stop } = await startProgram(t, { args: more });
      t.equal(askPython(COMPARE, null, [directory, `${url}/datasets/air`]), "");
      const chunk = await fetch(`${url}/datasets/air/encodings/series/zarr/t2m/0.2.4`);
      await stop();
      return chunk.headers.get("x-cache");
    };
    t.equal(await compare([...config, "--no-cache"]), "MISS");
    const unknown = await runProgram(["warm", ...args, "--encoding", "serie"]);
    t.equal(unknown.code, 2);
    t.match(unknown.stderr, "--encoding: expected one of series, blocks, received serie");
    const warmed = await runProgram(["warm", ...args, "--encoding", "series", "--variable", "t2m"]);
    t.equal(warmed.code, 0);
    // Fifteen of t2m, and the coordinates, which are as the dataset has them.
    t.match(countsOf(warmed.stdout), { made: 16, failed: 0 });
    t.equal(await compare(args), "HIT");
  },
);
