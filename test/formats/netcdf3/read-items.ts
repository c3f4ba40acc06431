import type { FileBlocks } from "../../../src/formats/file-format.js";
import type { FileArray } from "../../../src/formats/file-index.js";
import { netcdf3Format } from "../../../src/formats/netcdf3/netcdf3-format.js";

/** Reads all items of an array in C order through its chunks. */
export async function readItems(file: FileBlocks, array: FileArray): Promise<Uint8Array> {
  const { shape, chunkShape } = array;
  const itemSize = Number(String(array.dtype).slice(2));
  const grid = shape.map((length, axis) => Math.ceil(length / (chunkShape[axis] as number)));
  const items = new Uint8Array(product(shape) * itemSize);
  const rowItems = chunkShape.at(-1) ?? 1;
  const rows = product(chunkShape) / rowItems;
  for (let number = 0; number < product(grid); number++) {
    const coords = unravel(number, grid);
    const chunk = await readChunk(file, array, coords, grid);
    for (let row = 0; row < rows; row++) {
      const place = unravel(row * rowItems, chunkShape).map(
        (index, axis) => index + (coords[axis] as number) * (chunkShape[axis] as number),
      );
      if (place.some((index, axis) => index >= (shape[axis] as number))) continue;
      const at = place.reduce((sum, index, axis) => sum * (shape[axis] as number) + index, 0);
      const length = Math.min(rowItems, (shape.at(-1) ?? 1) - (place.at(-1) ?? 0));
      const from = row * rowItems * itemSize;
      items.set(chunk.subarray(from, from + length * itemSize), at * itemSize);
    }
  }
  return items;
}

/** Reads a chunk as the index says, whole. */
export async function readChunk(
  file: FileBlocks,
  array: FileArray,
  coords: readonly number[],
  grid: readonly number[],
): Promise<Uint8Array> {
  const { chunks, chunkShape } = array;
  const byteLength = product(chunkShape) * Number(String(array.dtype).slice(2));
  const chunk = new Uint8Array(byteLength);
  if (chunks.kind === "made") {
    const made = await netcdf3Format.makeChunk?.(file, chunks.recipe, coords);
    if (made?.length !== byteLength)
      throw new Error(`expected ${byteLength} bytes, received ${made?.length}`);
    return made;
  }
  if (chunks.kind !== "strided") throw new Error(`expected no table of kind ${chunks.kind}`);
  if (chunks.byteLength !== byteLength)
    throw new Error(`expected ${byteLength}, received ${chunks.byteLength}`);
  const { last } = chunks;
  const isLast = last !== undefined && coords[last.axis] === (grid[last.axis] as number) - 1;
  const offset = coords.reduce((sum, at, axis) => sum + at * (chunks.strides[axis] as number), chunks.start);
  chunk.set(await file.readOnce(offset, isLast ? last.byteLength : byteLength));
  return chunk;
}

function product(numbers: readonly number[]): number {
  return numbers.reduce((result, number) => result * number, 1);
}

function unravel(number: number, shape: readonly number[]): number[] {
  const coords = new Array<number>(shape.length);
  let rest = number;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const length = shape[axis] as number;
    coords[axis] = rest % length;
    rest = Math.floor(rest / length);
  }
  return coords;
}
