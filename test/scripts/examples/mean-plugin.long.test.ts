import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { askPython } from "../../support/clients/ask-python.js";
import { clientMissing } from "../../support/clients/require-client.js";
import { CHECKOUT, installPacked, PLUGINS } from "./install-packed.js";
import { npxZpublish } from "./npx-zpublish.js";

t.setTimeout(600_000);

/** Writes a store and prints, of each variable and dimension, the mean that xarray reads from it. */
const WRITE = `
import json, sys
import numpy as np, xarray as xr
random = np.random.default_rng(18)
shape = (10, 7, 9)
dims = ("time", "lat", "lon")
wave = random.normal(280, 9, shape)
holes = np.where(random.random(shape) < 0.2, np.nan, wave)
holes[:, 2, 3] = np.nan
counts = random.integers(0, 200, shape)
full = xr.Dataset(
    {
        "wave": (dims, holes.astype("f4"), {"units": "K"}),
        "packed": (dims, holes, {"units": "K"}),
        "counts": (dims, counts),
        "marked": (dims, counts.astype("i4")),
        "bytes": (dims, counts.astype("u1")),
        "deep": (dims, wave),
    },
    {"time": np.arange(10) * 6.0, "lat": np.linspace(-30, 30, 7), "lon": np.arange(9) * 2.5},
)
full["time"].attrs["units"] = "hours since 2020-01-01"
full["lat"].attrs["units"] = "degrees_north"
chunks = {"chunks": (3, 4, 5)}
encoding = {name: dict(chunks) for name in full.data_vars}
encoding["packed"].update(dtype="i2", scale_factor=0.01, add_offset=273.15, _FillValue=-32768)
encoding["counts"].update(dtype=">i8")
encoding["marked"].update(dtype="i4", _FillValue=7)
encoding["bytes"].update(dtype="i1", _Unsigned="true", _FillValue=np.int8(-1))
full.to_zarr(sys.argv[1], encoding=encoding, consolidated=True)
full.isel(time=slice(0, 4)).to_zarr(sys.argv[1], group="part", consolidated=False)
read = xr.open_zarr(sys.argv[1], decode_times=False)
means = []
def tell(name, dimension, query, array):
    mean = array.mean(dimension).transpose(*[each for each in dims if each != dimension])
    values = mean.values.astype("f8")
    means.append(dict(name=name, dimension=dimension, query=query, dims=mean.dims, shape=values.shape,
        values=[None if np.isnan(each) else each for each in values.ravel().tolist()],
        coordinates={each: mean[each].values.tolist() for each in mean.dims}))
for name in full.data_vars:
    for dimension in dims:
        tell(name, dimension, "", read[name])
    tell(name, "time", "&isel=time:2:8&isel=lon:4:9&isel=lat:3:", read[name].isel(time=slice(2, 8), lon=slice(4, 9), lat=slice(3, None)))
tell("part/wave", "time", "", xr.open_zarr(sys.argv[1], group="part", decode_times=False, consolidated=False)["wave"])
print(json.dumps(means))
`;

/** Hours since 2020-01-01 of a time in ISO 8601. */
function hoursOf(time: string): number {
  return (Date.parse(time.endsWith("Z") ? time : `${time}Z`) - Date.UTC(2020, 0)) / 3_600_000;
}

interface Expected {
  readonly name: string;
  readonly dimension: string;
  readonly query: string;
  readonly dims: readonly string[];
  readonly values: readonly (number | null)[];
  readonly coordinates: Readonly<Record<string, readonly number[]>>;
}

interface Answer {
  readonly units: string | null;
  readonly dims: readonly string[];
  /** In C order. */
  readonly values: readonly (number | null)[];
  /** Labels by dimension. */
  readonly coordinates: Readonly<Record<string, readonly string[]>>;
}

t.test("the examples are right by the types of the public interface", async (t) => {
  const tsc = join(CHECKOUT, "node_modules/typescript/bin/tsc");
  const run = spawnSync(process.execPath, [tsc, "-p", PLUGINS], { encoding: "utf8" });
  t.equal(run.stdout, "");
});

t.test(
  "zpublish-mean, installed beside zpublish, answers with the means that xarray computes",
  { skip: clientMissing("xarray", "zarr") },
  async (t) => {
    const folder = await installPacked(t, "zpublish-mean");
    const expected = JSON.parse(askPython(WRITE, null, [join(folder, "air.zarr")])) as Expected[];
    const { url } = await npxZpublish(t, folder, ["air.zarr", "--plugin", "zpublish-mean"]);
    const ask = (name: string, query: string) => fetch(`${url}/datasets/air/mean/${name}?${query}`);
    for (const { name, dimension, query, dims, values, coordinates } of expected) {
      const title = `${name} over ${dimension}${query}`;
      const response = await ask(name, `dimension=${dimension}${query}`);
      t.equal(response.status, 200, title);
      const answer = (await response.json()) as Answer;
      t.same(answer.dims, dims, title);
      const means = answer.values;
      t.same(
        means.map((value) => value === null),
        values.map((value) => value === null),
        title,
      );
      // xarray sums float32 as float32.
      const errors = means.map((value, at) => Math.abs((value ?? 0) - (values[at] ?? 0)));
      t.ok(Math.max(...errors) < 2e-4, `${title}: at most ${Math.max(...errors)} apart`);
      for (const [dim, labels] of Object.entries(answer.coordinates))
        t.same(labels.map(dim === "time" ? hoursOf : Number), coordinates[dim], `${title}: ${dim}`);
      const again = await fetch(response.url, {
        headers: { "If-None-Match": response.headers.get("etag") ?? "" },
      });
      t.equal(again.status, 304);
    }
    t.equal(((await (await ask("wave", "dimension=time")).json()) as Answer).units, "K");

    const refusals: readonly (readonly [query: string, says: RegExp])[] = [
      ["", /Expected one of time, lat, lon, received ''/],
      ["dimension=depth", /received 'depth'/],
      ["dimension=time&dimension=lat", /Expected the parameter once, received 'lat'/],
      ["dimension=time&step=2", /Expected one of dimension, isel, received 'step'/],
      ["dimension=time&isel=time:0:11", /Expected name:begin:end within one of .*, received 'time:0:11'/],
      ["dimension=time&isel=lat:3:3", /received 'lat:3:3'/],
      ["dimension=time&isel=level:0:1", /Expected name:begin:end/],
    ];
    for (const [query, says] of refusals) {
      const response = await ask("wave", query);
      t.equal(response.status, 422, query);
      t.match(await response.text(), says);
    }
    t.equal((await ask("none", "dimension=time")).status, 404);
    t.match(await (await fetch(`${url}/openapi.json`)).text(), "/datasets/{dataset_id}/mean/{var}");
    const { version } = JSON.parse(readFileSync(join(PLUGINS, "zpublish-mean/package.json"), "utf8"));
    t.match(await (await fetch(`${url}/plugins`)).json(), { mean: { path: "zpublish-mean", version } });
  },
);

/** Writes a store and prints the weighted mean that xarray reads of each box of it. */
const WRITE_MAPS = `
import json, sys
import numpy as np, xarray as xr
random = np.random.default_rng(25)
dims = ("time", "lat", "lon")
values = np.where(random.random((5, 13, 24)) < 0.1, np.nan, random.normal(280, 9, (5, 13, 24)))
full = xr.Dataset(
    {"t": (dims, values, {"units": "K"}), "zonal": (dims[:2], values[:, :, 0])},
    {"time": np.arange(5) * 24, "lat": np.linspace(90, -90, 13), "lon": np.arange(24) * 15.0},
)
full["time"].attrs["units"] = "hours since 2020-01-01"
full["lat"].attrs["units"] = "degrees_north"
full["lon"].attrs["units"] = "degrees_east"
full.to_zarr(sys.argv[1], consolidated=True, encoding={"t": {"chunks": (2, 5, 7), "dtype": "i2", "scale_factor": 0.01,
    "add_offset": 273.15, "_FillValue": -32768}})
read = xr.open_zarr(sys.argv[1])["t"]
boxes = {
    "": read,
    "south=-30&north=45&west=15&east=90": read.sel(lat=slice(45, -30), lon=slice(15, 90)),
    "south=0&west=-30&east=30": read.sel(lat=slice(90, 0), lon=[330, 345, 0, 15, 30]),
}
print(json.dumps({query: box.weighted(np.cos(np.deg2rad(box.lat))).mean(("lat", "lon")).values.tolist() for query, box in boxes.items()}))
`;

t.test(
  "zpublish-area-mean answers with the weighted means that xarray computes",
  { skip: clientMissing("xarray", "zarr") },
  async (t) => {
    const folder = await installPacked(t, "zpublish-area-mean");
    const expected = JSON.parse(askPython(WRITE_MAPS, null, [join(folder, "maps.zarr")])) as Record<
      string,
      readonly number[]
    >;
    const { url } = await npxZpublish(t, folder, ["maps.zarr", "--plugin", "zpublish-area-mean"]);
    const ask = (name: string, query: string) => fetch(`${url}/datasets/maps/area-mean/${name}?${query}`);
    for (const [query, means] of Object.entries(expected)) {
      const response = await ask("t", query);
      t.equal(response.status, 200, query);
      const answer = (await response.json()) as Answer;
      t.equal(answer.units, "K");
      t.same(answer.coordinates.time?.map(hoursOf), [0, 24, 48, 72, 96]);
      const errors = means.map((mean, at) => Math.abs(mean - (answer.values[at] ?? Number.NaN)));
      t.ok(Math.max(...errors) < 1e-3, `${query}: at most ${Math.max(...errors)} apart`);
    }
    for (const [name, query, status, says] of [
      ["zonal", "", 422, /Expected latitude and longitude as last dimensions, received 'time, lat'/],
      ["t", "south=46&north=47", 422, /Expected a box within .*, received 'south=46&north=47'/],
      ["t", "south=abc", 422, /abc/],
      ["t", "top=1", 422, /Expected one of south, north, west, east, received 'top'/],
      ["none", "", 404, /Variable 'none' not found in dataset 'maps'/],
    ] as const) {
      const response = await ask(name, query);
      t.equal(response.status, status, query);
      t.match(await response.text(), says);
    }
    const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as {
      paths: Readonly<
        Record<string, { get: { parameters: readonly { name: string; description: string }[] } }>
      >;
    };
    const parameters = paths["/datasets/{dataset_id}/area-mean/{var}"]?.get.parameters ?? [];
    t.match(parameters[0], { name: "south", description: /^Southern edge of the box/ });
  },
);
