import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import Blosc from "numcodecs/blosc";
import Zstd from "numcodecs/zstd";

/** Numbers as they are stored, or texts (one axis, one chunk). */
export type DemoValues =
  | Float32Array
  | Float64Array
  | Int8Array
  | Int16Array
  | Int32Array
  | readonly string[];

export interface DemoArray {
  /** Below the root, without a leading slash. */
  readonly path: string;
  readonly dims: readonly string[];
  readonly shape: readonly number[];
  readonly chunkShape: readonly number[];
  /** Elements per axis of a shard: a whole number of chunks. Version 3 only; without it a chunk is a file. */
  readonly shardShape?: readonly number[];
  readonly values: DemoValues;
  /** What chunks are padded with; a chunk of nothing else is not written. */
  readonly fillValue: number | string | null;
  readonly attrs: Readonly<Record<string, unknown>>;
}

export interface DemoStore {
  /** Attributes by path; `""` is the root. */
  readonly groups: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly arrays: readonly DemoArray[];
}

const NUMERIC_TYPES = {
  Float32Array: { v2: "<f4", v3: "float32" },
  Float64Array: { v2: "<f8", v3: "float64" },
  Int8Array: { v2: "|i1", v3: "int8" },
  Int16Array: { v2: "<i2", v3: "int16" },
  Int32Array: { v2: "<i4", v3: "int32" },
} as const;

const BLOSC = { cname: "lz4", clevel: 5, shuffle: 1, blocksize: 0 } as const;
const ZSTD_LEVEL = 3;

/** Writes a Zarr v2 store as xarray does: Blosc, `_ARRAY_DIMENSIONS`, consolidated metadata. Numbers only. */
export async function writeV2Store(directory: string, { groups, arrays }: DemoStore): Promise<void> {
  const codec = Blosc.fromConfig({ id: "blosc", ...BLOSC });
  const metadata: Record<string, unknown> = {};
  for (const [path, attrs] of Object.entries(groups)) {
    metadata[join(path, ".zgroup")] = { zarr_format: 2 };
    metadata[join(path, ".zattrs")] = attrs;
  }
  for (const array of arrays) {
    metadata[`${array.path}/.zarray`] = {
      chunks: array.chunkShape,
      compressor: { id: "blosc", ...BLOSC },
      dtype: NUMERIC_TYPES[typeNameOf(array)].v2,
      fill_value: array.fillValue,
      filters: null,
      order: "C",
      shape: array.shape,
      zarr_format: 2,
    };
    metadata[`${array.path}/.zattrs`] = { ...array.attrs, _ARRAY_DIMENSIONS: array.dims };
    for (const coords of coordsOf(gridOf(array.shape, array.chunkShape))) {
      const bytes = chunkBytes(array, coords);
      if (bytes === undefined) continue;
      await writeBytes(join(directory, array.path, coords.join(".") || "0"), await codec.encode(bytes));
    }
  }
  for (const [key, document] of Object.entries(metadata)) await writeJson(join(directory, key), document);
  await writeJson(join(directory, ".zmetadata"), { metadata, zarr_consolidated_format: 1 });
}

/** Writes a Zarr v3 store: Zstandard, dimension names, and shards if requested; not consolidated. */
export async function writeV3Store(directory: string, { groups, arrays }: DemoStore): Promise<void> {
  const codec = Zstd.fromConfig({ id: "zstd", level: ZSTD_LEVEL });
  for (const [path, attributes] of Object.entries(groups)) {
    await writeJson(join(directory, path, "zarr.json"), { zarr_format: 3, node_type: "group", attributes });
  }
  for (const array of arrays) {
    await writeJson(join(directory, array.path, "zarr.json"), v3Document(array));
    const { chunkShape, shardShape = chunkShape } = array;
    const chunksPerShard = gridOf(shardShape, chunkShape);
    for (const shard of coordsOf(gridOf(array.shape, shardShape))) {
      const chunks: (Uint8Array | undefined)[] = [];
      for (const inner of coordsOf(chunksPerShard)) {
        const bytes = chunkBytes(
          array,
          inner.map((index, axis) => at(shard, axis) * at(chunksPerShard, axis) + index),
        );
        chunks.push(bytes === undefined ? undefined : Uint8Array.from(await codec.encode(bytes)));
      }
      if (chunks.every((chunk) => chunk === undefined)) continue;
      const file = array.shardShape === undefined ? (chunks[0] as Uint8Array) : joinShard(chunks);
      await writeBytes(join(directory, array.path, "c", ...shard.map(String)), file);
    }
  }
}

function v3Document(array: DemoArray): unknown {
  const isText = Array.isArray(array.values);
  const codecs = [
    isText ? { name: "vlen-utf8" } : { name: "bytes", configuration: { endian: "little" } },
    { name: "zstd", configuration: { level: ZSTD_LEVEL, checksum: false } },
  ];
  const sharded = {
    name: "sharding_indexed",
    configuration: {
      chunk_shape: array.chunkShape,
      codecs,
      index_codecs: [{ name: "bytes", configuration: { endian: "little" } }, { name: "crc32c" }],
      index_location: "end",
    },
  };
  return {
    zarr_format: 3,
    node_type: "array",
    shape: array.shape,
    data_type: isText ? "string" : NUMERIC_TYPES[typeNameOf(array)].v3,
    chunk_grid: { name: "regular", configuration: { chunk_shape: array.shardShape ?? array.chunkShape } },
    chunk_key_encoding: { name: "default", configuration: { separator: "/" } },
    codecs: array.shardShape === undefined ? codecs : [sharded],
    fill_value: array.fillValue ?? 0,
    dimension_names: array.dims,
    attributes: array.attrs,
  };
}

function typeNameOf({ values }: DemoArray): keyof typeof NUMERIC_TYPES {
  return values.constructor.name as keyof typeof NUMERIC_TYPES;
}

function at(list: readonly number[], axis: number): number {
  return list[axis] as number;
}

function gridOf(shape: readonly number[], chunkShape: readonly number[]): number[] {
  return shape.map((length, axis) => Math.ceil(length / at(chunkShape, axis)));
}

/** All coordinates of a grid, the last axis fastest; one of no axes for a scalar. */
function coordsOf(grid: readonly number[]): number[][] {
  return grid.reduce<number[][]>(
    (before, length) => before.flatMap((coords) => Array.from({ length }, (_, index) => [...coords, index])),
    [[]],
  );
}

/** A full chunk, padded with the fill value; undefined if it holds nothing else. */
function chunkBytes(array: DemoArray, coords: readonly number[]): Uint8Array | undefined {
  const { values, shape, chunkShape, fillValue } = array;
  if (isTexts(values)) return encodeTexts(values);
  const fill = Number(fillValue ?? 0);
  const chunkLength = chunkShape.reduce((product, length) => product * length, 1);
  const chunk = new (values.constructor as new (length: number) => Exclude<DemoValues, readonly string[]>)(
    chunkLength,
  );
  chunk.fill(fill);
  const origin = chunkShape.map((length, axis) => at(coords, axis) * length);
  const inside = chunkShape.map((length, axis) => Math.min(length, at(shape, axis) - at(origin, axis)));
  const lastAxis = shape.length - 1;
  // A grid of shards may reach beyond the array by whole chunks.
  if (inside.some((length) => length <= 0)) return undefined;
  for (const row of coordsOf(inside.slice(0, -1))) {
    let from = 0;
    let to = 0;
    for (let axis = 0; axis <= lastAxis; axis += 1) {
      const index = axis === lastAxis ? 0 : at(row, axis);
      from = from * at(shape, axis) + at(origin, axis) + index;
      to = to * at(chunkShape, axis) + index;
    }
    chunk.set(values.subarray(from, from + (inside[lastAxis] ?? 1)), to);
  }
  if (fillValue !== null && chunk.every((value) => Object.is(value, fill))) return undefined;
  return new Uint8Array(chunk.buffer);
}

function isTexts(values: DemoValues): values is readonly string[] {
  return Array.isArray(values);
}

/** `vlen-utf8`: how many there are, then length and UTF-8 of each. */
function encodeTexts(texts: readonly string[]): Uint8Array {
  const parts = texts.map((text) => Buffer.from(text, "utf8"));
  return Buffer.concat([uint32(parts.length), ...parts.flatMap((part) => [uint32(part.length), part])]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

/** Chunks one after another, then (offset, length) of each and the crc32c of that; absent ones are all ones. */
function joinShard(chunks: readonly (Uint8Array | undefined)[]): Uint8Array {
  const index = Buffer.alloc(16 * chunks.length, 0xff);
  let offset = 0;
  chunks.forEach((chunk, position) => {
    if (chunk === undefined) return;
    index.writeBigUInt64LE(BigInt(offset), 16 * position);
    index.writeBigUInt64LE(BigInt(chunk.length), 16 * position + 8);
    offset += chunk.length;
  });
  return Buffer.concat([...chunks.filter((chunk) => chunk !== undefined), index, uint32(crc32c(index))]);
}

function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc >>> 0;
}

async function writeBytes(path: string, bytes: Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, bytes);
}

async function writeJson(path: string, value: unknown): Promise<void> {
  await writeBytes(path, Buffer.from(`${JSON.stringify(value, null, 2)}\n`, "utf8"));
}
