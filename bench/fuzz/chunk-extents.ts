import type { FileFormat } from "../../src/formats/file-format.js";
import type { FileArray } from "../../src/formats/file-index.js";
import { elementCount, gridShapeOf } from "../../src/model/data-tree.js";
import { memoryBlocks } from "../../test/formats/netcdf3/memory-blocks.js";

/** Bytes of a chunk in its file. */
export interface ChunkExtent {
  readonly path: string;
  /** As in `ArrayReading.chunks`. */
  readonly key: string;
  readonly begin: number;
  readonly end: number;
}

/** Returns where the chunks of a good file are, those of tables with places. Chunks that are made or inline are left out. */
export async function chunkExtents(format: FileFormat, bytes: Uint8Array): Promise<ChunkExtent[]> {
  const { groups } = await format.readIndex(memoryBlocks(bytes));
  return groups.flatMap(({ path, arrays }) =>
    arrays.flatMap((array) => extentsOf(array, `${path === "/" ? "" : `${path.slice(1)}/`}${array.name}`)),
  );
}

function extentsOf({ shape, chunkShape, chunks }: FileArray, path: string): ChunkExtent[] {
  const grid = gridShapeOf(shape, chunkShape);
  const extent = (number: number, begin: number, byteLength: number): ChunkExtent => ({
    ...{ path, key: coordsOf(number, grid).join("."), begin },
    end: begin + byteLength,
  });
  if (chunks.kind === "listed") {
    return [...chunks.offsets].flatMap((offset, i) =>
      offset < 0 ? [] : [extent(chunks.numbers?.[i] ?? i, offset, chunks.byteLengths[i] as number)],
    );
  }
  if (chunks.kind !== "strided") return [];
  return Array.from({ length: elementCount(grid) }, (_, number) => {
    const coords = coordsOf(number, grid);
    const begin = coords.reduce((sum, at, axis) => sum + at * (chunks.strides[axis] as number), chunks.start);
    const { last } = chunks;
    const isLast = last !== undefined && coords[last.axis] === (grid[last.axis] as number) - 1;
    return extent(number, begin, isLast ? last.byteLength : chunks.byteLength);
  });
}

/** Position of a chunk, counted in C order. */
function coordsOf(number: number, grid: readonly number[]): number[] {
  const coords = grid.map(() => 0);
  let rest = number;
  for (let axis = grid.length - 1; axis >= 0; axis--) {
    coords[axis] = rest % (grid[axis] as number);
    rest = Math.floor(rest / (grid[axis] as number));
  }
  return coords;
}
