import { gzipSync } from "node:zlib";
import { combinations } from "../../src/collections/combinations.js";
import { v3Group, writeFiles } from "./write-store.js";

/** Items of the types that are written here, by their names in Zarr v3. */
const TYPES = {
  uint8: Uint8Array,
  int16: Int16Array,
  int32: Int32Array,
  float32: Float32Array,
  float64: Float64Array,
} as const;

/** An array of Zarr v3 whose chunks have unequal lengths. */
export interface RectilinearSpec {
  readonly type: keyof typeof TYPES;
  readonly shape: readonly number[];
  /** Lengths of the chunks along each axis; of shards if there is `inner`. Those behind the array are not written. */
  readonly lengths: readonly (readonly number[])[];
  /** Lengths to which they decode, as `encoded_chunk_shapes`. */
  readonly decodedLengths?: readonly (readonly number[])[] | undefined;
  /** Shape of the chunks in a shard. */
  readonly inner?: readonly number[] | undefined;
  readonly axisOrder?: readonly number[] | undefined;
  readonly isCompressed?: boolean;
  readonly keyEncoding?: { readonly name: "default" | "v2"; readonly separator: "." | "/" };
  readonly fill?: number;
  readonly names?: readonly string[] | undefined;
  /** Tells which chunks are not written. Default: none. */
  readonly isAbsent?: (coords: readonly number[]) => boolean;
  /** Returns an item by its place in C order. */
  readonly valueAt?: (place: number) => number;
}

/** Writes `v`, and a group around it. @returns Its items in C order; those of absent chunks are the fill value. */
export async function writeRectilinear(directory: string, spec: RectilinearSpec): Promise<number[]> {
  const { files, items } = rectilinearFiles(spec);
  await writeFiles(directory, { "zarr.json": v3Group, ...prefixed(files, "v/") });
  return items;
}

function prefixed<T>(files: Readonly<Record<string, T>>, prefix: string): Record<string, T> {
  return Object.fromEntries(Object.entries(files).map(([name, file]) => [prefix + name, file]));
}

/** Makes the files of an array, its document among them, and its items in C order. */
export function rectilinearFiles(spec: RectilinearSpec) {
  const { shape, lengths, decodedLengths = lengths, fill = 0, isAbsent = () => false } = spec;
  const { keyEncoding = { name: "default", separator: "/" } } = spec;
  const { valueAt = (place) => (place * 7 + 3) % 251 } = spec;
  const Items = TYPES[spec.type];
  const items: number[] = new Array(shape.reduce((product, length) => product * length, 1)).fill(fill);
  const files: Record<string, object | Uint8Array> = { "zarr.json": documentOf(spec) };
  const along = lengths.map((list, axis) => chunksOf(list, decodedLengths[axis]!, shape[axis]!));
  for (const chunks of combinations(along)) {
    const coords = chunks.map(({ index }) => index);
    if (isAbsent(coords)) continue;
    const decoded = chunks.map(({ decoded }) => decoded);
    // What lies beyond the array, or is ignored, is anybody's.
    const chunk = new Items(decoded.reduce((product, length) => product * length, 1)).fill(99);
    for (const inner of places(decoded)) {
      const isInside = inner.every((place, axis) => {
        const { start, length } = chunks[axis]!;
        return place < length && start + place < shape[axis]!;
      });
      if (!isInside) continue;
      const place = offsetOf(
        inner.map((each, axis) => each + chunks[axis]!.start),
        shape,
      );
      chunk[offsetOf(inner, decoded)] = valueAt(place);
      items[place] = chunk[offsetOf(inner, decoded)]!;
    }
    const { name, separator } = keyEncoding;
    const key = [...(name === "default" ? ["c"] : []), ...coords].join(separator) || "0";
    files[key] = spec.inner === undefined ? encode(chunk, decoded, spec) : shardOf(chunk, decoded, spec);
  }
  return { files, items };
}

/** Lists the chunks along an axis that have items of the array. */
function chunksOf(lengths: readonly number[], decodedLengths: readonly number[], extent: number) {
  const starts = lengths.map((_, index) => lengths.slice(0, index).reduce((sum, length) => sum + length, 0));
  return lengths
    .map((length, index) => ({ index, start: starts[index]!, length, decoded: decodedLengths[index]! }))
    .filter(({ start }) => start < extent);
}

function documentOf(spec: RectilinearSpec): object {
  const { shape, lengths, decodedLengths, inner, keyEncoding, fill = 0, names } = spec;
  const chain = [
    ...(spec.axisOrder ? [{ name: "transpose", configuration: { order: spec.axisOrder } }] : []),
    { name: "bytes", configuration: { endian: "little" } },
    ...(spec.isCompressed ? [{ name: "gzip", configuration: { level: 1 } }] : []),
  ];
  const index_codecs = [{ name: "bytes", configuration: { endian: "little" } }];
  const sharding = { chunk_shape: inner, codecs: chain, index_codecs };
  return {
    zarr_format: 3,
    node_type: "array",
    shape,
    data_type: spec.type,
    chunk_grid: {
      name: "rectilinear",
      configuration: {
        kind: "inline",
        chunk_shapes: lengths.map(spelled),
        ...(decodedLengths && { encoded_chunk_shapes: decodedLengths.map(spelled) }),
      },
    },
    chunk_key_encoding: {
      name: keyEncoding?.name ?? "default",
      configuration: { separator: keyEncoding?.separator ?? "/" },
    },
    fill_value: fill,
    codecs: inner ? [{ name: "sharding_indexed", configuration: sharding }] : chain,
    ...(names && { dimension_names: names }),
  };
}

/** Writes lengths as zarr-python does: repeated ones as pairs. Every third list stays as it is. */
function spelled(lengths: readonly number[], axis: number): unknown {
  if (axis % 3 === 2) return lengths;
  const runs: [length: number, count: number][] = [];
  for (const length of lengths) {
    const last = runs.at(-1);
    if (last?.[0] === length) last[1] += 1;
    else runs.push([length, 1]);
  }
  return runs.map(([length, count]) => (count === 1 ? length : [length, count]));
}

type Items = InstanceType<(typeof TYPES)[keyof typeof TYPES]>;

function encode(
  chunk: Items,
  shape: readonly number[],
  { axisOrder, isCompressed }: RectilinearSpec,
): Uint8Array {
  const stored = chunk.slice();
  if (axisOrder !== undefined) {
    const transposed = axisOrder.map((axis) => shape[axis]!);
    for (const inner of places(shape))
      stored[
        offsetOf(
          axisOrder.map((axis) => inner[axis]!),
          transposed,
        )
      ] = chunk[offsetOf(inner, shape)]!;
  }
  const bytes = new Uint8Array(stored.buffer, stored.byteOffset, stored.byteLength);
  return isCompressed ? gzipSync(bytes, { level: 1 }) : bytes;
}

/** Encodes a shard, with its index at the end. */
function shardOf(shard: Items, shape: readonly number[], spec: RectilinearSpec): Uint8Array {
  const inner = spec.inner!;
  const parts: Uint8Array[] = [];
  const entries: bigint[] = [];
  let offset = 0;
  for (const coords of places(shape.map((length, axis) => length / inner[axis]!))) {
    const chunk = shard.slice(
      0,
      inner.reduce((product, length) => product * length, 1),
    );
    for (const place of places(inner))
      chunk[offsetOf(place, inner)] =
        shard[
          offsetOf(
            place.map((each, axis) => coords[axis]! * inner[axis]! + each),
            shape,
          )
        ]!;
    const bytes = encode(chunk, inner, spec);
    entries.push(BigInt(offset), BigInt(bytes.length));
    parts.push(bytes);
    offset += bytes.length;
  }
  return Buffer.concat([...parts, new Uint8Array(BigUint64Array.from(entries).buffer)]);
}

function places(shape: readonly number[]): Iterable<number[]> {
  return combinations(shape.map((length) => Array.from({ length }, (_, place) => place)));
}

function offsetOf(place: readonly number[], shape: readonly number[]): number {
  return place.reduce((offset, each, axis) => offset * shape[axis]! + each, 0);
}
