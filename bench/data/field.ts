import { linkSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type FieldStore, storedBytes } from "./bench-data.js";

/** A box of the field: begin and length along (time, y, x). */
export interface FieldBox {
  readonly begin: readonly [number, number, number];
  readonly length: readonly [number, number, number];
}

/** Elements of the field along y and along x. */
export const FIELD_SIDE = 2048;

/** Range of the noise: Blosc-LZ4 leaves about 590 KB of 1 MiB, as it does of measured fields. */
const NOISE_RANGE = 0.8;

const WAVES_Y = Float64Array.from({ length: FIELD_SIDE }, (_, y) => Math.sin((y / FIELD_SIDE) * 5 + 0.3));
const WAVES_X = Float64Array.from({ length: FIELD_SIDE }, (_, x) => 30 * Math.cos((x / FIELD_SIDE) * 7));

/**
 * The field's values in a box, in C order: a smooth field near 300 with noise in the low bits. A value depends on its
 * place alone, so that any chunk of any shape can be made again and compared.
 */
export function fieldValues({ begin, length }: FieldBox): Float32Array {
  const values = new Float32Array(length[0] * length[1] * length[2]);
  let to = 0;
  for (let t = begin[0]; t < begin[0] + length[0]; t++) {
    for (let y = begin[1]; y < begin[1] + length[1]; y++) {
      const wave = WAVES_Y[y]!;
      const seed = (t * FIELD_SIDE + y) * FIELD_SIDE;
      const level = 300 + t * 0.11;
      for (let x = begin[2]; x < begin[2] + length[2]; x++) {
        let noise = Math.imul(seed + x, 0x9e3779b1);
        noise = Math.imul(noise ^ (noise >>> 15), 0x85ebca77);
        noise = Math.imul(noise ^ (noise >>> 13), 0xc2b2ae3d);
        values[to++] =
          level + wave * WAVES_X[x]! + ((noise ^ (noise >>> 16)) >>> 0) * (NOISE_RANGE / 2 ** 32);
      }
    }
  }
  return values;
}

/** How values of the field are stored, by numpy's name of the type; as archives of measured data do it. */
export const FIELD_TYPES = {
  /** Steps of a third of a kelvin, as of a satellite's brightness temperature. */
  "|u1": (values: Float32Array) => Uint8Array.from(values, (kelvin) => (kelvin - 262) * 3),
  /** Packed, as by `scale_factor` 0.01 and `add_offset` 273.15. */
  "<i2": (values: Float32Array) => Int16Array.from(values, (kelvin) => Math.round((kelvin - 273.15) * 100)),
  /** As they are. */
  "<f4": (values: Float32Array) => values,
  /** Converted to degrees Fahrenheit, which leaves no bit of the mantissa empty. */
  "<f8": (values: Float32Array) => Float64Array.from(values, (kelvin) => kelvin * 1.8 - 459.67),
} as const;

/** One of `FIELD_TYPES`. */
export type FieldType = keyof typeof FIELD_TYPES;

/** Elements along x of a chunk. */
const COLUMNS = 512;

/** Bytes of an item. */
export function itemSizeOf(type: FieldType): number {
  return Number(type.slice(2));
}

/**
 * One chunk of the field as a type of so many bytes: the bytes as they are stored, little-endian. Chunks of other numbers
 * are of other places and times.
 * @param byteLength At most 1 MiB times the item size, in whole rows of 512 items.
 */
export function typedChunk(type: FieldType, number: number, byteLength: number): Uint8Array {
  const rows = byteLength / itemSizeOf(type) / COLUMNS;
  const x = (number * COLUMNS) % FIELD_SIDE;
  const values = fieldValues({ begin: [number, 0, x], length: [1, rows, COLUMNS] });
  const { buffer, byteOffset, byteLength: length } = FIELD_TYPES[type](values);
  return new Uint8Array(buffer, byteOffset, length);
}

/**
 * Makes a store whose planes repeat those of a field along y and x. Its chunks are links to the field's files, so that gigabytes
 * take no room.
 * @param steps Of the field, at most as many as it has.
 * @returns The directory of the store, whose array is called `field`, too.
 */
export function tileField(store: FieldStore, directory: string, steps: number, tiles: number): string {
  mkdirSync(join(directory, "field"), { recursive: true });
  const perField = FIELD_SIDE / store.chunkSide;
  const perSide = perField * tiles;
  for (let step = 0; step < steps; step++) {
    for (let y = 0; y < perSide; y++)
      for (let x = 0; x < perSide; x++)
        linkSync(
          join(store.directory, `field/${step}.${y % perField}.${x % perField}`),
          join(directory, `field/${step}.${y}.${x}`),
        );
  }
  const side = FIELD_SIDE * tiles;
  const zarray = JSON.parse(storedBytes(store, "field/.zarray").toString());
  writeFileSync(join(directory, "field/.zarray"), JSON.stringify({ ...zarray, shape: [steps, side, side] }));
  writeFileSync(join(directory, "field/.zattrs"), storedBytes(store, "field/.zattrs"));
  writeFileSync(join(directory, ".zgroup"), JSON.stringify({ zarr_format: 2 }));
  return directory;
}
