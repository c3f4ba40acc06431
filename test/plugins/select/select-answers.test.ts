import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { askPython } from "../../support/clients/ask-python.js";
import {
  type AnswerCase,
  arrowColumns,
  differingAnswers,
  writeAnswer,
} from "../../support/clients/compare-selections.js";
import { clientMissing } from "../../support/clients/require-client.js";
import { startServer } from "../../support/servers/start-server.js";

/** Writes the files. */
const WRITE = `
import sys
import numpy as np, xarray as xr
folder = sys.argv[1]
rng = np.random.default_rng(1)
n = dict(time=10, lat=7, lon=12)
def air(calendar="standard", start="2000-01-01", freq="6H"):
    time = xr.cftime_range(start, periods=10, freq=freq, calendar=calendar) if calendar != "standard" else np.datetime64("2000-01-01T00:00") + np.arange(10) * np.timedelta64(6, "h")
    t2m = rng.normal(280, 10, (10, 7, 12))
    t2m[0, 0, :3] = np.nan
    return xr.Dataset(
        {"t2m": (("time", "lat", "lon"), t2m, {"units": "K", "grid_mapping": "crs"}),
         "sea": (("lat", "lon"), rng.integers(0, 2, (7, 12)).astype("i1")),
         "mean": (("time",), rng.normal(0, 1, 10).astype("f4")),
         "turned": (("lon", "time"), rng.normal(0, 1, (12, 10)).astype("f4")),
         "crs": ((), 7)},
        coords={"time": time, "lat": ("lat", np.linspace(75, 15, 7).astype("f4"), {"units": "degrees_north"}),
                "lon": ("lon", np.arange(0, 360, 30.0), {"units": "degrees_east"}),
                "height": ((), 2.0), "band": ("lat", list("abcdefg"))},
        attrs={"title": "air", "count": 3})
packed = {"t2m": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32767, "zlib": True, "chunksizes": (3, 4, 5)}}
air().to_netcdf(f"{folder}/packed.nc", encoding=packed, unlimited_dims=["time"])
air("noleap", "2001-02-25", "D").drop_vars("turned").to_netcdf(f"{folder}/noleap.nc", format="NETCDF3_64BIT", unlimited_dims=["time"])
air().drop_vars("turned").assign(count=("time", (np.arange(10) + 2**60).astype("i8")), flag=("time", np.arange(10) % 2 == 0), name=("lon", [f"p{i}" * (i % 3) for i in range(12)])) \\
    .chunk({"time": 4, "lat": 7, "lon": 5}).to_zarr(f"{folder}/store.zarr", consolidated=True)
root = xr.Dataset({"top": ("lat", np.arange(3.0))}, coords={"lat": [10.0, 20.0, 30.0]})
root.to_netcdf(f"{folder}/groups.nc")
for name, length in (("a", 4), ("b", 5)):
    child = xr.Dataset({"t2m": (("time", "lat"), rng.normal(0, 1, (length, 3)).astype("f4"))},
        coords={"time": np.datetime64("2000-01-01", "ns") + np.arange(length) * np.timedelta64(1, "D"), "lat": [10.0, 20.0, 30.0]})
    child.to_netcdf(f"{folder}/groups.nc", group=name, mode="a")
y, x = np.mgrid[0:8, 0:9]
ice = xr.Dataset({"ice": (("time", "y", "x"), rng.normal(0, 1, (2, 8, 9)).astype("f4"), {"coordinates": "nav_lat nav_lon"})},
    coords={"nav_lat": (("y", "x"), 60 + y + 0.1 * x, {"units": "degrees_north"}), "nav_lon": (("y", "x"), (350 + 2 * x + 0.2 * y) % 360, {"units": "degrees_east"})})
ice.to_netcdf(f"{folder}/curved.nc")
degrees = {"units": "degrees"}
rotated = ice.isel(time=0, drop=True).rename(y="rlat", x="rlon").assign_coords(
    rlat=("rlat", 50 + 2.0 * np.arange(8), {"standard_name": "grid_latitude", **degrees}), rlon=("rlon", np.arange(-4.0, 5.0), {"standard_name": "grid_longitude", **degrees}))
rotated.to_netcdf(f"{folder}/bare.nc")
rotated["pole"] = ((), 0, {"grid_mapping_name": "rotated_latitude_longitude", "grid_north_pole_latitude": 39.25, "grid_north_pole_longitude": -162.0})
rotated["ice"].attrs["grid_mapping"] = "pole"
rotated.to_netcdf(f"{folder}/rotated.nc")
`;

interface Case {
  readonly dataset: string;
  readonly query: string;
  /** Python. */
  readonly code: string;
  /** Labels of the answer that are not the stored ones, by dimension. */
  readonly labels?: Readonly<Record<string, readonly number[]>>;
  readonly forms?: readonly string[];
  readonly group?: string;
  readonly variable?: string;
}

const CASES: readonly Case[] = ["packed", "noleap", "store"].flatMap((dataset): Case[] => {
  const times =
    dataset === "noleap" ? ["2001-02-26", "2001-03-01"] : ["2000-01-01T06:00", "2000-01-02T12:00"];
  const label = (time: string | undefined) =>
    dataset === "noleap" ? `"${time}"` : `np.datetime64("${time}")`;
  const [from, to] = times;
  return [
    { dataset, query: "var=t2m", code: 'ds[["t2m"]]' },
    {
      dataset,
      query: "var=t2m&var=sea&var=mean&isel.lat=1:3&isel.lon=::5",
      code: 'ds[["t2m", "sea", "mean"]].isel(lat=slice(1, 3), lon=slice(None, None, 5))',
    },
    { dataset, query: "var=t2m&lat=45", code: 'ds[["t2m"]].sel(lat=45)' },
    {
      dataset,
      query: "var=t2m&lat=nearest::41&lon=nearest::8.6",
      code: 'ds[["t2m"]].sel(lat=41, lon=8.6, method="nearest")',
    },
    { dataset, query: "var=t2m&lat=60/40", code: 'ds[["t2m"]].sel(lat=slice(60, 40))' },
    {
      dataset,
      query: "var=t2m&lon=-45/45",
      code: 'ds[["t2m"]].isel(lon=[11, 0, 1])',
      labels: { lon: [-30, 0, 30] },
    },
    { dataset, query: "var=t2m&lon=-30", code: 'ds[["t2m"]].sel(lon=330)' },
    { dataset, query: `var=t2m&time=${from}/${to}`, code: `ds[["t2m"]].sel(time=slice("${from}", "${to}"))` },
    {
      dataset,
      query: `var=t2m&time=${from}/..&step.time=3`,
      code: `ds[["t2m"]].sel(time=slice("${from}", None)).isel(time=slice(None, None, 3))`,
    },
    {
      dataset,
      query: `var=mean&time=${to}&time=${from}`,
      code: `ds[["mean"]].isel(time=[${dataset === "noleap" ? "4, 1" : "6, 1"}])`,
    },
    {
      dataset,
      query: "var=t2m&isel.time=-1&isel.lat=::-2&isel.lon=3&isel.lon=0",
      code: 'ds[["t2m"]].isel(time=-1, lat=slice(None, None, -2), lon=[3, 0])',
    },
    {
      dataset,
      query: `time=${from}`,
      code: `ds.drop_vars(["sea", "crs", "name"], errors="ignore").sel(time=${label(from)})${dataset === "noleap" ? ".squeeze()" : ""}`,
      forms: ["nc", "json"],
    },
  ];
});

const MORE: readonly Case[] = [
  {
    dataset: "packed",
    query: "var=t2m&var=turned&isel.time=2:5",
    code: 'ds[["t2m", "turned"]].isel(time=slice(2, 5))',
  },
  { dataset: "packed", query: "var=mean&time=2000-01-02", code: 'ds[["mean"]].sel(time="2000-01-02")' },
  {
    dataset: "packed",
    query: "var=t2m&isel.lat=0&isel.lon=0&isel.time=0",
    code: 'ds[["t2m"]].isel(lat=0, lon=0, time=0)',
  },
  {
    dataset: "store",
    query: "var=count&var=flag&isel.time=1:4",
    code: 'ds[["count", "flag"]].isel(time=slice(1, 4))',
  },
  {
    dataset: "store",
    query: "var=name&lon=../90",
    code: 'ds[["name"]].sel(lon=slice(None, 90))',
    forms: ["json", "csv", "nc"],
  },
  {
    dataset: "groups",
    query: "var=a/t2m&isel.time=1:3&lat=20",
    code: 'ds[["t2m"]].isel(time=slice(1, 3)).sel(lat=20)',
    group: "a",
    forms: ["json", "csv", "nc"],
  },
  {
    dataset: "groups",
    query: "var=b&isel.lat=0:2",
    code: 'ds[["t2m"]].isel(lat=slice(0, 2))',
    group: "b",
    forms: ["nc", "json"],
  },
  {
    dataset: "curved",
    query: "var=ice&lat=62/64.5&lon=-4/1",
    code: 'ds[["ice"]].isel(y=slice(*BOX[0]), x=slice(*BOX[1]))',
  },
  {
    dataset: "curved",
    query: "var=ice&nav_lat=nearest::63.2&nav_lon=nearest::-1.1",
    code: 'ds[["ice"]].isel(y=CELL[0], x=CELL[1])',
  },
  ...["rotated", "bare"].flatMap((dataset): Case[] => [
    {
      ...{ dataset, query: "var=ice&lat=62/64.5&lon=356/1" },
      code: 'ds[["ice"]].isel(rlat=slice(*BOX[0]), rlon=slice(*BOX[1]))',
    },
    {
      ...{ dataset, query: "var=ice&lat=nearest::63.2&lon=nearest::358.9" },
      code: 'ds[["ice"]].isel(rlat=CELL[0], rlon=CELL[1])',
    },
    {
      ...{ dataset, query: "var=ice&rlat=54/58&rlon=nearest::1.2" },
      code: 'ds[["ice"]].sel(rlat=slice(54, 58)).sel(rlon=1.2, method="nearest")',
    },
  ]),
].map((each) => ({
  ...each,
  code: each.code
    .replaceAll(
      "BOX",
      "(lambda m: [(np.where(m.any(1))[0][0], np.where(m.any(1))[0][-1] + 1), (np.where(m.any(0))[0][0], np.where(m.any(0))[0][-1] + 1)])((lambda la, lo: (la >= 62) & (la <= 64.5) & (lo >= -4) & (lo <= 1))(ds.nav_lat.values, (ds.nav_lon.values + 180) % 360 - 180))",
    )
    .replaceAll(
      "CELL",
      "(lambda d: np.unravel_index(d.argmin(), d.shape))((ds.nav_lat.values - 63.2) ** 2 + (((ds.nav_lon.values + 180) % 360 - 180 + 1.1) * np.cos(np.radians(63.2))) ** 2)",
    ),
}));

const PLACES = "lat,lon\n61,8.6\n15,-29\n39.9,359\n";
const AT = 'lat=xr.DataArray([61, 15, 39.9], dims="point"), lon=xr.DataArray([8.6, 331, 359], dims="point")';
const CELLS =
  "[np.unravel_index(((ds.nav_lat.values - a) ** 2 + (((ds.nav_lon.values - b + 180) % 360 - 180) * np.cos(np.radians(a))) ** 2).argmin(), ds.nav_lat.shape) for a, b in ((61.2, -5), (66.9, 4.1))]";
interface PointCase extends Case {
  readonly csv: string;
}

/** Points, in CSV. The seam of longitudes lies between 330 and 360: 359 is nearest to 0. */
const POINTS = [
  {
    dataset: "packed",
    query: "var=t2m&isel.time=3&method=nearest",
    csv: PLACES,
    code: `ds[["t2m"]].isel(time=3).sel(${AT.replace("359], ", "0], ")}, method="nearest")`,
  },
  {
    dataset: "packed",
    query: "var=t2m&var=sea&method=nearest&time=2000-01-02T06:00",
    csv: PLACES,
    code: `ds[["t2m", "sea"]].isel(time=5).sel(${AT.replace("359], ", "0], ")}, method="nearest")`,
  },
  {
    dataset: "curved",
    query: "var=ice&isel.time=1&method=nearest",
    csv: "lat,lon\n61.2,-5\n66.9,4.1\n",
    code: `(lambda c: ds[["ice"]].isel(time=1, y=xr.DataArray([i for i, _ in c], dims="point"), x=xr.DataArray([j for _, j in c], dims="point")))(${CELLS})`,
  },
  {
    dataset: "packed",
    query: "var=t2m&var=sea&var=mean&method=nearest",
    csv: PLACES,
    code: `ds[["t2m", "sea", "mean"]].sel(${AT.replace("359], ", "0], ")}, method="nearest")`,
    forms: ["nc", "json", "csv"],
  },
  {
    dataset: "packed",
    query: "var=turned&method=nearest&time=2000-01-02/..&step.time=2",
    csv: PLACES.replace(/,/g, ";").replace(/^.*?;(.*)$/gm, "$1"),
    code: `ds[["turned"]].sel(time=slice("2000-01-02", None)).isel(time=slice(None, None, 2)).sel(lon=xr.DataArray([8.6, 331, 0], dims="point"), method="nearest")`,
    forms: ["nc", "json", "csv"],
  },
  {
    dataset: "store",
    query: "var=t2m&var=name&var=count",
    csv: "time,lon\n2000-01-01T06:00,30\n2000-01-02,0\n2000-01-01T06:00,330\n",
    code: `ds[["t2m", "name", "count"]].isel(time=xr.DataArray([1, 4, 1], dims="point"), lon=xr.DataArray([1, 0, 11], dims="point"))`,
    forms: ["nc", "json"],
  },
  {
    dataset: "curved",
    query: "var=ice&method=nearest",
    csv: "lat,lon\n61.2,-5\n66.9,4.1\n",
    code: `(lambda c: ds[["ice"]].isel(y=xr.DataArray([i for i, _ in c], dims="point"), x=xr.DataArray([j for _, j in c], dims="point")))(${CELLS})`,
    forms: ["nc", "json", "csv"],
  },
].flatMap(({ forms = ["nc", "json"], ...each }: PointCase) => forms.map((form) => ({ ...each, form })));

const FILES: Readonly<Record<string, string>> = {
  packed: "packed.nc",
  noleap: "noleap.nc",
  store: "store.zarr",
  groups: "groups.nc",
  curved: "curved.nc",
  rotated: "rotated.nc",
  bare: "bare.nc",
};

t.test(
  "answers are what xarray selects from the same file",
  { skip: clientMissing("xarray", "netcdf4") },
  async (t) => {
    const folder = t.testdir();
    askPython(WRITE, null, [folder]);
    const datasets = Object.entries(FILES).map(([id, name]) => ({
      ...{ id, location: join(folder, name), immutable: false, encoding: {}, variables: {} },
    }));
    const { url } = await startServer(t, { datasets });
    const asked: AnswerCase[] = [];
    for (const [
      index,
      {
        dataset,
        query,
        code,
        labels = {},
        forms = ["nc", "json", "csv", "arrow", "npy"],
        group,
        variable = "t2m",
      },
    ] of [...CASES, ...MORE].entries()) {
      for (const form of forms) {
        if (form === "npy" && query.split("var=").length !== 2) continue;
        const response = await fetch(`${url}/datasets/${dataset}/select?${query}&f=${form}`);
        const bytes = Buffer.from(await response.arrayBuffer());
        t.equal(
          response.status,
          200,
          `${dataset} ${query} ${form} ${response.status === 200 ? "" : bytes.toString()}`,
        );
        const answer = join(folder, `${index}.${form}`);
        await writeAnswer(answer, form, bytes);
        const file = join(folder, FILES[dataset]!);
        const name = /var=([^&/]*\/)?([^&]*)/.exec(query)?.[2] ?? variable;
        const engine = dataset === "store" ? "zarr" : dataset === "noleap" ? "scipy" : "netcdf4";
        asked.push({
          query: `${dataset}?${query}`,
          code,
          labels,
          form,
          answer,
          file,
          engine,
          group: group ?? null,
          prefix: group === undefined ? "" : `${group}_`,
          variable: name,
        });
      }
    }
    for (const [index, { dataset, query, csv, code, form }] of POINTS.entries()) {
      const headers = { "content-type": "text/csv" };
      const response = await fetch(`${url}/datasets/${dataset}/select?${query}&f=${form}`, {
        ...{ method: "POST", headers, body: csv },
      });
      t.equal(response.status, 200, `${query} ${form}`);
      const answer = join(folder, `point${index}.${form}`);
      await writeAnswer(answer, form, Buffer.from(await response.arrayBuffer()));
      const file = join(folder, FILES[dataset]!);
      asked.push({
        query,
        code,
        form,
        answer,
        file,
        engine: dataset === "store" ? "zarr" : "netcdf4",
        group: null,
        prefix: "",
        variable: "t2m",
      });
    }
    t.strictSame(differingAnswers(asked), []);
  },
);

const WRITE_DATES = `
import sys
import numpy as np, zarr
root = zarr.open_group(sys.argv[1], mode="w")
for name, values, fill in [("lat", np.array([60.0, 50.0, 40.0]), None), ("seen", np.array([0, 5, 7], "<M8[s]"), 0), ("day", np.array([0, 5, 7], "<M8[D]"), "NaT"),
                           ("exact", np.array([1, 1500000000000000001, 3], "<M8[ns]"), None), ("took", np.array([1, 2, 3], "<m8[s]"), None)]:
    array = root.create_dataset(name, shape=3, dtype=values.dtype, fill_value=fill)
    array[...] = values
    array.attrs.put({"_ARRAY_DIMENSIONS": ["lat"]})
`;
const READ_DATES = `
import json, sys
import numpy as np, xarray as xr
found = xr.open_dataset(sys.argv[1], decode_timedelta=True)
json.dump({name: [str(each).replace(".000000000", "") for each in found[name].values] for name in found.variables}, sys.stdout)
`;

t.test(
  "dates of points outside are missing in every format",
  { skip: clientMissing("xarray") },
  async (t) => {
    const folder = t.testdir();
    const location = join(folder, "dates.zarr");
    askPython(WRITE_DATES, null, [location]);
    const dataset = { ...{ id: "d", location, immutable: false, encoding: {} }, variables: {} };
    const { url } = await startServer(t, { datasets: [dataset] });
    const ask = (form: string, body = "lat,at/x\n50,a\n99,b\n") =>
      fetch(`${url}/datasets/d/select?method=nearest&tolerance=2&f=${form}`, {
        ...{ method: "POST", headers: { "content-type": "text/csv" }, body },
      });
    const dates = { seen: "1970-01-01T00:00:05", day: "1970-01-06", exact: "2017-07-14T02:40:00.000000001" };
    for (const more of ["", "&decode=1"]) {
      const file = join(folder, "answer.nc");
      await writeFile(file, Buffer.from(await (await ask(`nc${more}`)).arrayBuffer()));
      const { lat, took, ...found } = JSON.parse(askPython(READ_DATES, null, [file]));
      t.same(found, {
        at_x: ["a", "b"],
        seen: [dates.seen, "NaT"],
        day: [`${dates.day}T00:00:00`, "NaT"],
        exact: [dates.exact, "NaT"],
      });
      t.equal(took[1], "NaT");
    }
    for (const more of ["", "&decode=0"]) {
      const csv = await (await ask(`csv${more}`)).text();
      t.same(csv.split("\n").slice(0, 3), [
        "day,exact,seen,took,at_x,lat",
        `${dates.day}T00:00:00,${dates.exact},${dates.seen},2,a,50.0`,
        ",,,,b,",
      ]);
      const json = JSON.parse(await (await ask(`json${more}`)).text()).data_vars;
      t.same(
        [json.seen.data, json.exact.data, json.took.data],
        [
          [dates.seen, null],
          [dates.exact, null],
          [2, null],
        ],
      );
      const columns = arrowColumns(Buffer.from(await (await ask(`arrow${more}`)).arrayBuffer()));
      const items = Object.fromEntries(columns.map(([name, , own]) => [name, own]));
      t.same(
        [items.seen, items.exact, items.took],
        [
          ["5", null],
          ["1500000000000000001", null],
          ["2", null],
        ],
      );
      t.ok("at_x" in items);
    }
    const twice = await ask("nc", "lat,at/x,at_x\n50,1,2\n");
    t.equal(twice.status, 422);
    t.match(await twice.text(), /at_x/);
  },
);
