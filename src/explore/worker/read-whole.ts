import { type Packing, packingOf } from "../../cf/packing.js";
import type { VariableDescription } from "../dataset-description.js";
import type { Resolution } from "./chunk-plan.js";
import { PRIORITY } from "./chunk-queue.js";
import type { Chunk, DatasetSession } from "./dataset-session.js";
import { ReadFailure } from "./fetch-bytes.js";
import { unpacked } from "./picture/byte-scale.js";
import type { ReadableDocument } from "./readable-document.js";

/** Longest array that is read as a whole: a longer axis counts cells. */
export const MAX_WHOLE_VALUES = 2 ** 22;

/** Values of a whole array in C order. */
export interface WholeArray {
  /** Unpacked, NaN for missing ones; undefined if it holds texts. */
  readonly numbers: Float64Array<ArrayBuffer> | undefined;
  readonly texts: string[] | undefined;
  /** 64-bit integers as they are; undefined for other types. An absent one is undefined. */
  readonly exact: (bigint | undefined)[] | undefined;
}

/**
 * Reads a whole coordinate. It has no missing values (CF section 2.5.1) but those of its attributes: the array's fill value is one of
 * its numbers, such as the longitude 0, and is that of absent chunks.
 * @param source The variable itself, or a coarser resolution of it.
 * @throws ReadFailure
 */
export async function readWhole(
  session: DatasetSession,
  variable: VariableDescription,
  source: Pick<Resolution, "level" | "path" | "shape" | "chunkShape"> = { level: 0, ...variable },
): Promise<WholeArray> {
  const { shape, chunkShape } = source;
  const { dataType } = variable;
  const count = product(shape);
  if (count > MAX_WHOLE_VALUES)
    throw new ReadFailure(
      `"${source.path}" has ${count} values, more than are read at once (${MAX_WHOLE_VALUES}).`,
    );
  const grid = shape.map((length, axis) => Math.ceil(length / chunkShape[axis]!));
  const chunks = await Promise.all(
    Array.from(indicesOf(grid), async (coords) => ({
      coords,
      chunk: await session.queue.read(session.job(source, coords), PRIORITY.coordinate),
    })),
  );
  const isText = "SUO".includes(dataType.kind);
  const hasExact = dataType.itemSize === 8 && "iuMm".includes(dataType.kind);
  const document = session.documentOf(source);
  const ofLevel = source.level === 0 ? variable.packing : document.packing;
  const packing: Packing = { ...ofLevel, missing: packingOf(variable.attrs).missing };
  const whole = {
    numbers: isText ? undefined : new Float64Array(count),
    texts: isText ? new Array<string>(count).fill("") : undefined,
    exact: hasExact ? new Array<bigint | undefined>(count) : undefined,
  };
  for (const { coords, chunk } of chunks) copyChunk(whole, chunk, coords, document, packing);
  return whole;
}

function copyChunk(
  { numbers, texts, exact }: WholeArray,
  chunk: Chunk,
  coords: readonly number[],
  { shape, chunkShape, strides, fill, fillText }: ReadableDocument,
  packing: Packing,
): void {
  const begins = coords.map((index, axis) => index * chunkShape[axis]!);
  const lengths = chunkShape.map((length, axis) => Math.min(length, shape[axis]! - begins[axis]!));
  const last = shape.length - 1;
  const [rowLength, rowStride] = last === -1 ? [1, 1] : [lengths[last]!, strides[last]!];
  for (const row of indicesOf(lengths.slice(0, Math.max(0, last)))) {
    let to = 0;
    let from = 0;
    shape.forEach((length, axis) => {
      const within = axis === last ? 0 : row[axis]!;
      to = to * length + begins[axis]! + within;
      from += within * strides[axis]!;
    });
    for (let index = 0; index < rowLength; index++, to++, from += rowStride) {
      if (numbers !== undefined) numbers[to] = unpacked(chunk?.numbers?.[from] ?? fill, packing);
      if (texts !== undefined) texts[to] = chunk?.texts?.[from] ?? fillText;
      if (exact !== undefined) exact[to] = chunk?.exact?.[from] as bigint | undefined;
    }
  }
}

/** Yields all indices of a shape in C order; one without axes for a scalar, none if an axis has no length. */
export function* indicesOf(shape: readonly number[]): Generator<readonly number[]> {
  const count = product(shape);
  const index = shape.map(() => 0);
  for (let position = 0; position < count; position++) {
    yield index.slice();
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      index[axis] = index[axis]! + 1;
      if (index[axis]! < shape[axis]!) break;
      index[axis] = 0;
    }
  }
}

function product(lengths: readonly number[]): number {
  return lengths.reduce((result, length) => result * length, 1);
}
