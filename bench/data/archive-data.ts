import { copyFileSync, linkSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DATA_DIRECTORY, makeOldTree, makeOnce } from "./bench-data.js";
import { netcdf3File } from "./netcdf3-file.js";

/** A folder with many datasets below it. */
export interface Archive {
  readonly directory: string;
  /** Paths of all datasets below the folder, in the order of their ids. */
  readonly paths: readonly string[];
}

/** Datasets of one folder. */
const PER_FOLDER = 1_000;
/** One dataset of so many is a Zarr store: a folder of four files. The others are NetCDF files. */
const ZARR_EVERY = 100;
const FORMAT = 1;
const DATASETS = "datasets";
const TEMPLATES = "templates";

/** Opens a folder of `count` tiny datasets. Those of one subfolder are links to the same bytes, which tell the folder. */
export async function openArchive(count: number, parent: string = DATA_DIRECTORY): Promise<Archive> {
  const directory = join(parent, `archive-${count}-v${FORMAT}`);
  const paths = Array.from({ length: count }, (_, at) => pathOf(at));
  await makeOnce(directory, async (unfinished) => {
    mkdirSync(join(unfinished, TEMPLATES));
    for (let first = 0; first < count; first += PER_FOLDER) {
      const folder = join(unfinished, DATASETS, folderOf(first));
      const template = join(unfinished, TEMPLATES, folderOf(first));
      mkdirSync(folder, { recursive: true });
      const files = datasetFiles(first / PER_FOLDER);
      for (const [name, bytes] of Object.entries(files)) {
        writeFileSync(template + name, bytes);
      }
      for (let at = first; at < Math.min(count, first + PER_FOLDER); at++) {
        const target = join(unfinished, DATASETS, pathOf(at));
        if (!isZarr(at)) {
          linkSync(`${template}.nc`, target);
          continue;
        }
        mkdirSync(join(target, "value"), { recursive: true });
        linkSync(`${template}.zgroup`, join(target, ".zgroup"));
        for (const name of [".zarray", ".zattrs", "0"])
          linkSync(template + name, join(target, "value", name));
      }
    }
    makeOldTree(unfinished);
  });
  return { directory: join(directory, DATASETS), paths: paths.sort() };
}

/** Adds a dataset to an archive. It is removed by its path. @returns path below the folder */
export function addToArchive({ directory }: Archive, name: string): string {
  const path = join(folderOf(0), name);
  copyFileSync(join(directory, "..", TEMPLATES, `${folderOf(0)}.nc`), join(directory, path));
  return path;
}

/** Returns the number that a dataset's one variable, `value`, consists of. */
export function archiveValue(path: string): number {
  return Number(path.split("/")[0]);
}

function isZarr(at: number): boolean {
  return at % ZARR_EVERY === ZARR_EVERY - 1;
}

function folderOf(at: number): string {
  return String(Math.floor(at / PER_FOLDER)).padStart(3, "0");
}

function pathOf(at: number): string {
  return `${folderOf(at)}/${String(at % PER_FOLDER).padStart(3, "0")}.${isZarr(at) ? "zarr" : "nc"}`;
}

function datasetFiles(value: number): Record<string, string | Uint8Array> {
  const values = Float32Array.of(value, value, value, value);
  const document = {
    ...{ zarr_format: 2, shape: [4], chunks: [4], dtype: "<f4", order: "C" },
    ...{ fill_value: "NaN", filters: null, compressor: null },
  };
  return {
    ".nc": netcdf3File([["x", 4]], [{ name: "value", dims: [0], values, attrs: { units: "1" } }]),
    ".zgroup": JSON.stringify({ zarr_format: 2 }),
    ".zarray": JSON.stringify(document),
    ".zattrs": JSON.stringify({ _ARRAY_DIMENSIONS: ["x"], units: "1" }),
    "0": new Uint8Array(values.buffer),
  };
}
