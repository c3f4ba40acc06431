import { FIELD_SIDE, fieldValues } from "./field.js";

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
