import type { Packing } from "../cf/packing.js";
import type { Numbers } from "./array-reader.js";
import type { ShownRange } from "./protocol.js";

/** Bytes of a picture (see `FrameAnswer.pixels`). */
export const MISSING = 0;
/** Below the range. */
export const BELOW = 1;
/** The least value of the range. */
export const FIRST = 2;
/** The greatest value of the range. */
export const LAST = 253;
/** Above the range. */
export const ABOVE = 254;
/** Not read yet. */
export const UNREAD = 255;

/** Rounding that does not put a value at the end of the range beyond it. */
const SLACK = 1e-6;

/** Turns stored numbers into values, and values into bytes. */
export class ByteScale {
  readonly #packing: Packing;
  readonly #range: ShownRange;
  readonly #begin: number;
  readonly #width: number;
  readonly #tables = new Map<string, Uint8Array>();

  constructor(packing: Packing, range: ShownRange) {
    this.#packing = packing;
    this.#range = range;
    const { low, high, isLog } = range;
    const [begin, end] = isLog ? [Math.log(low), Math.log(high)] : [low, high];
    this.#begin = begin;
    this.#width = end - begin;
  }

  /** Returns the byte of a value; NaN is missing. */
  byteOf(value: number): number {
    if (Number.isNaN(value)) return MISSING;
    const { isLog, low, high } = this.#range;
    if (isLog && value <= 0) return BELOW;
    if (!(this.#width > 0)) return value < low ? BELOW : value > high ? ABOVE : FIRST;
    const place = (((isLog ? Math.log(value) : value) - this.#begin) / this.#width) * (LAST - FIRST);
    if (place < -SLACK) return BELOW;
    return place > LAST - FIRST + SLACK ? ABOVE : FIRST + Math.round(place);
  }

  /** Returns the byte of each stored number of a type of at most 16 bits, by its bits; undefined for longer types. */
  tableOf(numbers: Numbers): { readonly table: Uint8Array; readonly mask: number } | undefined {
    const { BYTES_PER_ELEMENT: size } = numbers;
    if (size > 2) return undefined;
    const name = numbers.constructor.name;
    let table = this.#tables.get(name);
    if (table === undefined) {
      const all = new (numbers.constructor as new (length: number) => Numbers)(2 ** (8 * size));
      for (let bits = 0; bits < all.length; bits++) all[bits] = bits;
      table = Uint8Array.from(all, (stored) => this.byteOf(unpacked(stored, this.#packing)));
      this.#tables.set(name, table);
    }
    return { table, mask: table.length - 1 };
  }

  /** Converts a stored number. */
  storedByte(stored: number): number {
    return this.byteOf(unpacked(stored, this.#packing));
  }
}

/** Returns the value of a stored number; NaN if it is missing. */
export function unpacked(stored: number, { missing, validMin, validMax, scale, offset }: Packing): number {
  for (let index = 0; index < missing.length; index++) if (missing[index] === stored) return Number.NaN;
  // The comparison is false for NaN.
  return stored >= validMin && stored <= validMax ? stored * scale + offset : Number.NaN;
}
