import { join } from "node:path";
import t from "tap";
import { askPython } from "../support/clients/ask-python.js";
import { commandOf, GENERATIONS } from "../support/clients/client-generation.js";
import { runCommand } from "../support/clients/fixtures.js";
import { clientMissing, clientMissingIn, PYTHON } from "../support/clients/require-client.js";
import { startServer } from "../support/servers/start-server.js";
import { makeDirectory } from "../support/write-store.js";

t.setTimeout(600_000);

/** Writes the same data as NetCDF-4 and NetCDF-3, in a folder of folders, and as Zarr stores beside it. */
const WRITE = `
import os, sys
import numpy as np, xarray as xr
time = np.arange("2020-01-01", "2020-01-05", dtype="datetime64[D]").astype("datetime64[ns]")
ds = xr.Dataset(
    {"t2m": (("time", "lat", "lon"), np.random.default_rng(1).normal(280, 10, (4, 300, 400)).astype("f4"))},
    {"time": time, "lat": np.linspace(-10, 10, 300), "lon": np.linspace(0, 40, 400)})
files = f"{sys.argv[1]}/files/2020"
os.makedirs(f"{files}/days")
ds.to_netcdf(f"{files}/days/four.nc", engine="netcdf4", encoding={"t2m": {"zlib": True, "chunksizes": (1, 100, 100)}})
ds.to_netcdf(f"{files}/three.nc", engine="scipy")
ds.to_zarr(f"{sys.argv[1]}/flat.zarr", consolidated=True)
ds.to_zarr(f"{sys.argv[1]}/nested.zarr", group="a/b", consolidated=True)
np.save(f"{sys.argv[1]}/values.npy", ds.t2m.values)
`;

/** Reads the files by byte ranges with each library. Prints what differs from the file. */
const READ_FILES = `
import json, sys
import fsspec, h5py, netCDF4, numpy as np, xarray as xr
from osgeo import gdal
gdal.UseExceptions()
job = json.load(sys.stdin)
wrong = []
def check(name, read, expected):
    try:
        if not np.array_equal(np.asarray(read()), expected): wrong.append(f"{name}: other values")
    except Exception as error: wrong.append(f"{name}: {error!r}")
def of_netcdf(url):
    with netCDF4.Dataset(f"{url}#mode=bytes") as file:
        file.set_auto_mask(False)
        return file["t2m"][:]
def of_h5py(url):
    with fsspec.open(url, "rb", block_size=100_000) as source, h5py.File(source) as file: return file["t2m"][1:3, 7:200:3, ::5]
for name, url in job["urls"].items():
    with xr.open_dataset(job["files"][name]) as file: expected = file.t2m.values
    if job["byteRanges"]: check(f"netCDF {name}", lambda: of_netcdf(url), expected)
    driver, inside = ("HDF5", "//t2m") if name == "four" else ("NETCDF", "t2m")
    raster = lambda: gdal.Open(f'{driver}:"/vsicurl/{url}":{inside}').ReadAsArray()
    check(f"GDAL {name}", lambda: raster() if name == "four" else raster()[:, ::-1], expected)
    if name == "four": check("h5py", lambda: of_h5py(url), expected[1:3, 7:200:3, ::5])
print("\\n".join(wrong), end="")
`;

/** Opens stores by names that end in .zarr, and by the engine that xarray guesses if netCDF4 is not installed. */
const READ_STORES = `
import json, sys
job = json.load(sys.stdin)
# xarray takes each URL for one of OPeNDAP if it is.
sys.modules["netCDF4"] = None
import numpy as np, xarray as xr
expected = np.load(job["values"])
wrong = []
for name, read in {
    "open_dataset": lambda: xr.open_dataset(job["store"]),
    "open_zarr": lambda: xr.open_zarr(job["store"]),
    "engine": lambda: xr.open_dataset(job["store"], engine="zarr", consolidated=True, chunks={}),
    "group": lambda: xr.open_dataset(job["tree"], engine="zarr"),
    "group of a store": lambda: xr.open_dataset(job["root"], group="a/b"),
}.items():
    try:
        if not np.array_equal(read().t2m.values, expected): wrong.append(f"{name}: other values")
    except Exception as error: wrong.append(f"{name}: {error!r}")
print("\\n".join(wrong), end="")
`;

/** Follows catalogs with Python's own XML, as clients that browse THREDDS do; prints ids and what their services answer. */
const BROWSE = `
import json, sys, urllib.request
import xml.etree.ElementTree as ET
from urllib.parse import urljoin
N = "{http://www.unidata.ucar.edu/namespaces/thredds/InvCatalog/v1.0}"
X = "{http://www.w3.org/1999/xlink}"
found = {}
def browse(url):
    catalog = ET.fromstring(urllib.request.urlopen(url).read())
    bases = {each.get("name"): (each.get("serviceType"), urljoin(url, each.get("base"))) for each in catalog.iter(f"{N}service")}
    for dataset in catalog.iter(f"{N}dataset"):
        if dataset.get("ID") is None: continue
        urls = {}
        for access in dataset.findall(f"{N}access"):
            kind, base = bases[access.get("serviceName")]
            urls[kind] = base + access.get("urlPath")
        with urllib.request.urlopen(urls["HTTPServer"]) as file: size = len(file.read())
        found[dataset.get("ID")] = [sorted(urls), size]
    for reference in catalog.iter(f"{N}catalogRef"): browse(urljoin(url, reference.get(f"{X}href")))
browse(json.load(sys.stdin))
print(json.dumps(found))
`;

for (const generation of GENERATIONS)
  t.test(
    `libraries read published files by ranges, and xarray the stores by their names (${generation})`,
    {
      skip:
        clientMissing("xarray", "netcdf4", "zarr") ||
        clientMissingIn(generation, "xarray", "zarr", "netcdf4", "h5py", "fsspec", "gdal"),
    },
    async (t) => {
      const root = await makeDirectory(t);
      askPython(WRITE, null, [root]);
      const common = { immutable: false, encoding: {}, variables: {} };
      const { url } = await startServer(t, {
        collections: [{ name: "archive", root: join(root, "files"), file: true, ...common }],
        datasets: ["flat", "nested"].map((id) => ({ id, location: join(root, `${id}.zarr`), ...common })),
      });
      const ask = async (script: string, job: unknown) => {
        const [python, args] = commandOf(generation, PYTHON, ["-c", script]);
        const { status, stdout, stderr } = await runCommand(python, args, JSON.stringify(job));
        t.equal(status, 0, stderr.slice(-2_000));
        return stdout;
      };
      const ids = { four: "archive~2020~days~four.nc", three: "archive~2020~three.nc" };
      const files = { four: join(root, "files/2020/days/four.nc"), three: join(root, "files/2020/three.nc") };
      const urls = Object.fromEntries(
        Object.entries(ids).map(([name, id]) => [name, `${url}/datasets/${id}/file`]),
      );
      // Debian 12 builds netCDF-C without byte ranges.
      const byteRanges = generation === "trixie";
      t.equal(await ask(READ_FILES, { urls, files, byteRanges }), "");
      const stores = { store: `${url}/datasets/flat.zarr`, root: `${url}/datasets/nested.zarr` };
      const job = { ...stores, tree: `${stores.root}/a/b`, values: join(root, "values.npy") };
      t.equal(await ask(READ_STORES, job), "");
      const browsed = JSON.parse(await ask(BROWSE, `${url}/catalog/archive/catalog.xml`));
      for (const id of Object.values(ids)) {
        const [services, size] = browsed[id] ?? [];
        t.same(services, ["HTTPServer", "OPENDAP", "Zarr"], id);
        t.ok(size > 0, id);
      }
    },
  );
