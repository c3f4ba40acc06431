import { decodeSteps } from "../../src/codec/run-steps.js";
import type { FileBlocks, FileFormat } from "../../src/formats/file-format.js";
import type { FileArray, FileIndex } from "../../src/formats/file-index.js";
import { elementCount, gridShapeOf } from "../../src/model/data-tree.js";
import { parseDataType } from "../../src/model/data-type.js";
import { createSteps } from "../../src/zarr/plan/codec-steps.js";
import type { StoredArray } from "../../src/zarr/stored-array.js";

/** Returns an array of an index by its path: `band_data`, `overview_1/x`. @throws Error if there is none */
export function arrayAt(index: FileIndex, path: string): FileArray {
  const cut = path.lastIndexOf("/");
  const group = index.groups.find(
    ({ path: found }) => found === (cut === -1 ? "/" : `/${path.slice(0, cut)}`),
  );
  const array = group?.arrays.find(({ name }) => name === path.slice(cut + 1));
  if (array === undefined) throw new Error(`no array ${path}`);
  return array;
}

/** Reads all items of an array in C order, chunk by chunk: a slow way that owes nothing to the server's. */
export async function readArray(
  file: FileBlocks,
  array: FileArray,
  makeChunk?: FileFormat["makeChunk"],
): Promise<Uint8Array> {
  const { shape, chunkShape } = array;
  const dataType = parseDataType(array.dtype);
  const { itemSize } = dataType;
  const whole = new Uint8Array(elementCount(shape) * itemSize);
  const grid = gridShapeOf(shape, chunkShape);
  const stored = { ...array, dataType, path: array.name } as unknown as StoredArray;
  const steps = [array.codecs, ...(array.variants ?? [])].map((codecs) =>
    createSteps(stored, codecs, chunkShape, 2 ** 30).reverse(),
  );
  for (let number = 0; number < elementCount(grid); number++) {
    const coords = coordinatesOf(number, grid);
    const found = await chunkBytes(file, array, coords, number, makeChunk);
    const chunk =
      found && (await decodeSteps(found.bytes, steps[found.variant] ?? [], `chunk ${coords.join(".")}`));
    if (chunk !== undefined && chunk.length !== elementCount(chunkShape) * itemSize) {
      throw new Error(`chunk ${coords.join(".")} has ${chunk.length} bytes`);
    }
    place(whole, chunk, array, coords, itemSize);
  }
  return whole;
}

async function chunkBytes(
  file: FileBlocks,
  { chunks, chunkShape, shape }: FileArray,
  coords: readonly number[],
  number: number,
  makeChunk: FileFormat["makeChunk"],
): Promise<{ bytes: Uint8Array; variant: number } | undefined> {
  switch (chunks.kind) {
    case "listed": {
      const at = chunks.numbers?.indexOf(number) ?? number;
      const offset = chunks.offsets[at] ?? -1;
      if (offset === -1) return undefined;
      const bytes = await file.readOnce(offset, chunks.byteLengths[at] as number);
      return { bytes, variant: chunks.variants?.[at] ?? 0 };
    }
    case "strided": {
      const { byteLength, last, start, strides } = chunks;
      const offset = coords.reduce((sum, coord, axis) => sum + coord * (strides[axis] as number), start);
      const isLast =
        last !== undefined &&
        ((coords[last.axis] as number) + 1) * (chunkShape[last.axis] as number) >=
          (shape[last.axis] as number);
      const bytes = new Uint8Array(byteLength);
      bytes.set(await file.readOnce(offset, isLast ? last.byteLength : byteLength));
      return { bytes, variant: 0 };
    }
    case "inline":
      return chunks.bytes === null ? undefined : { bytes: chunks.bytes, variant: 0 };
    case "made": {
      const bytes = await makeChunk?.(file, chunks.recipe, coords);
      return bytes && { bytes, variant: 0 };
    }
  }
}

/** Copies the rows of a chunk to their places, or its single items if they are not in C order. */
function place(
  whole: Uint8Array,
  chunk: Uint8Array | undefined,
  { shape, chunkShape, fill, axisOrder }: FileArray,
  coords: readonly number[],
  itemSize: number,
): void {
  const order = axisOrder ?? shape.map((_, axis) => axis);
  const ordered = order.map((axis) => chunkShape[axis] as number);
  const rowItems = order.every((axis, at) => axis === at) ? (chunkShape.at(-1) ?? 1) : 1;
  for (let item = 0; item < elementCount(chunkShape); item += rowItems) {
    const inChunk = coordinatesOf(item, ordered);
    const at = coords.map(
      (coord, axis) => coord * (chunkShape[axis] as number) + (inChunk[order.indexOf(axis)] as number),
    );
    if (at.some((index, axis) => index >= (shape[axis] as number))) continue;
    const first = at.reduce((sum, index, axis) => sum * (shape[axis] as number) + index, 0);
    const count = Math.min(rowItems, (shape.at(-1) ?? 1) - (at.at(-1) ?? 0));
    const from = first * itemSize;
    if (chunk !== undefined) whole.set(chunk.subarray(item * itemSize, (item + count) * itemSize), from);
    else for (let i = 0; i < count; i++) whole.set(fill.item ?? [], from + i * itemSize);
  }
}

function coordinatesOf(number: number, grid: readonly number[]): number[] {
  const coords = grid.map(() => 0);
  for (let axis = grid.length - 1, rest = number; axis >= 0; axis--) {
    coords[axis] = rest % (grid[axis] as number);
    rest = Math.floor(rest / (grid[axis] as number));
  }
  return coords;
}
