import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import t from "tap";
import { type AxisPart, type CellRun, type CodeAxis, selectionCode } from "../../src/usage/selection-code.js";
import { askPython } from "../support/clients/ask-python.js";
import { PACKAGE_ROOT } from "../support/clients/client-generation.js";
import { serveDatasets } from "../support/clients/fixtures.js";
import { clientMissing } from "../support/clients/require-client.js";

/** Writes the dataset and prints the coordinates of its axes: 32-bit latitudes that descend, 64-bit longitudes, times. */
const WRITE = `
import json, sys
import numpy as np, xarray as xr
rng = np.random.default_rng(7)
values = rng.normal(280, 9, (6, 25, 36))
values[2, 3, 4] = np.nan
dims = ("time", "lat", "lon")
coords = {"time": np.datetime64("2013-01-01", "ns") + np.arange(6) * np.timedelta64(6, "h"),
          "lat": (40 - np.arange(25) * 0.1).astype("f4"), "lon": np.arange(36) * 10.0}
root = xr.Dataset({"air": (dims, values.astype("f4")), "packed": (dims, values)}, coords)
deep = xr.Dataset({"count": (("lon", "member", "lat"), rng.integers(0, 9, (36, 3, 25))), "one": ((), 5.5)}, {k: coords[k] for k in ("lat", "lon")})
root.to_zarr(sys.argv[1], consolidated=True, encoding={"packed": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32767}})
deep.to_zarr(sys.argv[1], mode="a", group="model/deep", consolidated=True)
print(json.dumps({"lat": coords["lat"].astype(float).tolist(), "lon": coords["lon"].tolist(), "time": [str(each) for each in coords["time"].astype("M8[s]")]}))
`;

/** Runs the code of xarray and GDAL, and compares what each client read with the same cells of the store, read in place. */
const COMPARE = `
import json, os, subprocess, sys
import numpy as np, xarray as xr
from osgeo import gdal
gdal.UseExceptions()
job = json.load(sys.stdin)
os.chdir(job["directory"])
differences = []
def check(name, got, wanted):
    got = np.asarray(got, dtype=float)
    if got.shape != wanted.shape or not np.allclose(got, wanted, rtol=1e-6, equal_nan=True):
        differences.append(f"{name}: {got.shape} {got.ravel()[:4]} instead of {wanted.shape} {wanted.ravel()[:4]}")
def joined(parts):
    return np.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]
def run(code):
    names = {}
    exec(code, names)
    return names
def raster(path):
    # A band does not keep its dataset open.
    dataset = gdal.Open(path)
    band = dataset.GetRasterBand(1)
    stored = band.ReadAsArray().astype(float)
    if band.GetNoDataValue() is not None: stored[stored == band.GetNoDataValue()] = np.nan
    return stored * (band.GetScale() or 1) + (band.GetOffset() or 0)
for case in job["cases"]:
    group, _, name = case["path"].rpartition("/")
    array = xr.open_zarr(job["store"], group=group or None)[name]
    cells = {}
    for dim, part in zip(array.dims, case["parts"]):
        if isinstance(part, list): cells[dim] = [index for begin, end in part for index in range(begin, end)]
        elif part != "all": cells[dim] = part
    wanted = array.isel(cells).values.astype(float)
    label = json.dumps([case["path"], case["parts"]])
    check("xarray " + label, run(case["xarray"])["data"].values, wanted)
    names = run(case["zarrPython"])
    if case["path"] == "packed": parts = names["values"] if "parts" in names else [names["values"]]
    else: parts = names.get("parts", [names.get("data")])
    check("zarr-python " + label, joined(parts), wanted)
    check("zarrita " + label, joined([np.array(values, dtype=float).reshape(shape) for values, shape in case["zarrita"]]), wanted)
    if case["language"] == "shell":
        subprocess.run(["sh", "-ec", case["gdal"]], check=True, stdout=subprocess.DEVNULL)
        files = sorted(file for file in os.listdir(".") if file.endswith(".tif"))
        check("GDAL " + label, joined([raster(file) for file in files]), wanted)
        for file in files: os.remove(file)
    else:
        names = run(case["gdal"])
        check("GDAL " + label, joined(names.get("parts", [names.get("data")])), wanted)
print(json.dumps(differences))
`;

const PLANES = [
  ["time", 6],
  ["lat", 25],
  ["lon", 36],
] as const;

/** Dimensions and lengths of the variables. */
const VARIABLES: Readonly<Record<string, readonly (readonly [dim: string, length: number])[]>> = {
  air: PLANES,
  packed: PLANES,
  "model/deep/count": [
    ["lon", 36],
    ["member", 3],
    ["lat", 25],
  ],
  "model/deep/one": [],
};

/** Across the seam: the last columns, then the first ones. */
const SEAM: readonly CellRun[] = [
  [33, 36],
  [0, 4],
];

const CASES: readonly (readonly [path: string, ...parts: AxisPart[]])[] = [
  ["air", 2, "all", "all"],
  ["air", 2, [[3, 9]], [[1, 30]]],
  ["air", 5, [[0, 1]], [[35, 36]]],
  ["air", 1, [[20, 25]], SEAM],
  ["air", "all", 3, 4],
  ["air", [[1, 4]], [[24, 25]], 0],
  ["air", [[2, 3]], 7, [[8, 12]]],
  ["packed", 2, [[3, 9]], [[1, 30]]],
  ["packed", "all", 3, 4],
  ["model/deep/count", "all", 1, "all"],
  ["model/deep/count", [[2, 5]], 2, [[20, 25]]],
  ["model/deep/one"],
];

t.test(
  "the code that is shown reads the selected cells with each client",
  { skip: clientMissing("xarray", "gdal", "gdalinfo") },
  async (t) => {
    // Below the package, where Node.js finds zarrita.
    await mkdir(join(PACKAGE_ROOT, ".build"), { recursive: true });
    const directory = await mkdtemp(join(PACKAGE_ROOT, ".build", "selection-code-"));
    t.teardown(() => rm(directory, { recursive: true, force: true }));
    const store = join(directory, "store.zarr");
    const values = JSON.parse(askPython(WRITE, null, [store]));
    const coordinates: Readonly<Record<string, CodeAxis["coordinate"]>> = {
      time: { dates: values.time },
      lat: { numbers: values.lat },
      lon: { numbers: values.lon },
    };
    const server = await serveDatasets(t, { datasets: { store: { location: store } }, directory });
    t.teardown(() => server.stop());

    const cases = [];
    for (const [index, [path, ...parts]] of CASES.entries()) {
      const dims = VARIABLES[path] ?? [];
      const variable = {
        path,
        axes: dims.map(([dim, length], axis) => ({
          dim,
          length,
          part: parts[axis] ?? "all",
          coordinate: coordinates[dim],
        })),
        packing: path === "packed" ? { missing: [-32767], scale: 0.01, offset: 273.15 } : undefined,
        isBigInt: path.endsWith("count"),
      };
      const [xarray, zarrPython, zarrita, gdal] = selectionCode({
        url: server.storeUrl("store"),
        version: 2,
        variable,
      });
      const file = join(directory, `${index}.mjs`);
      await writeFile(file, `${zarrita?.code}\n${RESULT}`);
      const { result } = await import(pathToFileURL(file).href);
      cases.push({
        path,
        parts,
        xarray: xarray?.code,
        zarrPython: zarrPython?.code,
        zarrita: result,
        gdal: gdal?.code,
        language: gdal?.language,
      });
    }
    const differences = JSON.parse(askPython(COMPARE, { directory, store, cases }));
    t.strictSame(differences, []);
  },
);

/** Ends a module of zarrita's code: the values and shape of each of its parts. */
const RESULT = `
const plain = (items) => Array.from(typeof items === "object" ? items : [items], (item) => (Number.isNaN(item) ? null : Number(item)));
export const result =
  typeof parts !== "undefined"
    ? parts.map(({ data, shape }) => [plain(data), shape])
    : [[plain(typeof values !== "undefined" ? values : data), typeof shape !== "undefined" ? shape : []]];
`;
