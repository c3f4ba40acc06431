import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { createRandom } from "../../bench/random.js";
import { type ChainSpec, chainMembers, encodeChain } from "./reference-codecs.js";

/** A type to try: how `.zarray` says it, and one fill value of it. */
export interface TypeSpec {
  readonly dtype: unknown;
  readonly itemSize: number;
  /** JSON text, as numbers beyond 2^53 are not JavaScript's. */
  readonly fillJson: string;
  /** The same as an item. */
  readonly fill: readonly number[];
}

const TYPES: readonly TypeSpec[] = [
  { dtype: "|u1", itemSize: 1, fillJson: "7", fill: [7] },
  { dtype: "|b1", itemSize: 1, fillJson: "true", fill: [1] },
  { dtype: "<i2", itemSize: 2, fillJson: "-2", fill: [0xfe, 0xff] },
  { dtype: ">i4", itemSize: 4, fillJson: "258", fill: [0, 0, 1, 2] },
  { dtype: "<i8", itemSize: 8, fillJson: "9007199254740993", fill: [1, 0, 0, 0, 0, 0, 0x20, 0] },
  { dtype: "<f8", itemSize: 8, fillJson: '"NaN"', fill: [0, 0, 0, 0, 0, 0, 0xf8, 0x7f] },
  { dtype: ">f4", itemSize: 4, fillJson: '"-Infinity"', fill: [0xff, 0x80, 0, 0] },
  { dtype: "|S3", itemSize: 3, fillJson: '"YWJj"', fill: [0x61, 0x62, 0x63] },
  { dtype: "<U1", itemSize: 4, fillJson: '"é"', fill: [0xe9, 0, 0, 0] },
  { dtype: "<M8[s]", itemSize: 8, fillJson: "-9223372036854775808", fill: [0, 0, 0, 0, 0, 0, 0, 0x80] },
  {
    dtype: "<c16",
    itemSize: 16,
    fillJson: "[1.0, -2.0]",
    fill: [0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0xc0],
  },
  {
    dtype: [
      ["a", "<i2"],
      ["b", "|S1"],
    ],
    itemSize: 3,
    fillJson: '"AQJ4"',
    fill: [1, 2, 0x78],
  },
];

/** A Zarr v2 array to write. */
export interface ArraySpec {
  readonly type: TypeSpec;
  readonly hasFill: boolean;
  readonly shape: readonly number[];
  readonly chunkShape: readonly number[];
  readonly order: "C" | "F";
  readonly separator: "." | "/";
  readonly chain: ChainSpec;
  /** Seeds the values. */
  readonly seed: number;
  /** How many of a hundred chunks are not written. */
  readonly missingPercent: number;
}

export const chainArbitrary: fc.Arbitrary<ChainSpec> = fc.record({
  compressor: fc.constantFrom("none", "zlib", "gzip", "zstd", "lz4", "blosc"),
  shuffled: fc.boolean(),
});

/** Chunk lengths for a shape; some are longer than the axis. */
export function chunkShapeArbitrary(shape: readonly number[]): fc.Arbitrary<number[]> {
  return fc.tuple(...shape.map((length) => fc.integer({ min: 1, max: length + 2 })));
}

export const arrayArbitrary: fc.Arbitrary<ArraySpec> = fc
  .array(fc.integer({ min: 0, max: 7 }), { maxLength: 4 })
  .chain((shape) =>
    fc.record({
      type: fc.constantFrom(...TYPES),
      hasFill: fc.boolean(),
      shape: fc.constant(shape),
      chunkShape: chunkShapeArbitrary(shape),
      order: fc.constantFrom("C", "F"),
      separator: fc.constantFrom(".", "/"),
      chain: chainArbitrary,
      seed: fc.nat(),
      missingPercent: fc.constantFrom(0, 30, 100),
    }),
  );

/** Writes a store with one array `a` and returns the array's items in C order, absent chunks filled. */
export async function writeStore(location: string, spec: ArraySpec): Promise<Uint8Array> {
  const { type, shape, chunkShape, order, separator, chain } = spec;
  const document = `{"zarr_format":2,"shape":${JSON.stringify(shape)},"chunks":${JSON.stringify(chunkShape)},
    "dtype":${JSON.stringify(type.dtype)},"fill_value":${spec.hasFill ? type.fillJson : "null"},"order":"${order}",
    "dimension_separator":"${separator}",${chainMembers(chain, type.itemSize)}}`;
  await mkdir(join(location, "a"), { recursive: true });
  await writeFile(join(location, ".zgroup"), '{"zarr_format":2}');
  await writeFile(join(location, "a", ".zarray"), document);

  const values = new Uint8Array(count(shape) * type.itemSize);
  const random = createRandom(spec.seed);
  for (let i = 0; i < values.length; i++) values[i] = random() * 5;
  for (const coords of gridOf(shape, chunkShape)) {
    if (random() * 100 < spec.missingPercent) {
      forEachItem(spec, coords, (inArray) => values.set(fillOf(spec), inArray * type.itemSize));
      continue;
    }
    // What lies beyond the array's end is anybody's.
    const chunk = new Uint8Array(count(chunkShape) * type.itemSize).fill(0xaa);
    forEachItem(spec, coords, (inArray, inChunk) => {
      const item = values.subarray(inArray * type.itemSize, (inArray + 1) * type.itemSize);
      chunk.set(item, inChunk * type.itemSize);
    });
    const file = join(location, "a", coords.join(separator) || "0");
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, await encodeChain(chunk, chain, type.itemSize));
  }
  return values;
}

/** One item of what absent chunks mean. */
export function fillOf({ type, hasFill }: ArraySpec): Uint8Array {
  return hasFill ? Uint8Array.from(type.fill) : new Uint8Array(type.itemSize);
}

interface Layout {
  readonly shape: readonly number[];
  readonly chunkShape: readonly number[];
  readonly order: "C" | "F";
}

/** Calls with the places of every item of a chunk: in the array (C order) and in the chunk; those outside are left out. */
export function forEachItem(
  { shape, chunkShape, order }: Layout,
  coords: readonly number[],
  call: (inArray: number, inChunk: number) => void,
): void {
  for (const inner of gridOf(
    chunkShape,
    chunkShape.map(() => 1),
  )) {
    let inArray = 0;
    let inChunk = 0;
    let isInside = true;
    for (let axis = 0; axis < shape.length; axis++) {
      const place = coords[axis]! * chunkShape[axis]! + inner[axis]!;
      if (place >= shape[axis]!) isInside = false;
      inArray = inArray * shape[axis]! + place;
      if (order === "C") inChunk = inChunk * chunkShape[axis]! + inner[axis]!;
    }
    for (let axis = shape.length - 1; order === "F" && axis >= 0; axis--) {
      inChunk = inChunk * chunkShape[axis]! + inner[axis]!;
    }
    if (isInside) call(inArray, inChunk);
  }
}

/** Coordinates of every chunk, in C order; one `[]` for a scalar. */
export function gridOf(shape: readonly number[], chunkShape: readonly number[]): number[][] {
  let all: number[][] = [[]];
  shape.forEach((length, axis) => {
    const indices = Array.from({ length: Math.ceil(length / chunkShape[axis]!) }, (_, index) => index);
    all = all.flatMap((coords) => indices.map((index) => [...coords, index]));
  });
  return all;
}

export function count(shape: readonly number[]): number {
  return shape.reduce((product, length) => product * length, 1);
}
