import { join } from "node:path";
import { cdfFile } from "./cdf-file.js";
import { writeFiles, zarray, zgroup } from "./write-store.js";

/** Steps of a part: value `v[t, y]` is `10 * t + y`, and the time of a step is its number. */
export interface PartSteps {
  readonly first: number;
  readonly count: number;
  /** Steps to a chunk; only in Zarr stores. Default 2. */
  readonly chunk?: number;
  /** Cells along `y`. Default 2. */
  readonly rows?: number;
  /** Days before 2000-01-01 from which times are counted. Default 0. */
  readonly since?: number;
  /** Added to all values. Default 0. */
  readonly plus?: number;
}

/** Returns the values of steps, row by row. */
export function valuesOf({ first, count, rows = 2, plus = 0 }: PartSteps): number[] {
  return Array.from(
    { length: count * rows },
    (_, index) => 10 * (first + Math.floor(index / rows)) + (index % rows) + plus,
  );
}

function unitsOf(since: number): string {
  return `days since ${new Date(Date.UTC(2000, 0, 1 - since)).toISOString().slice(0, 10)}`;
}

/** Writes a part as a Zarr store. */
export async function writeZarrPart(folder: string, name: string, steps: PartSteps): Promise<void> {
  const { first, count, chunk = 2, rows = 2, since = 0 } = steps;
  const values = valuesOf(steps);
  const files: Record<string, object | Uint8Array> = {
    ".zgroup": zgroup,
    ".zattrs": { title: name },
    "time/.zarray": { ...zarray, shape: [count], chunks: [count], dtype: "<i4", fill_value: null },
    "time/.zattrs": { _ARRAY_DIMENSIONS: ["time"], units: unitsOf(since) },
    "time/0": new Uint8Array(Int32Array.from({ length: count }, (_, step) => first + step + since).buffer),
    "v/.zarray": { ...zarray, shape: [count, rows], chunks: [chunk, rows], dtype: "<f4", fill_value: null },
    "v/.zattrs": { _ARRAY_DIMENSIONS: ["time", "y"] },
    "y/.zarray": { ...zarray, shape: [rows], chunks: [rows], dtype: "<i4", fill_value: null },
    "y/.zattrs": { _ARRAY_DIMENSIONS: ["y"] },
    "y/0": new Uint8Array(Int32Array.from({ length: rows }, (_, row) => row).buffer),
    "area/.zarray": { ...zarray, shape: [rows, 2], chunks: [rows, 2], fill_value: null },
    "area/.zattrs": { _ARRAY_DIMENSIONS: ["y", "x"] },
    "area/0.0": new Uint8Array(rows * 2).fill(7),
  };
  for (let index = 0; index * chunk < count; index++) {
    const items = new Float32Array(chunk * rows).fill(-1);
    items.set(values.slice(index * chunk * rows, (index + 1) * chunk * rows));
    files[`v/${index}.0`] = new Uint8Array(items.buffer);
  }
  await writeFiles(join(folder, name), files);
}

/** Writes a part as a NetCDF-3 file. */
export async function writeNetcdfPart(folder: string, name: string, steps: PartSteps): Promise<void> {
  const { first, count, rows = 2, since = 0 } = steps;
  const swapped = (bytes: Buffer, size: 4 | 8) => (size === 4 ? bytes.swap32() : bytes.swap64());
  const numbers = (items: Int32Array | Float32Array | Float64Array) =>
    swapped(Buffer.from(items.buffer as ArrayBuffer), items.BYTES_PER_ELEMENT as 4 | 8);
  const units = { name: "units", type: "char", bytes: Buffer.from(unitsOf(since)) } as const;
  const time = Float64Array.from({ length: count }, (_, step) => first + step + since);
  const file = cdfFile({
    version: 1,
    dimensions: [
      { name: "time", length: 0 },
      { name: "y", length: rows },
    ],
    variables: [
      { name: "time", type: "double", dimensions: [0], attributes: [units], bytes: numbers(time) },
      { name: "v", type: "float", dimensions: [0, 1], bytes: numbers(Float32Array.from(valuesOf(steps))) },
      {
        ...{ name: "y", type: "int", dimensions: [1] },
        bytes: numbers(Int32Array.from({ length: rows }, (_, row) => row)),
      },
    ],
    recordCount: count,
  });
  await writeFiles(folder, { [name]: file });
}
