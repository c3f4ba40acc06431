import { gather } from "../../../src/codec/copy-strided.js";
import { encodeSteps } from "../../../src/codec/run-steps.js";
import { elementCount, gridShapeOf } from "../../../src/model/data-tree.js";
import type { ChunkReader } from "../../../src/zarr/chunk-reader.js";
import type { CodecStep } from "../../../src/zarr/codec-step.js";
import type { StoredArray } from "../../../src/zarr/stored-array.js";
import { stepOf } from "../codec/steps.js";

/** Every position of a grid. */
export function* gridPositions(gridShape: readonly number[]): Generator<number[]> {
  const [first, ...rest] = gridShape;
  if (first === undefined) {
    yield [];
    return;
  }
  for (let index = 0; index < first; index++) {
    for (const position of gridPositions(rest)) yield [index, ...position];
  }
}

/** Items of a whole array in C order: recognisable, and never zero. */
export function arrayBytes(shape: readonly number[], itemSize: number): Uint8Array {
  return new Uint8Array(elementCount(shape) * itemSize).map((_, index) => 1 + ((index * 7) % 250));
}

/** The steps of stored codecs, innermost first; only for codecs that keep lengths or know none. */
export function stepsOf(stored: StoredArray): CodecStep[] {
  let byteLength: number | null = elementCount(stored.chunkShape) * stored.dataType.itemSize;
  return stored.codecs.map((codec) => {
    const step = stepOf(codec, byteLength, stored.dataType.itemSize);
    byteLength = codec.id === "shuffle" ? byteLength : null;
    return step;
  });
}

/** A reader of an array's chunks, encoded as the array says; counts what it is asked. */
export async function readerOf(
  stored: StoredArray,
  bytes: Uint8Array,
  isAbsent: (coords: readonly number[]) => boolean = () => false,
): Promise<ChunkReader & { reads: number }> {
  const { shape, chunkShape, axisOrder, dataType } = stored;
  const whole = {
    bytes,
    origin: shape.map(() => 0),
    chunkShape: shape,
    axisOrder: shape.map((_, axis) => axis),
  };
  const chunks = new Map<string, Uint8Array>();
  for (const coords of gridPositions(gridShapeOf(shape, chunkShape))) {
    if (isAbsent(coords)) continue;
    // What lies outside the array is garbage that must never be served after a rechunk.
    const raw = new Uint8Array(elementCount(chunkShape) * dataType.itemSize).fill(0xee);
    const origin = coords.map((index, axis) => index * chunkShape[axis]!);
    gather(whole, { bytes: raw, origin, chunkShape, axisOrder }, shape, dataType.itemSize);
    chunks.set(coords.join("."), await encodeSteps(raw, stepsOf(stored), "test"));
  }
  const reader = {
    reads: 0,
    version: (coords: readonly number[]) => ({
      token: chunks.has(coords.join(".")) ? `s${coords.join(".")}` : undefined,
    }),
    async read(coords: readonly number[]) {
      reader.reads++;
      const chunk = chunks.get(coords.join("."));
      return chunk && { bytes: chunk.slice(), version: `s${coords.join(".")}` };
    },
  };
  return reader;
}

/** A reader of the same chunks as `reader`, of which some are encoded as the array's variants say. */
export async function mixedReaderOf(
  stored: StoredArray,
  bytes: Uint8Array,
  reader: ChunkReader,
): Promise<ChunkReader> {
  const variants = stored.variants ?? [];
  const readers = [reader];
  for (const codecs of variants) readers.push(await readerOf({ ...stored, codecs }, bytes));
  const variantOf = (coords: readonly number[]) =>
    coords.reduce((sum, index, axis) => sum + index * (axis + 1), 0) % readers.length;
  return {
    version: reader.version,
    places: { has: () => true, variantOf, placeOf: undefined },
    async read(coords) {
      const variant = variantOf(coords);
      const found = (await reader.read(coords)) && (await readers[variant]?.read(coords));
      return found && { ...found, variant };
    },
  };
}
