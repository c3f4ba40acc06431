import { decodeSteps } from "../../../src/codec/run-steps.js";
import type { FileBlocks } from "../../../src/formats/file-format.js";
import type { FileArray, FileIndex } from "../../../src/formats/file-index.js";
import { tiffFormat } from "../../../src/formats/tiff/tiff-format.js";
import { elementCount, gridShapeOf } from "../../../src/model/data-tree.js";
import { parseDataType } from "../../../src/model/data-type.js";
import { createSteps } from "../../../src/zarr/plan/codec-steps.js";
import type { StoredArray } from "../../../src/zarr/stored-array.js";

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
export async function readArray(file: FileBlocks, array: FileArray): Promise<Uint8Array> {
  const dataType = parseDataType(array.dtype);
  const { itemSize } = dataType;
  const whole = new Uint8Array(elementCount(array.shape) * itemSize);
  const grid = gridShapeOf(array.shape, array.chunkShape);
  const axisOrder = array.axisOrder ?? array.shape.map((_, axis) => axis);
  const stored = { ...array, dataType, path: array.name } as unknown as StoredArray;
  for (let number = 0; number < elementCount(grid); number++) {
    const coords = coordinatesOf(number, grid);
    const found = await chunkBytes(file, array, coords, number);
    const codecs =
      found === undefined ? [] : found.variant === 0 ? array.codecs : array.variants?.[found.variant - 1];
    if (codecs === undefined) throw new Error(`no variant ${found?.variant}`);
    const steps = createSteps(stored, codecs, array.chunkShape, 2 ** 30).reverse();
    const chunk = found && (await decodeSteps(found.bytes, steps, `chunk ${coords.join(".")}`));
    if (chunk !== undefined && chunk.length !== elementCount(array.chunkShape) * itemSize) {
      throw new Error(`chunk ${coords.join(".")} has ${chunk.length} bytes`);
    }
    place(whole, chunk, array, coords, axisOrder, itemSize);
  }
  return whole;
}

async function chunkBytes(
  file: FileBlocks,
  { chunks, chunkShape, shape }: FileArray,
  coords: number[],
  number: number,
): Promise<{ bytes: Uint8Array; variant: number } | undefined> {
  switch (chunks.kind) {
    case "listed": {
      const offset = chunks.offsets[number] as number;
      if (offset === -1) return undefined;
      const bytes = await file.readOnce(offset, chunks.byteLengths[number] as number);
      return { bytes, variant: chunks.variants?.[number] ?? 0 };
    }
    case "strided": {
      const offset = coords.reduce(
        (sum, at, axis) => sum + at * (chunks.strides[axis] as number),
        chunks.start,
      );
      const { last } = chunks;
      const isLast =
        last !== undefined &&
        ((coords[last.axis] as number) + 1) * (chunkShape[last.axis] as number) >
          (shape[last.axis] as number);
      const whole = new Uint8Array(chunks.byteLength);
      whole.set(await file.readOnce(offset, isLast ? last.byteLength : chunks.byteLength));
      return { bytes: whole, variant: 0 };
    }
    case "inline":
      return chunks.bytes === null ? undefined : { bytes: chunks.bytes, variant: 0 };
    case "made": {
      const bytes = await tiffFormat.makeChunk?.(file, chunks.recipe, coords);
      return bytes && { bytes, variant: 0 };
    }
  }
}

function place(
  whole: Uint8Array,
  chunk: Uint8Array | undefined,
  { shape, chunkShape, fill }: FileArray,
  coords: number[],
  axisOrder: readonly number[],
  itemSize: number,
): void {
  const ordered = axisOrder.map((axis) => chunkShape[axis] as number);
  for (let item = 0; item < elementCount(chunkShape); item++) {
    const inOrder = coordinatesOf(item, ordered);
    const at = coords.map(
      (coord, axis) => coord * (chunkShape[axis] as number) + (inOrder[axisOrder.indexOf(axis)] as number),
    );
    if (at.some((index, axis) => index >= (shape[axis] as number))) continue;
    const target = at.reduce((sum, index, axis) => sum * (shape[axis] as number) + index, 0) * itemSize;
    const bytes =
      chunk?.subarray(item * itemSize, (item + 1) * itemSize) ?? fill.item ?? new Uint8Array(itemSize);
    whole.set(bytes, target);
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
