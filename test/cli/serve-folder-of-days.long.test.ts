import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import t from "tap";
import { clientMissing, PYTHON } from "../support/clients/require-client.js";
import {
  dayName,
  makeFolderOfDays,
  serveFolder,
  TWO_YEARS,
  until,
  valuesOfDay,
  writeNextDay,
} from "../support/folder-of-days.js";

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

interface ArrayDocument {
  readonly shape: readonly number[];
  readonly chunks: readonly number[];
}

t.test("a folder of daily files over two years is one dataset that grows with the next day", async (t) => {
  const folder = await makeFolderOfDays(t);
  const cache = join(folder, "../cache");
  const { url, run } = await serveFolder(t, [
    `sst=${folder}/**/*.nc`,
    "--concat",
    "time",
    "--cache-dir",
    cache,
  ]);
  t.match(
    run.stderr(),
    new RegExp(`"dataset":"sst","files":${TWO_YEARS},"dimension":"time","steps":${TWO_YEARS}`),
  );
  t.same(await (await fetch(`${url}/datasets`)).json(), ["sst"]);
  const store = `${url}/datasets/sst/zarr`;
  const documentOf = async (name: string) =>
    (await (await fetch(`${store}/${name}/.zarray`)).json()) as ArrayDocument;
  const { shape, chunks } = await documentOf("v");
  t.same(shape, [TWO_YEARS, 2]);
  t.same(chunks, [1, 2], "the chunks of the files");

  const chunkOf = async (day: number) => {
    const response = await fetch(`${store}/v/${day}.0`);
    const view = new DataView(await response.arrayBuffer());
    const values = response.ok ? [view.getFloat32(0, false), view.getFloat32(4, false)] : [];
    return { status: response.status, etag: response.headers.get("etag") ?? "", values };
  };
  const days = [0, 364, 365, TWO_YEARS - 1];
  const before = await Promise.all(days.map(chunkOf));
  t.same(
    before.map(({ values }) => values),
    days.map(valuesOfDay),
  );
  t.equal((await chunkOf(TWO_YEARS)).status, 404, "tomorrow is not there yet");

  await writeNextDay(folder);
  const grown = await until(
    () => documentOf("v"),
    (document) => document.shape[0] !== TWO_YEARS,
  );
  t.same(grown.shape, [TWO_YEARS + 1, 2]);
  t.same((await documentOf("time")).shape, [TWO_YEARS + 1]);
  t.same((await chunkOf(TWO_YEARS)).values, valuesOfDay(TWO_YEARS));
  t.same(await Promise.all(days.map(chunkOf)), before, "earlier days have the ETags that they had");
  const again = await fetch(`${store}/v/0.0`, { headers: { "If-None-Match": before[0]?.etag ?? "" } });
  t.equal(again.status, 304);
});

t.test("the same folder alone is a dataset for each file", async (t) => {
  const folder = await makeFolderOfDays(t);
  const { url, run } = await serveFolder(t, [`archive=${folder}`, "--no-cache", "--max-open-datasets", "3"]);
  const idsOf = async () => (await (await fetch(`${url}/datasets`)).json()) as readonly string[];
  const idOf = (day: number) => `archive~${dayName(day).replaceAll("/", "~")}`;
  const ids = await idsOf();
  t.equal(ids.length, TWO_YEARS);
  t.equal(ids[0], idOf(0));
  t.equal(ids.at(-1), idOf(TWO_YEARS - 1));
  for (const day of [0, 5, 100, 400, 0]) {
    const chunk = await fetch(`${url}/datasets/${idOf(day)}/zarr/v/0.0`);
    t.equal(new DataView(await chunk.arrayBuffer()).getFloat32(0, false), valuesOfDay(day)[0]);
  }
  await writeNextDay(folder);
  const grown = await until(idsOf, ({ length }) => length > TWO_YEARS);
  t.equal(grown.at(-1), idOf(TWO_YEARS));
  t.equal((await fetch(`${url}/datasets/${idOf(TWO_YEARS)}/zarr/.zmetadata`)).status, 200);
  t.match(run.stderr(), /"datasets listed"/);
});
