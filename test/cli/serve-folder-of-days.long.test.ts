import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import t from "tap";
import { clientMissing, PYTHON } from "../support/clients/require-client.js";
import { makeFolderOfDays, serveFolder, TWO_YEARS, until, writeNextDay } from "../support/folder-of-days.js";

/** Compares the dataset with the files, waits for the next day, and compares again. */
const SCRIPT = `
import glob, sys
import xarray as xr
url, folder = sys.argv[1:]
before = xr.open_zarr(url)
options = dict(combine="by_coords", data_vars="minimal", coords="minimal", compat="override", join="exact")
files = xr.open_mfdataset(sorted(glob.glob(folder + "/*/*.nc")), **options).load()
print(before.identical(files), before.sizes["time"], flush=True)
sys.stdin.readline()
last = xr.open_dataset(sorted(glob.glob(folder + "/*/*.nc"))[-1])
after = xr.open_zarr(url)
grown = xr.concat([files, last], "time", data_vars="minimal", coords="minimal", compat="override", join="exact")
print(after.identical(grown), after.sizes["time"], before.load().identical(files), flush=True)
`;

t.test(
  "daily files over two years are what xarray joins of them, while the next day's file arrives",
  { skip: clientMissing("xarray", "zarr", "fsspec", "dask", "netcdf4") },
  async (t) => {
    const folder = await makeFolderOfDays(t);
    const { url } = await serveFolder(t, [`sst=${folder}/*/*.nc`, "--concat", "time", "--no-cache"]);
    const store = `${url}/datasets/sst/zarr`;
    const python = spawn(PYTHON, ["-c", SCRIPT, store, folder], { stdio: ["pipe", "pipe", "inherit"] });
    const lines = createInterface(python.stdout)[Symbol.asyncIterator]();
    t.equal((await lines.next()).value, `True ${TWO_YEARS}`);
    await writeNextDay(folder);
    const document = async () => (await fetch(`${store}/v/.zarray`)).json() as Promise<{ shape: [number] }>;
    await until(document, ({ shape }) => shape[0] > TWO_YEARS);
    python.stdin.end("next\n");
    t.equal((await lines.next()).value, `True ${TWO_YEARS + 1} True`);
    t.same(await once(python, "exit"), [0, null]);
  },
);
