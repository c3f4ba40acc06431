import { type Packing, unpacked } from "../../../cf/packing.js";
import { ABOVE, BELOW, FIRST, LAST, MISSING, type ShownRange } from "../../protocol.js";
import type { Numbers } from "../array-reader.js";

/** Steps of the range. */
export const STEPS = LAST - FIRST;

/** Rounding that does not put a value at the end of the range beyond it. */
export const SLACK = 1e-6;

/** Tells stored numbers that are values from missing ones. The comparisons are also false for NaN. */
interface MissingTest extends Readonly<Record<"first" | "second" | "least" | "greatest", number>> {
  /** Whether there are no further ones. */
  readonly isWhole: boolean;
}

/** Turns stored numbers into values, and values into bytes. Fields are plain for the loops that read them once. */
export class ByteScale {
  readonly packing: Packing;
  readonly isLog: boolean;
  /** Value, or its logarithm, of the first byte of the range; and how far away that of the last one is. */
  readonly begin: number;
  readonly width: number;
  readonly #range: ShownRange;
  readonly #categories: ReadonlyMap<number, number> | undefined;
  readonly #tables = new Map<string, Uint8Array>();

  readonly #isChannel: boolean;

  /** @param isChannel Whether bytes are channels of colours, from 0 to 255. If values may be missing, 0 stands for those alone. */
  constructor(packing: Packing, range: ShownRange, isChannel: boolean) {
    this.packing = packing;
    this.#isChannel = isChannel;
    this.#range = range;
    this.isLog = range.isLog;
    const { low, high, isLog, categories } = range;
    this.#categories = categories && new Map(categories);
    const [begin, end] = isLog ? [Math.log(low), Math.log(high)] : [low, high];
    this.begin = begin;
    this.width = end - begin;
  }

  /** Whether bytes are `2 + round((value - begin) / width * 251)`, so that loops may compute them. */
  get isLinear(): boolean {
    return (
      !this.#isChannel &&
      this.#categories === undefined &&
      !this.isLog &&
      this.width > 0 &&
      this.packing.missing.length <= 2
    );
  }

  /** Returns the byte of a value; NaN is missing. */
  byteOf(value: number): number {
    if (Number.isNaN(value)) return MISSING;
    if (this.#isChannel) {
      const least = this.packing.missing.length > 0 ? 1 : 0;
      return Math.max(least, Math.min(255, Math.round(((value - this.begin) / this.width) * 255)));
    }
    if (this.#categories !== undefined) return this.#categories.get(value) ?? ABOVE;
    const { isLog, begin, width } = this;
    if (isLog && value <= 0) return BELOW;
    if (!(width > 0)) return value < this.#range.low ? BELOW : value > this.#range.high ? ABOVE : FIRST;
    const place = (((isLog ? Math.log(value) : value) - begin) / width) * STEPS;
    if (place < -SLACK) return BELOW;
    return place > STEPS + SLACK ? ABOVE : FIRST + Math.round(place);
  }

  /** Returns the byte of each stored number of a type of at most 16 bits, by its bits; undefined for longer types. */
  tableOf(numbers: Numbers): Uint8Array | undefined {
    const { BYTES_PER_ELEMENT: size } = numbers;
    if (size > 2) return undefined;
    const name = numbers.constructor.name;
    let table = this.#tables.get(name);
    if (table === undefined) {
      const all = new (numbers.constructor as new (length: number) => Numbers)(2 ** (8 * size));
      for (let bits = 0; bits < all.length; bits++) all[bits] = bits;
      table = Uint8Array.from(all, (stored) => this.storedByte(stored));
      this.#tables.set(name, table);
    }
    return table;
  }

  storedByte(stored: number): number {
    return this.byteOf(unpacked(stored, this.packing));
  }
}

/** Returns the test of missing values, of which it knows the first two. */
export function missingTest({ missing, validMin, validMax }: Packing): MissingTest {
  const [first = Number.NaN, second = Number.NaN] = missing;
  return { first, second, least: validMin, greatest: validMax, isWhole: missing.length <= 2 };
}
