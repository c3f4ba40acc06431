import { ZpublishError } from "../../errors.js";
import { createSlice } from "../../event-loop/cooperative-task.js";
import type { FileBlocks } from "../file-format.js";
import { NETCDF3_TYPES, type Netcdf3Type } from "./netcdf3-type.js";

/** Version of the format: the byte behind `CDF`. */
export type Netcdf3Version = 1 | 2 | 5;

/** Bytes that are read at a time, unless one item of the header is longer. */
const WINDOW_BYTES = 64 * 1024;
/** Longest header. Those of 10,000 variables have some 10 MB. */
const MAX_HEADER_BYTES = 32 * 2 ** 20;
/** Memory that what is made of a header may take, by estimate: 130,000 variables with two attributes each. */
const MAX_MEMORY = 256 * 2 ** 20;

/** Thrown if an item of the header passes the end of the window. */
const WINDOW_ENDS = Symbol("window ends");

/**
 * Position in the header of a file. Items are parsed without waiting in a window of bytes. If one passes the end of the window, more
 * is read, and the item is parsed again.
 */
export class HeaderCursor {
  /** Offset in the file of the next byte. */
  offset = 0;
  readonly #file: FileBlocks;
  readonly #slice = createSlice();
  #isLarge = false;
  #usesLongOffsets = false;
  #window: DataView = new DataView(new ArrayBuffer(0));
  #windowStart = 0;
  /** End of the item that passed the end of the window, as far as it is known. */
  #neededEnd = 0;
  #memory = 0;

  constructor(file: FileBlocks) {
    this.#file = file;
  }

  setVersion(version: Netcdf3Version): void {
    this.#isLarge = version === 5;
    this.#usesLongOffsets = version !== 1;
  }

  /**
   * Parses an item. `parse` uses the methods below, changes nothing else, and may be called several times.
   * @throws ZpublishError `invalid-metadata` if the file ends within the item, `unsupported` if the header is too long;
   * `source-unreadable`, `source-changed`; what `parse` throws.
   */
  async item<T>(parse: () => T): Promise<T> {
    if (this.#slice.isOver()) await this.#slice.next();
    const start = this.offset;
    const memory = this.#memory;
    for (;;) {
      try {
        return parse();
      } catch (error) {
        if (error !== WINDOW_ENDS) throw error;
      }
      this.offset = start;
      this.#memory = memory;
      const { byteLength } = this.#file;
      if (this.#neededEnd > byteLength)
        throw invalid(
          `expected ${this.#neededEnd} bytes or more, since the header has them, received ${byteLength}`,
        );
      if (this.#neededEnd > MAX_HEADER_BYTES)
        throw new ZpublishError("unsupported", `expected a header of at most ${MAX_HEADER_BYTES} bytes`);
      const end = Math.min(byteLength, MAX_HEADER_BYTES, Math.max(start + WINDOW_BYTES, this.#neededEnd));
      const bytes = await this.#file.read(start, end - start);
      this.#window = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      this.#windowStart = start;
    }
  }

  /**
   * Reads the number of items in a list.
   * @param itemBytes Least length of an item in the file.
   * @param itemMemory Estimate of the memory that is kept for an item.
   */
  list(itemBytes: number, itemMemory: number): number {
    const count = this.count();
    const left = this.#file.byteLength - this.offset;
    if (count * itemBytes > left)
      throw invalid(`expected at most ${left} bytes of items, received ${count} items`);
    this.#memory += count * itemMemory;
    if (this.#memory > MAX_MEMORY)
      throw new ZpublishError(
        "unsupported",
        `expected a header that needs at most ${MAX_MEMORY} bytes of memory`,
      );
    return count;
  }

  /** Reads a count, length or number (`NON_NEG`); inexact beyond 2^53, which is more than any file has. */
  count(): number {
    return this.#isLarge ? this.#long() : this.word();
  }

  /** Reads the offset of a variable (`OFFSET`). */
  place(): number {
    return this.#usesLongOffsets ? this.#long() : this.word();
  }

  word(): number {
    return this.#window.getUint32(this.#take(4));
  }

  type(): Netcdf3Type {
    const number = this.word();
    const type = NETCDF3_TYPES.get(number);
    if (type === undefined) throw invalid(`expected a type from 1 to 11, received ${number}`);
    return type;
  }

  /** Reads bytes and what pads them to a multiple of four. @returns A copy. */
  bytes(byteLength: number): Uint8Array {
    const at = this.#take(byteLength);
    const { buffer, byteOffset } = this.#window;
    const bytes = new Uint8Array(buffer, byteOffset + at, byteLength).slice();
    this.#take(-byteLength & 3);
    return bytes;
  }

  /** Reads a name. One that is no UTF-8 is Latin-1, which scipy writes. */
  name(): string {
    const bytes = this.bytes(this.count());
    const end = bytes.indexOf(0);
    const text = end === -1 ? bytes : bytes.subarray(0, end);
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(text);
    } catch {
      return Buffer.from(text).toString("latin1");
    }
  }

  /** Tells if a count of CDF-1 and CDF-2, or of CDF-5, says that the number is not known (`STREAMING`). */
  isStreaming(count: number): boolean {
    return this.#isLarge ? count === 2 ** 64 : count === 0xffff_ffff;
  }

  #long(): number {
    return Number(this.#window.getBigUint64(this.#take(8)));
  }

  /** Moves behind bytes, and returns their position in the window. */
  #take(byteLength: number): number {
    const at = this.offset - this.#windowStart;
    const end = this.offset + byteLength;
    if (at + byteLength > this.#window.byteLength) {
      this.#neededEnd = end;
      throw WINDOW_ENDS;
    }
    this.offset = end;
    return at;
  }
}

/** An error about a header. */
export function invalid(message: string): ZpublishError {
  return new ZpublishError("invalid-metadata", `NetCDF-3: ${message}`);
}
