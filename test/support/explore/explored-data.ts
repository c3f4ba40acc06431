import { askPython } from "../clients/ask-python.js";

/**
 * Writes two stores that the explorer's tests look at, and prints the series that xarray has of them: dates as ISO texts, missing
 * values as null. `grid` has maps, profiles, plots and texts; `years` counts its days in calendars that numpy does not know.
 */
const WRITE = `
import json, sys, warnings
import cftime, numpy as np, xarray as xr
warnings.simplefilter("ignore")
rng = np.random.default_rng(3)
directory = sys.argv[1]
lat = ("lat", (75 - 2.5 * np.arange(25)).astype("f4"), {"units": "degrees_north", "standard_name": "latitude"})
lon = ("lon", (200 + 2.5 * np.arange(53)).astype("f4"), {"units": "degrees_east", "standard_name": "longitude"})
level = ("level", [1000.0, 850.0, 500.0, 200.0], {"units": "hPa", "positive": "down"})
def field(*shape): return rng.normal(280, 9, shape)
air = field(120, 25, 53).astype("f4")
air[30:50, 14, 18] = np.nan
air[52, 14, 18] = np.nan
days = ("time", "lat", "lon")
grid = xr.Dataset({
    "air": (days, air, {"units": "degK", "long_name": "Air temperature"}),
    "packed": (days, air, {"units": "degK"}),
    "q": (("level", "lat", "lon"), field(4, 25, 53), {"units": "g/kg"}),
    "co2": ("time", field(120), {"units": "ppm"}),
    "title": ((), "A text that is one value"),
    "station": ("number", np.array(["Zürich", "Bern <b>", "Genève"] * 500, dtype=object)),
}, {"time": np.datetime64("2013-01-01", "ns") + np.arange(120) * np.timedelta64(6, "h"), "lat": lat, "lon": lon, "level": level})
grid.to_zarr(directory + "/grid.zarr", consolidated=True, encoding={
    "air": {"chunks": (40, 25, 53)}, "packed": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32767, "chunks": (1, 25, 53)}})
def dates(calendar): return xr.cftime_range("1999-12-20", periods=90, freq="D", calendar=calendar)
years = {}
for calendar in ("noleap", "360_day"):
    years[calendar] = xr.Dataset({"pr": (days, field(90, 25, 53).astype("f4"), {"units": "mm/day"})}, {"time": dates(calendar), "lat": lat, "lon": lon})
    years[calendar].to_zarr(directory + "/years.zarr", group=calendar, mode="a", consolidated=False)
import zarr
zarr.open_group(directory + "/years.zarr", mode="a")
zarr.consolidate_metadata(directory + "/years.zarr")
def iso(value):
    if isinstance(value, cftime.datetime): return value.strftime("%Y-%m-%dT%H:%M:%S")
    return str(value)[:19] if isinstance(value, np.datetime64) else float(value)
def series(array):
    found = array.to_series()
    values = [None if np.isnan(value) else float(value) for value in found.values]
    return {"positions": [iso(value) for value in array[array.dims[0]].values], "values": values}
place = {"lat": 40, "lon": 245}
stored = xr.open_zarr(directory + "/grid.zarr")
print(json.dumps({
    "air": series(stored.air.sel(place)),
    "packed": series(stored.packed.sel(place)),
    "lat": series(stored.air.isel(time=0).sel(lon=245)),
    "q": series(stored.q.sel(place)),
    "co2": series(stored.co2),
    **{calendar: series(xr.open_zarr(directory + "/years.zarr", group=calendar).pr.sel(place)) for calendar in years},
}))
`;

/** A series as xarray has it: dates or numbers, and values with null for missing ones. */
export interface KnownSeries {
  readonly positions: readonly (string | number)[];
  readonly values: readonly (number | null)[];
}

/** Writes `grid.zarr` and `years.zarr` into a directory, and returns series of them at 40° N, 245° E. */
export function writeExploredData(directory: string): Readonly<Record<string, KnownSeries>> {
  return JSON.parse(askPython(WRITE, null, [directory]));
}

/** Writes a store whose variables lie in memory in all ways. */
const WRITE_FIELDS = `
import sys, numpy as np, xarray as xr
times = np.datetime64("2013-01-01") + np.arange(12) * np.timedelta64(6, "h")
lat, lon = np.arange(87.5, -90, -5.0), np.arange(0, 360, 7.5)
t, y, x = np.meshgrid(np.arange(12), lat, lon, indexing="ij")
air = (270 + 25 * np.cos(np.radians(y)) + 5 * np.sin(np.radians(x * 2)) + t).astype("f4")
air[:, (lat > 20) & (lat < 40), :5] = np.nan
geo = {"lat": ("lat", lat, {"units": "degrees_north"}), "lon": ("lon", lon, {"units": "degrees_east"}), "time": times}
packed = np.round((y - x / 4 + t) / 0.05).astype("f8") * 0.05
packed[:, 3, 7] = np.nan
rows = np.array([-70.0, -50, -38, -30, -25, -22, -20, -10, 5, 30])
columns = np.arange(-179.0, 180, 2)
ds = xr.Dataset(
    {
        "air": (("time", "lat", "lon"), air, {"units": "K", "long_name": "Air temperature"}),
        "packed": (("lon", "time", "lat"), packed.transpose(2, 0, 1)),
        "uneven": (("south", "east"), rows[:, None] * 3 + columns[None, :]),
        "image": (("row", "column"), np.arange(600.0).reshape(20, 30)),
        "empty": (("lat", "lon"), np.full((36, 48), np.nan)),
    },
    coords={**geo, "south": ("south", rows, {"units": "degrees_north"}), "east": ("east", columns, {"units": "degrees_east"})},
)
encoding = {
    "air": {"chunks": (1, 20, 30)},
    "packed": {"chunks": (17, 3, 36), "dtype": "i2", "scale_factor": 0.05, "add_offset": 10.0, "_FillValue": -32768},
}
ds.to_zarr(sys.argv[1] + "/fields.zarr", encoding=encoding, consolidated=True)
`;

/** Writes `fields.zarr` into a directory, whose variables lie in memory in all ways, and returns its path. */
export function writeFields(directory: string): string {
  askPython(WRITE_FIELDS, null, [directory]);
  return `${directory}/fields.zarr`;
}
