import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Blosc from "numcodecs/blosc";
import { DATA_DIRECTORY, FIELD_COMPRESSOR, makeOldTree, makeOnce } from "./bench-data.js";
import { fieldOf, SIDE } from "./hourly-data.js";

/** The field of {@link fieldOf} in stores of a month each, and in one store. */
export interface MonthlyStores {
  readonly hours: number;
  /** Pattern of the stores of one month. */
  readonly pattern: string;
  /** Store of all hours. */
  readonly store: string;
}

/** Hours of a chunk. */
export const CHUNK_HOURS = 7;
/** Hours of a month: no multiple of those of a chunk, so that chunks of all but the first month are made of pieces. */
const MONTH_HOURS = 730;
const FORMAT = 1;

/** Opens stores of one month each, and one of all months. */
export async function openMonthlyStores(
  months: number,
  parent: string = DATA_DIRECTORY,
  monthHours: number = MONTH_HOURS,
): Promise<MonthlyStores> {
  const directory = join(parent, `monthly-${months}x${monthHours}-v${FORMAT}`);
  await makeOnce(directory, async (unfinished) => {
    mkdirSync(join(unfinished, "files"));
    for (let month = 0; month < months; month++) {
      const path = join(unfinished, "files", `month-${String(month).padStart(2, "0")}.zarr`);
      await writeHours(path, month * monthHours, monthHours);
      makeOldTree(path);
    }
    await writeHours(join(unfinished, "store.zarr"), 0, months * monthHours);
  });
  return {
    hours: months * monthHours,
    pattern: join(directory, "files", "month-*.zarr"),
    store: join(directory, "store.zarr"),
  };
}

async function writeHours(directory: string, first: number, hours: number): Promise<void> {
  for (const name of ["field", "time"]) mkdirSync(join(directory, name), { recursive: true });
  const field = {
    ...{ zarr_format: 2, dtype: "<f4", order: "C", fill_value: "NaN", filters: null },
    ...{ shape: [hours, SIDE, SIDE], chunks: [CHUNK_HOURS, SIDE, SIDE], compressor: FIELD_COMPRESSOR },
  };
  const time = {
    ...field,
    shape: [hours],
    chunks: [hours],
    dtype: "<f8",
    fill_value: null,
    compressor: null,
  };
  const documents = {
    ".zgroup": { zarr_format: 2 },
    "field/.zarray": field,
    "field/.zattrs": { _ARRAY_DIMENSIONS: ["time", "y", "x"], units: "K" },
    "time/.zarray": time,
    "time/.zattrs": { _ARRAY_DIMENSIONS: ["time"], units: "hours since 2021-01-01" },
  };
  for (const [name, document] of Object.entries(documents))
    writeFileSync(join(directory, name), JSON.stringify(document));
  const times = Float64Array.from({ length: hours }, (_, hour) => first + hour);
  writeFileSync(join(directory, "time", "0"), new Uint8Array(times.buffer));
  const codec = Blosc.fromConfig(FIELD_COMPRESSOR);
  for (let begin = 0; begin < hours; begin += CHUNK_HOURS) {
    const values = new Float32Array(CHUNK_HOURS * SIDE * SIDE).fill(Number.NaN);
    for (let hour = begin; hour < Math.min(hours, begin + CHUNK_HOURS); hour++)
      values.set(fieldOf(first + hour), (hour - begin) * SIDE * SIDE);
    const bytes = await codec.encode(new Uint8Array(values.buffer));
    writeFileSync(join(directory, "field", `${begin / CHUNK_HOURS}.0.0`), bytes);
  }
}
