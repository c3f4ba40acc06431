import { linkSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PYTHON, runChild } from "../children.js";
import { DATA_DIRECTORY, makeOldTree, makeOnce, packageRoot } from "./bench-data.js";
import { netcdf3File } from "./netcdf3-file.js";

/** Kinds of files of which the same field is written. */
export type HourlyFormat = "netcdf4" | "netcdf3" | "zarr";

/** A field (time, y, x) of float32, in files of one hour each, and in one store with the same stored chunks. */
export interface HourlyFiles {
  readonly format: HourlyFormat;
  readonly hours: number;
  /** Pattern of the files. */
  readonly pattern: string;
  /** Zarr store of all hours, whose chunks are those of the files. */
  readonly store: string;
  /** Writes the file of one more hour, as a writer does that renames a finished file. @returns its path */
  add(hour: number): string;
}

/** Different fields; those of other hours are the same again. */
export const FIELDS = 24;
/** Cells along y and x. */
export const SIDE = 64;
const FORMAT = 1;
/** Time in the files of Python, to be replaced. */
const MARK = -12_345;

/** Hours since the beginning, of a file that is written. */
type WriteHour = (path: string, hour: number) => void;

/** Opens a year, or part of one, of hourly files. */
export async function openHourlyFiles(
  format: HourlyFormat,
  hours: number,
  parent: string = DATA_DIRECTORY,
): Promise<HourlyFiles> {
  const directory = join(parent, `hourly-${format}-${hours}-v${FORMAT}`);
  const templates = join(directory, "templates");
  const ending = format === "zarr" ? "zarr" : "nc";
  const fileName = (hour: number) => `field-${String(hour).padStart(5, "0")}.${ending}`;
  await makeOnce(directory, async (unfinished) => {
    const made = join(unfinished, "templates");
    mkdirSync(made);
    await writeTemplates(format, made);
    const write = writerOf(format, made);
    mkdirSync(join(unfinished, "files"));
    for (let hour = 0; hour < hours; hour++) write(join(unfinished, "files", fileName(hour)), hour);
    makeOldTree(unfinished);
    writeStore(join(unfinished, "store.zarr"), format, hours, made);
  });
  return {
    format,
    hours,
    pattern: join(directory, "files", `field-*.${ending}`),
    store: join(directory, "store.zarr"),
    add(hour) {
      const path = join(directory, "files", fileName(hour));
      writerOf(format, templates)(path, hour);
      return path;
    },
  };
}

/** Returns the field of an hour. */
export function fieldOf(hour: number): Float32Array {
  const number = hour % FIELDS;
  return Float32Array.from(
    { length: SIDE * SIDE },
    (_, at) =>
      number * 1_000 +
      Math.round(10 * (Math.sin(Math.floor(at / SIDE) / 9 + number) + Math.cos((at % SIDE) / 7))),
  );
}

async function writeTemplates(format: HourlyFormat, folder: string): Promise<void> {
  if (format === "netcdf4") {
    const script = join(packageRoot(), "bench/files/write_hour.py");
    await runChild(PYTHON, [script, folder, String(SIDE), String(FIELDS)]);
    return;
  }
  for (let number = 0; number < FIELDS; number++) {
    const bytes = Buffer.from(fieldOf(number).buffer);
    writeFileSync(join(folder, `${number}.chunk`), format === "netcdf3" ? bytes.swap32() : bytes);
  }
  if (format === "zarr") writeDocuments(join(folder, "hour.zarr"), format, 1);
}

/** Returns what writes the file of an hour. */
function writerOf(format: HourlyFormat, templates: string): WriteHour {
  switch (format) {
    case "netcdf4":
      return writeNetcdf4(templates);
    case "netcdf3":
      return (path, hour) => writeFileSync(path, netcdf3Hour(hour));
    case "zarr":
      return (path, hour) => {
        for (const name of ["time", "y", "x", "field"]) mkdirSync(join(path, name), { recursive: true });
        for (const name of Object.keys(documentsOf(format, 1)))
          linkSync(join(templates, "hour.zarr", name), join(path, name));
        linkSync(join(templates, `${hour % FIELDS}.chunk`), join(path, "field", "0.0.0"));
        writeFileSync(join(path, "time", "0"), new Uint8Array(Float64Array.of(hour).buffer));
      };
  }
}

function writeNetcdf4(templates: string): WriteHour {
  const files = new Map<number, Buffer>();
  const mark = Buffer.alloc(8);
  mark.writeDoubleLE(MARK);
  return (path, hour) => {
    const number = hour % FIELDS;
    const bytes = files.get(number) ?? readFileSync(join(templates, `${number}.nc`));
    files.set(number, bytes);
    const at = bytes.indexOf(mark);
    if (at === -1 || bytes.indexOf(mark, at + 1) !== -1)
      throw new Error(`expected the time ${MARK} once in ${number}.nc`);
    const own = Buffer.from(bytes);
    own.writeDoubleLE(hour, at);
    writeFileSync(path, own);
  };
}

/** Writes the store of all hours, whose chunks are links to those of the templates. */
function writeStore(directory: string, format: HourlyFormat, hours: number, templates: string): void {
  writeDocuments(directory, format, hours);
  for (let hour = 0; hour < hours; hour++)
    linkSync(join(templates, `${hour % FIELDS}.chunk`), join(directory, "field", `${hour}.0.0`));
  const times = Float64Array.from({ length: hours }, (_, hour) => hour);
  writeFileSync(join(directory, "time", "0"), new Uint8Array(times.buffer));
}

function writeDocuments(directory: string, format: HourlyFormat, hours: number): void {
  for (const name of ["time", "y", "x", "field"]) mkdirSync(join(directory, name), { recursive: true });
  for (const [name, bytes] of Object.entries(documentsOf(format, hours)))
    writeFileSync(join(directory, name), bytes);
}

/** Files of a store but the chunks of `field` and `time`. */
function documentsOf(format: HourlyFormat, hours: number): Record<string, string | Uint8Array> {
  const isShuffled = format === "netcdf4";
  const array = (shape: readonly number[], chunks: readonly number[], dtype: string) => ({
    ...{
      zarr_format: 2,
      shape,
      chunks,
      dtype,
      order: "C",
      fill_value: null,
      filters: null,
      compressor: null,
    },
  });
  const field = {
    ...array([hours, SIDE, SIDE], [1, SIDE, SIDE], format === "netcdf3" ? ">f4" : "<f4"),
    ...(isShuffled && {
      fill_value: "NaN",
      filters: [{ id: "shuffle", elementsize: 4 }],
      compressor: { id: "zlib", level: 1 },
    }),
  };
  const axis = new Uint8Array(Float64Array.from({ length: SIDE }, (_, at) => at).buffer);
  const documents = {
    ".zgroup": { zarr_format: 2 },
    "field/.zarray": field,
    "field/.zattrs": { _ARRAY_DIMENSIONS: ["time", "y", "x"], units: "K" },
    "time/.zarray": array([hours], [hours], "<f8"),
    "time/.zattrs": { _ARRAY_DIMENSIONS: ["time"], units: "hours since 2021-01-01" },
    "y/.zarray": array([SIDE], [SIDE], "<f8"),
    "y/.zattrs": { _ARRAY_DIMENSIONS: ["y"] },
    "x/.zarray": array([SIDE], [SIDE], "<f8"),
    "x/.zattrs": { _ARRAY_DIMENSIONS: ["x"] },
  };
  const texts = Object.entries(documents).map(([name, document]) => [name, JSON.stringify(document)]);
  return { ...Object.fromEntries(texts), "y/0": axis, "x/0": axis };
}

function netcdf3Hour(hour: number): Buffer {
  const axis = Float64Array.from({ length: SIDE }, (_, at) => at);
  return netcdf3File(
    [
      ["time", 1],
      ["y", SIDE],
      ["x", SIDE],
    ],
    [
      { name: "time", dims: [0], values: Float64Array.of(hour), attrs: { units: "hours since 2021-01-01" } },
      { name: "y", dims: [1], values: axis },
      { name: "x", dims: [2], values: axis },
      { name: "field", dims: [0, 1, 2], values: fieldOf(hour), attrs: { units: "K" } },
    ],
  );
}
