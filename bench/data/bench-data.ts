import { existsSync, readdirSync, readFileSync, utimesSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import Blosc from "numcodecs/blosc";
import { FIELD_SIDE, fieldValues } from "./field.js";

/** One Zarr v2 store on disk. */
export interface BenchStore {
  /** Names the dataset, and the folder. */
  readonly id: string;
  readonly directory: string;
}

/** A store with one array `field` (time, y, x) of float32. */
export interface FieldStore extends BenchStore {
  /** Elements along y and x of a chunk, which is one step of time. */
  readonly chunkSide: number;
  readonly steps: number;
  /** Keys below the store, `field/0.0.0` first, the last axis fastest. */
  readonly chunkKeys: readonly string[];
}

/** As in the stored `.zarray`. */
export const FIELD_COMPRESSOR = { id: "blosc", cname: "lz4", clevel: 5, shuffle: 1, blocksize: 0 } as const;

/**
 * What chunks of 1 MiB are served as where they are to be decoded and encoded again: the stored compressor with its block
 * size said rather than chosen. It is another compressor to the server; to c-blosc it is what it would choose itself for
 * these chunks (128 KiB, enlarged fourfold for items of 4 bytes), so that native code does the same work, to the byte, as
 * for the stored options.
 */
export const OTHER_FIELD_COMPRESSOR = { ...FIELD_COMPRESSOR, blocksize: 128 * 1024 } as const;

/** Raised when what is written changes: data of another version is made again. */
const FORMAT = 1;

/** Where stores are kept between runs: below a folder that version control ignores. */
export const DATA_DIRECTORY = join(packageRoot(), ".build", "bench-data");

/** The folder of `package.json`. */
export function packageRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "package.json"))) folder = dirname(folder);
  return folder;
}

/**
 * The store of a field of `steps` × 2048 × 2048, made where it is not there yet.
 * @param onProgress Told how much of it is written, from 0 to 1.
 */
export async function openFieldStore(
  id: string,
  chunkSide: number,
  steps: number,
  onProgress: (done: number) => void,
  parent: string = DATA_DIRECTORY,
): Promise<FieldStore> {
  const chunkKeys: string[] = [];
  const perSide = FIELD_SIDE / chunkSide;
  for (let t = 0; t < steps; t++) {
    for (let y = 0; y < perSide; y++)
      for (let x = 0; x < perSide; x++) chunkKeys.push(`field/${t}.${y}.${x}`);
  }
  const directory = join(parent, `${id}-${steps}x${FIELD_SIDE}-chunk${chunkSide}-v${FORMAT}`);
  const store: FieldStore = { id, directory, chunkSide, steps, chunkKeys };
  await makeOnce(directory, async (unfinished) => {
    const codec = Blosc.fromConfig(FIELD_COMPRESSOR);
    await mkdir(join(unfinished, "field"));
    for (const [done, key] of chunkKeys.entries()) {
      const values = fieldValues(boxOf(key, [1, chunkSide, chunkSide]));
      await writeFile(join(unfinished, key), await codec.encode(new Uint8Array(values.buffer)));
      onProgress((done + 1) / chunkKeys.length);
    }
    await writeMetadata(unfinished, {
      ".zattrs": { title: "A field for benchmarks" },
      ".zgroup": { zarr_format: 2 },
      "field/.zarray": arrayDocument(
        [steps, FIELD_SIDE, FIELD_SIDE],
        [1, chunkSide, chunkSide],
        FIELD_COMPRESSOR,
      ),
      "field/.zattrs": {
        _ARRAY_DIMENSIONS: ["time", "y", "x"],
        long_name: "a smooth field with noise",
        units: "K",
      },
    });
  });
  return store;
}

/**
 * A store of `count` one-dimensional variables without stored chunks: all there is to it is its metadata.
 * @param comment An attribute of every variable, where it is not empty: 50,000 variables take 16 MB without.
 */
export async function openManyStore(
  count: number,
  parent: string = DATA_DIRECTORY,
  comment = "",
): Promise<BenchStore> {
  const directory = join(
    parent,
    `many-${count}${comment === "" ? "" : `-comment${comment.length}`}-v${FORMAT}`,
  );
  await makeOnce(directory, async (unfinished) => {
    const metadata: Record<string, unknown> = { ".zattrs": {}, ".zgroup": { zarr_format: 2 } };
    for (let i = 0; i < count; i++) {
      metadata[`v${i}/.zarray`] = arrayDocument([100], [100], FIELD_COMPRESSOR);
      metadata[`v${i}/.zattrs`] = {
        _ARRAY_DIMENSIONS: ["x"],
        ...(comment === "" ? {} : { comment }),
        long_name: `variable ${i}`,
        units: "m s-1",
      };
    }
    await writeConsolidated(unfinished, metadata);
    await writeFile(join(unfinished, ".zgroup"), JSON.stringify({ zarr_format: 2 }));
  });
  return { id: "many", directory };
}

/** Lengths of the dimensions of a layer: a grid of a degree. */
const LAYER_SHAPE = { time: 365, level: 20, lat: 181, lon: 360 };
const LAYER_AXES = {
  time: { units: "hours since 2020-01-01", first: 0, step: 6 },
  level: { units: "hPa", standard_name: "air_pressure", first: 1_000, step: -50 },
  lat: { units: "degrees_north", first: 90, step: -1 },
  lon: { units: "degrees_east", first: 0, step: 1 },
};

/** A store of `count` variables on a grid of the Earth, `v0` and so on, without stored chunks but those of coordinates. */
export async function openLayerStore(count: number, parent: string = DATA_DIRECTORY): Promise<BenchStore> {
  const directory = join(parent, `layers-${count}-v${FORMAT}`);
  await makeOnce(directory, async (unfinished) => {
    const metadata: Record<string, unknown> = { ".zattrs": {}, ".zgroup": { zarr_format: 2 } };
    for (const [name, { first, step, ...attrs }] of Object.entries(LAYER_AXES)) {
      const length = LAYER_SHAPE[name as keyof typeof LAYER_AXES];
      metadata[`${name}/.zarray`] = arrayDocument([length], [length], null);
      metadata[`${name}/.zattrs`] = { _ARRAY_DIMENSIONS: [name], ...attrs };
      await mkdir(join(unfinished, name));
      const values = Float32Array.from({ length }, (_, i) => first + step * i);
      await writeFile(join(unfinished, name, "0"), new Uint8Array(values.buffer));
    }
    const dims = Object.keys(LAYER_SHAPE);
    for (let i = 0; i < count; i++) {
      metadata[`v${i}/.zarray`] = arrayDocument(
        Object.values(LAYER_SHAPE),
        [1, 1, 181, 360],
        FIELD_COMPRESSOR,
      );
      metadata[`v${i}/.zattrs`] = { _ARRAY_DIMENSIONS: dims, long_name: `variable ${i}`, units: "m s-1" };
    }
    await writeConsolidated(unfinished, metadata);
    await writeFile(join(unfinished, ".zgroup"), JSON.stringify({ zarr_format: 2 }));
    makeOldTree(unfinished);
  });
  return { id: "layers", directory };
}

/** Values along x of a small dataset, all in one chunk. */
const SMALL_LENGTH = 16;

/**
 * Directories of `count` small stores, each on its own: a group with a coordinate `x` and a variable `field` on it, one
 * chunk each, and consolidated metadata, as xarray writes them.
 */
export async function openSmallStores(
  count: number,
  onProgress: (done: number) => void,
  parent: string = DATA_DIRECTORY,
): Promise<string[]> {
  const directory = join(parent, `small-${count}-v${FORMAT}`);
  const stores = Array.from({ length: count }, (_, i) => `s${i}`);
  await makeOnce(directory, async (unfinished) => {
    const zarray = arrayDocument([SMALL_LENGTH], [SMALL_LENGTH], null);
    for (const [done, name] of stores.entries()) {
      const store = join(unfinished, name);
      for (const variable of ["field", "x"]) {
        await mkdir(join(store, variable), { recursive: true });
        const values = Float32Array.from({ length: SMALL_LENGTH }, (_, i) => (variable === "x" ? i : done));
        await writeFile(join(store, variable, "0"), new Uint8Array(values.buffer));
      }
      await writeMetadata(store, {
        ".zattrs": { title: `small dataset ${done}` },
        ".zgroup": { zarr_format: 2 },
        "field/.zarray": zarray,
        "field/.zattrs": { _ARRAY_DIMENSIONS: ["x"], units: "K" },
        "x/.zarray": zarray,
        "x/.zattrs": { _ARRAY_DIMENSIONS: ["x"], units: "m" },
      });
      onProgress((done + 1) / count);
    }
  });
  return stores.map((name) => join(directory, name));
}

/** `.zarray` of an array of float32. */
function arrayDocument(shape: readonly number[], chunks: readonly number[], compressor: object | null) {
  return {
    chunks,
    compressor,
    dimension_separator: ".",
    dtype: "<f4",
    fill_value: "NaN",
    filters: null,
    order: "C",
    shape,
    zarr_format: 2,
  };
}

/** Where the chunk `field/t.y.x` of a grid lies. */
export function boxOf(key: string, chunkShape: readonly [number, number, number]) {
  const [t, y, x] = key
    .slice(key.lastIndexOf("/") + 1)
    .split(".")
    .map(Number) as [number, number, number];
  return { begin: [t * chunkShape[0], y * chunkShape[1], x * chunkShape[2]], length: chunkShape } as const;
}

/** The bytes of one stored file. */
export function storedBytes(store: BenchStore, key: string): Buffer {
  return readFileSync(join(store.directory, key));
}

/** Makes a folder that is there as a whole or not at all, whenever the run that makes it ends. */
export async function makeOnce(
  directory: string,
  make: (unfinished: string) => Promise<void>,
): Promise<void> {
  if (existsSync(directory)) return;
  const unfinished = `${directory}.unfinished`;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { recursive: true });
  await make(unfinished);
  await rename(unfinished, directory);
}

async function writeMetadata(directory: string, metadata: Readonly<Record<string, unknown>>): Promise<void> {
  for (const [key, document] of Object.entries(metadata)) {
    await writeFile(join(directory, key), `${JSON.stringify(document, null, 2)}\n`);
  }
  await writeConsolidated(directory, metadata);
}

async function writeConsolidated(
  directory: string,
  metadata: Readonly<Record<string, unknown>>,
): Promise<void> {
  await writeFile(join(directory, ".zmetadata"), JSON.stringify({ metadata, zarr_consolidated_format: 1 }));
}

/** Age of files that have stood still, in seconds. */
const OLD_SECONDS = 3_600;

/** Dates everything below a folder back by an hour: a server waits before it takes new files for finished. */
export function makeOldTree(directory: string): void {
  const old = Date.now() / 1_000 - OLD_SECONDS;
  for (const entry of readdirSync(directory, { recursive: true }))
    utimesSync(join(directory, String(entry)), old, old);
  utimesSync(directory, old, old);
}
