import { landAlong } from "./land.js";
import { createDrift, createRandom, range } from "./random.js";
import type { DemoArray, DemoStore } from "./write-store.js";

const LAT = range(45, -88, 4);
const LON = range(90, 0, 4);
/** By row and column of the grid. */
const LAND = LAT.map((lat) => landAlong(lat, LON));
const DAYS = 365;
const MONTHS = 12;
const DEPTHS = [0, 5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 400, 500, 700, 1000, 1500, 2000, 3000];
const STATIONS = [
  { name: "Station Papa", lat: 50, lon: 215 },
  { name: "Hawaiʻi Ocean Time-series", lat: 22.75, lon: 202 },
  { name: "Bermuda Atlantic", lat: 31.67, lon: 295.83 },
  { name: "Línea W", lat: 39.5, lon: 290.4 },
  { name: "Île de Kerguelen", lat: -50.67, lon: 68.42 },
] as const;

/**
 * A small climate of the ocean as a tree of groups, in Zarr v3 with shards: a grid with a mask, a year of days, profiles
 * at stations with names, and a curvilinear grid with two-dimensional coordinates.
 */
export function createClimate(): DemoStore {
  return {
    groups: {
      "": {
        Conventions: "CF-1.8",
        title: "A small ocean climate (invented for this demonstration)",
        comment: "Stored as Zarr v3 with shards; served as Zarr v2 and v3",
      },
      surface: { title: "Sea surface" },
      "surface/monthly": { title: "Sea surface, monthly means" },
      "surface/daily": { title: "Sea surface, daily" },
      profiles: { title: "Temperature and salinity by depth", featureType: "profile" },
      regional: { title: "Sea surface height on a curvilinear grid" },
    },
    arrays: [...surface(), ...daily(), ...profiles(), ...regional()],
  };
}

function array(
  path: string,
  dims: readonly string[],
  shape: readonly number[],
  values: DemoArray["values"],
  attrs: DemoArray["attrs"],
  layout: { readonly chunkShape?: readonly number[]; readonly shardShape?: readonly number[] } = {},
): DemoArray {
  const fillValue = isText(values) ? "" : values instanceof Float32Array ? "NaN" : 0;
  return { path, dims, shape, chunkShape: shape, ...layout, values, attrs, fillValue };
}

function isText(values: DemoArray["values"]): values is readonly string[] {
  return Array.isArray(values);
}

function horizontal(group: string): DemoArray[] {
  return [
    array(`${group}/lat`, ["lat"], [LAT.length], Float64Array.from(LAT), {
      standard_name: "latitude",
      units: "degrees_north",
    }),
    array(`${group}/lon`, ["lon"], [LON.length], Float64Array.from(LON), {
      standard_name: "longitude",
      units: "degrees_east",
    }),
  ];
}

function time(group: string, days: readonly number[]): DemoArray {
  return array(`${group}/time`, ["time"], [days.length], Int32Array.from(days), {
    standard_name: "time",
    units: "days since 2020-01-01",
    calendar: "proleptic_gregorian",
  });
}

function seaTemperature(lat: number, lon: number, day: number): number {
  const season = Math.cos((2 * Math.PI * (day - 220)) / 365) * Math.sign(lat);
  const mean = 29 * Math.cos((Math.PI * lat) / 180) ** 1.6 - 1.5;
  return (
    mean +
    season * 4 * Math.sin((Math.PI * Math.abs(lat)) / 90) +
    Math.sin((Math.PI * (lon - day / 3)) / 30) * 0.6
  );
}

/** (time, lat, lon), NaN over land. */
function seaTemperatures(days: readonly number[], noise: number): Float32Array {
  const drift = createDrift(7, 0.7, noise);
  return Float32Array.from(
    days.flatMap((day) =>
      LAT.flatMap((lat, row) =>
        LON.map((lon, column) =>
          LAND[row]?.[column] ? Number.NaN : seaTemperature(lat, lon, day) + drift(),
        ),
      ),
    ),
  );
}

const SST_ATTRS = {
  standard_name: "sea_surface_temperature",
  long_name: "Sea surface temperature",
  units: "degree_Celsius",
};

function surface(): DemoArray[] {
  const months = range(MONTHS, 15, 365 / MONTHS).map(Math.floor);
  const mask = LAT.flatMap((lat, row) =>
    LON.map((_, column) => (LAND[row]?.[column] ? 1 : lat > 80 ? 2 : 0)),
  );
  return [
    ...horizontal("surface"),
    ...horizontal("surface/monthly"),
    time("surface/monthly", months),
    array("surface/mask", ["lat", "lon"], [LAT.length, LON.length], Int8Array.from(mask), {
      long_name: "What there is at the surface",
      flag_values: [0, 1, 2],
      flag_meanings: "sea land ice",
    }),
    array(
      "surface/monthly/sst",
      ["time", "lat", "lon"],
      [MONTHS, LAT.length, LON.length],
      seaTemperatures(months, 0.1),
      SST_ATTRS,
      {
        chunkShape: [1, LAT.length, LON.length],
      },
    ),
  ];
}

function daily(): DemoArray[] {
  const days = range(DAYS, 0, 1);
  return [
    ...horizontal("surface/daily"),
    time("surface/daily", days),
    array(
      "surface/daily/sst",
      ["time", "lat", "lon"],
      [DAYS, LAT.length, LON.length],
      seaTemperatures(days, 0.4),
      SST_ATTRS,
      {
        chunkShape: [30, 15, 30],
        shardShape: [120, 45, 90],
      },
    ),
  ];
}

function profiles(): DemoArray[] {
  const random = createRandom(11);
  const shape = [STATIONS.length, DEPTHS.length];
  const temperature: number[] = [];
  const salinity: number[] = [];
  for (const { lat, lon } of STATIONS) {
    for (const depth of DEPTHS) {
      temperature.push(1.5 + (seaTemperature(lat, lon, 200) - 1.5) * Math.exp(-depth / 350) + 0.1 * random());
      salinity.push(34.9 + 0.8 * Math.exp(-depth / 200) * Math.cos((Math.PI * lat) / 60) + 0.02 * random());
    }
  }
  const where = { coordinates: "station_name lat lon" };
  const perStation = ["station"];
  const stations = [STATIONS.length];
  return [
    array("profiles/depth", ["depth"], [DEPTHS.length], Float32Array.from(DEPTHS), {
      standard_name: "depth",
      units: "m",
      positive: "down",
    }),
    array(
      "profiles/station_name",
      perStation,
      stations,
      STATIONS.map(({ name }) => name),
      {
        long_name: "Name of the station",
        cf_role: "profile_id",
      },
    ),
    array(
      "profiles/lat",
      perStation,
      stations,
      Float64Array.from(STATIONS, ({ lat }) => lat),
      {
        standard_name: "latitude",
        units: "degrees_north",
      },
    ),
    array(
      "profiles/lon",
      perStation,
      stations,
      Float64Array.from(STATIONS, ({ lon }) => lon),
      {
        standard_name: "longitude",
        units: "degrees_east",
      },
    ),
    array("profiles/temperature", ["station", "depth"], shape, Float64Array.from(temperature), {
      standard_name: "sea_water_temperature",
      units: "degree_Celsius",
      ...where,
    }),
    array("profiles/salinity", ["station", "depth"], shape, Float64Array.from(salinity), {
      standard_name: "sea_water_practical_salinity",
      units: "1",
      ...where,
    }),
  ];
}

function regional(): DemoArray[] {
  const [height, width] = [60, 80];
  const points = range(height, 0, 1).flatMap((y) => range(width, 0, 1).map((x) => ({ x, y })));
  const days = range(31, 0, 1);
  const ssh = days.flatMap((day) =>
    points.map(({ x, y }) => 0.3 * Math.sin((x + 2 * y - day) / 7) + 0.2 * Math.cos((x * y) / 400 + day / 9)),
  );
  return [
    time("regional", days),
    array(
      "regional/nav_lat",
      ["y", "x"],
      [height, width],
      Float64Array.from(points, ({ x, y }) => 36 + 0.1 * y + 0.02 * x),
      { standard_name: "latitude", units: "degrees_north" },
    ),
    array(
      "regional/nav_lon",
      ["y", "x"],
      [height, width],
      Float64Array.from(points, ({ x, y }) => 290 + 0.12 * x - 0.03 * y),
      { standard_name: "longitude", units: "degrees_east" },
    ),
    array(
      "regional/ssh",
      ["time", "y", "x"],
      [days.length, height, width],
      Float32Array.from(ssh),
      { standard_name: "sea_surface_height_above_geoid", units: "m", coordinates: "nav_lat nav_lon" },
      { chunkShape: [8, 20, 40], shardShape: [16, 60, 80] },
    ),
  ];
}
