import { MISSING, type ShowRequest, UNREAD } from "../../protocol.js";
import {
  chooseResolution,
  costOf,
  isTooMuch,
  type Numbers,
  type ReadingCost,
  type Resolution,
  resolutionsOf,
} from "../array-reader.js";
import type { ChunkJob } from "../chunk-queue.js";
import type { Chunk, DatasetSession } from "../dataset-session.js";
import { ByteScale } from "./byte-scale.js";
import { addRow, type ChunkRun, paintRow } from "./paint-loops.js";

/** A place in a picture that a chunk fills: its rows and columns of pixels. */
interface ChunkPlace {
  readonly rows: ChunkRun;
  readonly columns: ChunkRun;
  /** Offset that the indices of the other axes add, in numbers. */
  readonly base: number;
  /** Scale of the chunk's level, whose packing may be another than the variable's. */
  readonly scale: ByteScale;
}

/** A picture that chunks are painted into as they come, straight from their numbers: no plane is ever put together. */
export class Picture {
  readonly width: number;
  readonly height: number;
  /** One byte per pixel; see `FrameAnswer.pixels`. */
  readonly pixels: Uint8Array<ArrayBuffer>;
  readonly #sums: Float64Array | undefined;
  readonly #counts: Uint32Array | undefined;
  /** Cells that are painted, and missing ones among them. */
  cells = 0;
  missing = 0;

  /** @param isMean Whether pixels show the mean of their cells. */
  constructor(width: number, height: number, isMean: boolean) {
    this.width = width;
    this.height = height;
    this.pixels = new Uint8Array(width * height).fill(UNREAD);
    this.#sums = isMean ? new Float64Array(width * height) : undefined;
    this.#counts = isMean ? new Uint32Array(width * height) : undefined;
  }

  /** Paints a chunk. @param numbers Undefined if the chunk is absent. */
  paint(place: ChunkPlace, numbers: Numbers | undefined): void {
    const { rows, columns } = place;
    this.cells += rows.cells * columns.cells;
    if (numbers === undefined) {
      this.missing += rows.cells * columns.cells;
      this.#fillMissing(place);
    } else if (this.#sums !== undefined && this.#counts !== undefined)
      this.#paintMeans(place, numbers, this.#sums, this.#counts);
    else this.#paintNearest(place, numbers);
  }

  #fillMissing({ rows, columns }: ChunkPlace): void {
    const counts = this.#counts;
    for (const row of rows.pixels) {
      const begin = row * this.width;
      // A mean may have values of other chunks already.
      for (const column of columns.pixels)
        if (counts === undefined || counts[begin + column] === 0) this.pixels[begin + column] = MISSING;
    }
  }

  #paintNearest({ rows, columns, base, scale }: ChunkPlace, numbers: Numbers): void {
    const { pixels, width } = this;
    const xs = columns.pixels;
    // Pixels of one run without gaps are copied at once.
    const isOnePiece = xs.length > 0 && xs.at(-1)! - xs[0]! === xs.length - 1;
    let painted = -1;
    for (let row = 0; row < rows.pixels.length; row++) {
      const begin = rows.pixels[row]! * width;
      if (rows.isFirst[row] === 1 || painted === -1) {
        painted = begin;
        this.missing += paintRow(pixels, begin, numbers, base + rows.offsets[row]!, columns, scale);
      } else if (isOnePiece) {
        // Rows of the same cells are equal.
        pixels.copyWithin(begin + xs[0]!, painted + xs[0]!, painted + xs.at(-1)! + 1);
      } else
        for (let index = 0; index < xs.length; index++)
          pixels[begin + xs[index]!] = pixels[painted + xs[index]!]!;
    }
  }

  #paintMeans(
    { rows, columns, base, scale }: ChunkPlace,
    numbers: Numbers,
    sums: Float64Array,
    counts: Uint32Array,
  ): void {
    const { width } = this;
    for (let row = 0; row < rows.pixels.length; row++) {
      const begin = rows.pixels[row]! * width;
      const missing = addRow(sums, counts, begin, numbers, base + rows.offsets[row]!, columns, scale);
      if (rows.isFirst[row] === 1) this.missing += missing;
    }
    const { scale: factor, offset } = scale.packing;
    let rowBefore = -1;
    for (const row of rows.pixels) {
      if (row === rowBefore) continue;
      rowBefore = row;
      let columnBefore = -1;
      for (const column of columns.pixels) {
        if (column === columnBefore) continue;
        columnBefore = column;
        const pixel = row * width + column;
        // Without a value, this is NaN.
        this.pixels[pixel] = scale.byteOf((sums[pixel]! / counts[pixel]!) * factor + offset);
      }
    }
  }
}

/** A chunk, and its place in the picture. */
export interface PlannedChunk {
  readonly job: ChunkJob<Chunk>;
  readonly place: ChunkPlace;
}

/** What has to be read for a picture. */
export interface PicturePlan {
  /** Cells under the rows and columns of pixels, -1 outside of the data; undefined if the grid is curvilinear. */
  readonly grid: { readonly rows: Int32Array; readonly columns: Int32Array } | undefined;
  readonly cells: number;
  readonly resolution: Resolution;
  readonly chunks: readonly PlannedChunk[];
  readonly isMean: boolean;
  readonly cost: ReadingCost;
}

/** Returns the chunks, and the place in them, at which the indices of the other axes put a picture. */
export function placeOfPlane(
  session: DatasetSession,
  { selection, axes, range }: ShowRequest,
  resolution: Resolution,
): Pick<ChunkPlace, "base" | "scale"> & { readonly coords: readonly number[] } {
  const isShown = (axis: number) => axis === axes.x || axis === axes.y;
  const cell = resolution.shape.map((_, axis) => (isShown(axis) ? 0 : (selection.at[axis] ?? 0)));
  const { coords, offset: base } = session.placeOf(resolution, cell);
  return { coords, base, scale: new ByteScale(session.documentOf(resolution).packing, range) };
}

/**
 * Settles the resolution: the coarsest with a cell per pixel, or a coarser one if that needs too many chunks. `densities` are cells per
 * pixel.
 */
export function settleLevel(
  session: DatasetSession,
  { selection, axes, isConfirmed }: ShowRequest,
  densities: { readonly x: number; readonly y: number },
  plan: (resolution: Resolution) => readonly PlannedChunk[],
): Pick<PicturePlan, "resolution" | "chunks" | "cost"> {
  const variable = session.variable(selection.variable);
  const resolutions = resolutionsOf(variable);
  for (let index = chooseResolution(resolutions, axes, densities); ; index++) {
    const resolution = resolutions[index]!;
    const chunks = plan(resolution);
    const unread = chunks.filter(({ job }) => !session.queue.has(job.key)).length;
    const cost = costOf(unread, resolution.chunkShape, variable.dataType.itemSize);
    if (!isTooMuch(cost) || isConfirmed || index === resolutions.length - 1)
      return { resolution, chunks, cost };
  }
}
