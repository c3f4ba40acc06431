import type { Packing } from "../cf/packing.js";
import type { Numbers } from "./array-reader.js";
import { type ByteScale, MISSING, UNREAD, unpacked } from "./byte-scale.js";
import type { ChunkRun } from "./picture-tables.js";

/** A place in a picture that a chunk fills: its rows and columns of pixels. */
export interface ChunkPlace {
  readonly rows: ChunkRun;
  readonly columns: ChunkRun;
  /** Offset that the indices of the other axes add, in numbers. */
  readonly base: number;
}

/**
 * A picture that chunks are painted into as they come, straight from their numbers: no plane is ever put together. Coarse chunks do
 * not paint over fine ones.
 */
export class Picture {
  readonly width: number;
  readonly height: number;
  /** One byte per pixel; see `FrameAnswer.pixels`. */
  readonly pixels: Uint8Array<ArrayBuffer>;
  readonly #scale: ByteScale;
  readonly #packing: Packing;
  readonly #isFine: Uint8Array;
  #sums: Float64Array | undefined;
  #counts: Uint32Array | undefined;
  #hasCoarse = false;
  /** Cells that are painted from fine chunks, and those of them that are missing. */
  cells = 0;
  missing = 0;

  /** @param isMean Whether pixels show the mean of their cells. */
  constructor(width: number, height: number, scale: ByteScale, packing: Packing, isMean: boolean) {
    this.width = width;
    this.height = height;
    this.pixels = new Uint8Array(width * height).fill(UNREAD);
    this.#scale = scale;
    this.#packing = packing;
    this.#isFine = new Uint8Array(width * height);
    if (isMean) {
      this.#sums = new Float64Array(width * height);
      this.#counts = new Uint32Array(width * height);
    }
  }

  /** Paints a chunk of the level that is shown. @param numbers Undefined if the chunk is absent. */
  paint(place: ChunkPlace, numbers: Numbers | undefined): void {
    const { rows, columns } = place;
    this.cells += rows.cells * columns.cells;
    if (numbers === undefined) {
      this.missing += rows.cells * columns.cells;
      this.#paintMissing(place, true);
    } else if (this.#sums !== undefined) this.#add(place, numbers);
    else this.#paintNearest(place, numbers);
  }

  /** Paints a chunk of a coarser level where no fine one is yet. */
  paintCoarse(place: ChunkPlace, numbers: Numbers | undefined): void {
    this.#hasCoarse = true;
    if (numbers === undefined) {
      this.#paintMissing(place, false);
      return;
    }
    const { rows, columns, base } = place;
    const { pixels, width } = this;
    for (let row = 0; row < rows.pixels.length; row++) {
      const begin = rows.pixels[row]! * width;
      const from = base + rows.offsets[row]!;
      for (let column = 0; column < columns.pixels.length; column++) {
        const pixel = begin + columns.pixels[column]!;
        if (this.#isFine[pixel] === 0)
          pixels[pixel] = this.#scale.storedByte(numbers[from + columns.offsets[column]!]!);
      }
    }
  }

  #paintMissing({ rows, columns }: ChunkPlace, isFine: boolean): void {
    for (const row of rows.pixels) {
      const begin = row * this.width;
      for (const column of columns.pixels) {
        const pixel = begin + column;
        // A mean may have values of other chunks already.
        if (isFine ? (this.#counts?.[pixel] ?? 0) > 0 : this.#isFine[pixel] === 1) continue;
        this.pixels[pixel] = MISSING;
        if (isFine) this.#isFine[pixel] = 1;
      }
    }
  }

  #paintNearest({ rows, columns, base }: ChunkPlace, numbers: Numbers): void {
    const { pixels, width } = this;
    const isFine = this.#isFine;
    const inTable = this.#scale.tableOf(numbers);
    const count = columns.pixels.length;
    let painted = -1;
    for (let row = 0; row < rows.pixels.length; row++) {
      const begin = rows.pixels[row]! * width;
      if (rows.isFirst[row] === 0 && painted !== -1) {
        // Rows of the same cells are equal.
        for (let column = 0; column < count; column++) {
          const x = columns.pixels[column]!;
          pixels[begin + x] = pixels[painted + x]!;
          isFine[begin + x] = 1;
        }
        continue;
      }
      painted = begin;
      const from = base + rows.offsets[row]!;
      for (let column = 0; column < count; column++) {
        const stored = numbers[from + columns.offsets[column]!]!;
        const byte =
          inTable === undefined ? this.#scale.storedByte(stored) : inTable.table[stored & inTable.mask]!;
        if (byte === MISSING) this.missing += columns.isFirst[column]!;
        const pixel = begin + columns.pixels[column]!;
        pixels[pixel] = byte;
        isFine[pixel] = 1;
      }
    }
  }

  #add({ rows, columns, base }: ChunkPlace, numbers: Numbers): void {
    const { width } = this;
    const sums = this.#sums as Float64Array;
    const counts = this.#counts as Uint32Array;
    const packing = this.#packing;
    for (let row = 0; row < rows.pixels.length; row++) {
      const begin = rows.pixels[row]! * width;
      const from = base + rows.offsets[row]!;
      const isNewRow = rows.isFirst[row]!;
      for (let column = 0; column < columns.pixels.length; column++) {
        const value = unpacked(numbers[from + columns.offsets[column]!]!, packing);
        if (Number.isNaN(value)) {
          this.missing += isNewRow & columns.isFirst[column]!;
          continue;
        }
        const pixel = begin + columns.pixels[column]!;
        sums[pixel] = sums[pixel]! + value;
        counts[pixel] = counts[pixel]! + 1;
      }
    }
    let rowBefore = -1;
    for (const row of rows.pixels) {
      if (row === rowBefore) continue;
      rowBefore = row;
      let columnBefore = -1;
      for (const column of columns.pixels) {
        if (column === columnBefore) continue;
        columnBefore = column;
        const pixel = row * width + column;
        this.pixels[pixel] = this.#scale.byteOf(sums[pixel]! / counts[pixel]!);
        this.#isFine[pixel] = 1;
      }
    }
  }

  /** Whether a coarser level has been painted. */
  get hasCoarse(): boolean {
    return this.#hasCoarse;
  }
}
