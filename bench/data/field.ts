/** A box of the field: begin and length along (time, y, x). */
export interface FieldBox {
  readonly begin: readonly [number, number, number];
  readonly length: readonly [number, number, number];
}

/** Elements of the field along y and along x. */
export const FIELD_SIDE = 2048;

/** Of the noise; so much of it that Blosc-LZ4 leaves about 590 KB of 1 MiB, as it does of measured fields. */
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
