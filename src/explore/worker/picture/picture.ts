import { MISSING, type PicturePart, type ReadingCost, type ShowRequest, UNREAD } from "../../protocol.js";
import type { Numbers, Resolution } from "../array-reader.js";
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
  /** Bands that the chunk holds, each with its own `base`. */
  readonly bands: readonly { readonly band: number; readonly base: number }[];
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

  /** Returns the pixels of this picture, and those of another one where they wait for chunks. */
  over({ pixels: below }: Picture): Uint8Array<ArrayBuffer> {
    return this.pixels.map((byte, pixel) => (byte === UNREAD ? below[pixel]! : byte));
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
    let painted = -1;
    for (let row = 0; row < rows.pixels.length; row++) {
      const begin = rows.pixels[row]! * width;
      if (rows.isFirst[row] === 1 || painted === -1) {
        painted = begin;
        this.missing += paintRow(pixels, begin, numbers, base + rows.offsets[row]!, columns, scale);
      } else {
        // Rows of the same cells are equal.
        for (let index = 0; index < xs.length; index++)
          pixels[begin + xs[index]!] = pixels[painted + xs[index]!]!;
      }
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

/** A picture in colour: one of each band, put together. */
export class ColourPicture {
  readonly width: number;
  readonly height: number;
  readonly #bands: readonly Picture[];
  readonly #isPainted: Uint8Array;
  #hasMissing = false;
  /** No cell is told of as missing: it is black, or clear. */
  readonly missing = 0;

  /** @param count Bands: red, green, blue, and perhaps opacity. */
  constructor(width: number, height: number, isMean: boolean, count: number) {
    this.width = width;
    this.height = height;
    this.#bands = Array.from({ length: count }, () => new Picture(width, height, isMean));
    this.#isPainted = new Uint8Array(width * height);
  }

  get cells(): number {
    return this.#bands[0]!.cells;
  }

  paint(place: ChunkPlace, numbers: Numbers | undefined): void {
    const { rows, columns, scale, bands } = place;
    this.#hasMissing ||= scale.packing.missing.length > 0;
    for (const { band, base } of bands) this.#bands[band]!.paint({ ...place, base }, numbers);
    for (const row of rows.pixels)
      for (const column of columns.pixels) this.#isPainted[row * this.width + column] = 1;
  }

  /** Returns the pixels of this picture, and those of another one where they wait for chunks. */
  over({ pixels: below }: ColourPicture): Uint8Array<ArrayBuffer> {
    return this.pixels.map((byte, index) => (this.#isPainted[index >> 2] === 0 ? below[index]! : byte));
  }

  /** Four bytes per pixel: red, green, blue, opacity. */
  get pixels(): Uint8Array<ArrayBuffer> {
    const [red, green, blue, alpha] = this.#bands.map(({ pixels }) => pixels);
    const colours = new Uint8Array(4 * this.#isPainted.length);
    for (let pixel = 0, at = 0; at < colours.length; pixel++, at += 4) {
      if (this.#isPainted[pixel] === 0) continue;
      colours[at] = red![pixel]!;
      colours[at + 1] = green![pixel]!;
      colours[at + 2] = blue![pixel]!;
      const isMissing = this.#hasMissing && (colours[at]! | colours[at + 1]! | colours[at + 2]!) === 0;
      colours[at + 3] = isMissing ? 0 : alpha === undefined ? 255 : alpha[pixel]!;
    }
    return colours;
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
  /** Those of {@link chunks} that are read first, with the places that they fill until the others are read. */
  readonly draft: readonly PlannedChunk[];
  readonly isMean: boolean;
  readonly cost: ReadingCost;
  /** What of the picture is read if all of it is too much; else undefined. */
  readonly part: PicturePart | undefined;
}

/** Chunk coordinates, and the place in the chunks, of a picture's plane. */
type PlanePlace = Pick<ChunkPlace, "base" | "scale" | "bands"> & { readonly coords: readonly number[] };

/**
 * Returns the chunks, and the places in them, at which the indices of the other axes put a picture: those of all its bands, the ones in
 * the same chunks together.
 */
export function placesOfPlane(
  session: DatasetSession,
  { selection, axes, range, bands }: ShowRequest,
  resolution: Resolution,
): readonly PlanePlace[] {
  const isShown = (axis: number) => axis === axes.x || axis === axes.y;
  const cell = resolution.shape.map((_, axis) => (isShown(axis) ? 0 : (selection.at[axis] ?? 0)));
  const scale = new ByteScale(session.documentOf(resolution).packing, range, bands !== undefined);
  const places = new Map<string, PlanePlace & { bands: { band: number; base: number }[] }>();
  for (let band = 0; band < (bands?.count ?? 1); band++) {
    const at = bands === undefined ? cell : cell.with(bands.axis, band);
    const { coords, offset: base } = session.placeOf(resolution, at);
    const place = places.get(coords.join()) ?? { coords, base, scale, bands: [] };
    place.bands.push({ band, base });
    places.set(coords.join(), place);
  }
  return [...places.values()];
}
