import { landAlong } from "./land.js";
import { createDrift, range } from "./random.js";
import type { DemoArray, DemoStore } from "./write-store.js";

const STEPS = 2920;
const LAT = range(25, 75, -2.5);
const LON = range(53, 200, 2.5);
/** 2013-01-01T00:00 since 1800-01-01, in hours. */
const FIRST_HOUR = 1_867_128;
const SCALE = 0.01;
const OFFSET = 273.15;
const MISSING = -32_767;

/**
 * Two years of air temperature, four times a day over North America and its oceans: one flat dataset, packed into 16-bit
 * integers. Invented, yet with what makes the real one look as it does: colder to the north, seasons that are
 * stronger inland, the real coasts, warm afternoons by local time, waves that travel eastwards, weather that remembers.
 */
export function createAir(): DemoStore {
  return {
    groups: {
      "": {
        Conventions: "CF-1.8",
        title: "4xDaily air temperature near the surface (invented for this demonstration)",
        description: "Looks like the NMC reanalysis, and is not: computed from a few sines and noise",
        platform: "Model",
      },
    },
    arrays: [
      coordinate("time", Float64Array.from(range(STEPS, FIRST_HOUR, 6)), {
        standard_name: "time",
        long_name: "Time",
        units: "hours since 1800-01-01",
        calendar: "standard",
      }),
      coordinate("lat", Float32Array.from(LAT), {
        standard_name: "latitude",
        long_name: "Latitude",
        units: "degrees_north",
        axis: "Y",
      }),
      coordinate("lon", Float32Array.from(LON), {
        standard_name: "longitude",
        long_name: "Longitude",
        units: "degrees_east",
        axis: "X",
      }),
      {
        path: "air",
        dims: ["time", "lat", "lon"],
        shape: [STEPS, LAT.length, LON.length],
        chunkShape: [146, LAT.length, LON.length],
        values: airTemperature(),
        fillValue: MISSING,
        attrs: {
          standard_name: "air_temperature",
          long_name: "4xDaily air temperature at sigma level 995",
          units: "K",
          scale_factor: SCALE,
          add_offset: OFFSET,
          precision: 2,
          statistic: "Individual Obs",
        },
      },
    ],
  };
}

function coordinate(name: string, values: Float32Array | Float64Array, attrs: DemoArray["attrs"]): DemoArray {
  return {
    path: name,
    dims: [name],
    shape: [values.length],
    chunkShape: [values.length],
    values,
    fillValue: null,
    attrs,
  };
}

function airTemperature(): Int16Array {
  const packed = new Int16Array(STEPS * LAT.length * LON.length);
  const drifts = LAT.map((_, row) => LON.map((_, column) => createDrift(row * 1_000 + column, 0.9, 0.5)));
  const landShare = landShares();
  let index = 0;
  for (let step = 0; step < STEPS; step += 1) {
    const day = step / 4;
    const season = -Math.cos((2 * Math.PI * (day - 25)) / 365);
    LAT.forEach((lat, row) => {
      const north = (lat - 15) / 60;
      LON.forEach((lon, column) => {
        const inland = (landShare[row]?.[column] ?? 0) * (0.4 + 0.6 * north);
        const localHour = (day * 24 + lon / 15) % 24;
        const afternoon = Math.cos((2 * Math.PI * (localHour - 15)) / 24);
        const wave =
          Math.sin((2 * Math.PI * (lon - 8 * day)) / 55 + 3 * north) * 5 * Math.sin(Math.PI * north);
        const longWave = Math.sin((2 * Math.PI * (lon - 1.5 * day)) / 120 - 2 * north) * 3 * north;
        const kelvin =
          299 -
          34 * north ** 1.3 +
          season * (2 + 9 * north + 12 * inland) +
          afternoon * (0.5 + 5 * inland) +
          wave +
          longWave +
          (drifts[row]?.[column]?.() ?? 0);
        packed[index] = Math.round((kelvin - OFFSET) / SCALE);
        index += 1;
      });
    });
  }
  return packed;
}

/** Share of land among the cells around each cell of the grid, itself included. */
function landShares(): number[][] {
  const reach = 2;
  const lons = range(LON.length + 2 * reach, (LON[0] ?? 0) - 2.5 * reach, 2.5);
  const land = range(LAT.length + 2 * reach, (LAT[0] ?? 0) + 2.5 * reach, -2.5).map((lat) =>
    landAlong(lat, lons),
  );
  return LAT.map((_, row) =>
    LON.map((_, column) => {
      const near = land
        .slice(row, row + 2 * reach + 1)
        .flatMap((cells) => cells.slice(column, column + 2 * reach + 1));
      return near.filter((isLand) => isLand).length / near.length;
    }),
  );
}
