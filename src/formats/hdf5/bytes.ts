import { ZpublishError } from "../../errors.js";
import { createSlice } from "../../event-loop/cooperative-task.js";
import type { FileBlocks } from "../file-format.js";

/** Creates the error for a file whose bytes are not as the HDF5 File Format Specification demands. */
export function invalidFile(message: string): ZpublishError {
  return new ZpublishError("invalid-metadata", `HDF5: ${message}`);
}

/** Creates the error for a file or object that is valid, but that this reader does not read. */
export function unsupportedFile(message: string): ZpublishError {
  return new ZpublishError("unsupported", `HDF5: ${message}`);
}

/** @throws ZpublishError `invalid-metadata` unless a structure is as expected */
export function check(
  isValid: boolean,
  structure: string,
  expected: string | number,
  received: unknown,
): asserts isValid {
  if (!isValid) throw invalidFile(`${structure}: expected ${expected}, received ${received}`);
}

/** Returns how many bytes the file has for numbers up to `limit`. */
export function bytesFor(limit: number): number {
  return limit < 1 ? 1 : Math.floor(Math.log2(limit) / 8) + 1;
}

/** Tells if a number is 1, 2, 4, … */
export function isPowerOfTwo(value: number): boolean {
  return value > 0 && Number.isInteger(Math.log2(value));
}

/** Returns the next multiple of 8. */
export function roundUp(byteLength: number): number {
  return Math.ceil(byteLength / 8) * 8;
}

/** Returns a view of the same bytes. */
export function bufferOf(bytes: Uint8Array): Buffer {
  return bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** Reads the little-endian fields of one structure of a file, one after the other. Never reads past its end. */
export class ByteCursor {
  at: number;
  readonly end: number;
  /** All bytes that the structure lies in. */
  readonly bytes: Buffer;
  private lazyView: DataView | undefined;

  /**
   * @param structure Name of the structure, for messages.
   * @param start First byte that is read. Default: 0
   * @param end End of the structure. Default: all bytes.
   */
  constructor(
    bytes: Uint8Array,
    readonly structure: string,
    start = 0,
    end = bytes.length,
  ) {
    this.bytes = bufferOf(bytes);
    this.at = start;
    this.end = end;
  }

  /** The same bytes, for entries that are read in place: millions may follow each other. */
  get view(): DataView {
    this.lazyView ??= new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.length);
    return this.lazyView;
  }

  /** Bytes that are left. */
  get left(): number {
    return this.end - this.at;
  }

  /** @throws ZpublishError `invalid-metadata`, as all methods, if the structure ends before. */
  u8(): number {
    return this.bytes[this.advance(1)]!;
  }

  u16(): number {
    const at = this.advance(2);
    return this.bytes[at]! | (this.bytes[at + 1]! << 8);
  }

  u32(): number {
    return word(this.bytes, this.advance(4)) >>> 0;
  }

  /** A length or count of 8 bytes. @throws ZpublishError also if it has more than 53 bits */
  u64(): number {
    const at = this.advance(8);
    const high = word(this.bytes, at + 4) >>> 0;
    return this.exact(high * 0x1_0000_0000 + (word(this.bytes, at) >>> 0));
  }

  /** An unsigned integer of 1 to 8 bytes. */
  uint(byteLength: number): number {
    const at = this.advance(byteLength);
    let value = 0;
    for (let i = byteLength - 1; i >= 0; i--) value = value * 256 + this.bytes[at + i]!;
    return this.exact(value);
  }

  private exact(value: number): number {
    if (value <= Number.MAX_SAFE_INTEGER) return value;
    throw invalidFile(`${this.structure}: a number has more than 53 bits`);
  }

  /** An address or size of 8 bytes; null if all bits are set, which means that it is undefined or unlimited. */
  optional(): number | null {
    const { at } = this;
    if (this.left < 8 || this.view.getInt32(at + 4) !== -1 || this.view.getInt32(at) !== -1)
      return this.u64();
    this.at = at + 8;
    return null;
  }

  /** @throws ZpublishError also if the address is undefined */
  address(): number {
    const address = this.optional();
    if (address === null) throw invalidFile(`${this.structure}: an address is undefined`);
    return address;
  }

  /** A view of the next bytes. */
  take(byteLength: number): Buffer {
    const at = this.advance(byteLength);
    return this.bytes.subarray(at, at + byteLength);
  }

  skip(byteLength: number): void {
    this.advance(byteLength);
  }

  /** A cursor over the next bytes, which are skipped. */
  part(byteLength: number, structure = this.structure): ByteCursor {
    const at = this.advance(byteLength);
    return new ByteCursor(this.bytes, structure, at, at + byteLength);
  }

  /** Text of a fixed number of bytes, up to its first NUL. Bytes that are no UTF-8 become U+FFFD, as in netCDF4-python. */
  text(byteLength: number): string {
    const at = this.advance(byteLength);
    let end = at;
    while (end < at + byteLength && this.bytes[end] !== 0) end++;
    return this.bytes.toString("utf8", at, end);
  }

  /** Text that ends with a NUL, which is skipped. */
  textToNul(): string {
    let nul = this.at;
    while (nul < this.end && this.bytes[nul] !== 0) nul++;
    if (nul === this.end) throw invalidFile(`${this.structure}: a name has no end`);
    const text = this.bytes.toString("utf8", this.at, nul);
    this.at = nul + 1;
    return text;
  }

  /** @throws ZpublishError `invalid-metadata` if the next bytes are not these ASCII characters */
  signature(expected: string): void {
    const at = this.advance(expected.length);
    for (let i = 0; i < expected.length; i++) {
      if (this.bytes[at + i] === expected.charCodeAt(i)) continue;
      const found = this.bytes.subarray(at, at + expected.length).toString("hex");
      throw invalidFile(`${this.structure}: expected the signature ${expected}, received 0x${found}`);
    }
  }

  /** Returns the version, one byte. @throws ZpublishError `unsupported` if it is not among those expected */
  version(first: number, last: number): number {
    const version = this.u8();
    if (version >= first && version <= last) return version;
    const expected = first === last ? `${first}` : `${first} to ${last}`;
    throw unsupportedFile(`${this.structure}: expected version ${expected}, received ${version}`);
  }

  private advance(byteLength: number): number {
    const at = this.at;
    if (byteLength > this.end - at) {
      throw invalidFile(`${this.structure}: expected ${byteLength} more bytes, received ${this.end - at}`);
    }
    this.at = at + byteLength;
    return at;
  }
}

/**
 * Checks the checksum in the last four bytes of a structure: Jenkins' lookup3, `hashlittle` with 0 as initial value (HDF5 File
 * Format Specification, III).
 * @throws ZpublishError `invalid-metadata` if it differs
 */
export function checkChecksum(bytes: Uint8Array, structure: string): void {
  const end = bytes.length - 4;
  if (end < 0) throw invalidFile(`${structure}: expected a checksum, received ${bytes.length} bytes`);
  const [stored, computed] = [word(bytes, end) >>> 0, lookup3(bytes, end)];
  if (stored === computed) return;
  const [expected, received] = [stored, computed].map((sum) => `0x${sum.toString(16).padStart(8, "0")}`);
  throw invalidFile(`${structure}: expected the checksum ${expected}, received ${received}`);
}

/** Returns the checksum of the first bytes, by default of all. */
export function lookup3(bytes: Uint8Array, byteLength = bytes.length): number {
  let a = (0xdeadbeef + byteLength) | 0;
  let [b, c, at] = [a, a, 0];
  for (; byteLength - at > 12; at += 12) {
    a = (a + word(bytes, at)) | 0;
    b = (b + word(bytes, at + 4)) | 0;
    c = (c + word(bytes, at + 8)) | 0;
    a = (a - c) ^ rotate(c, 4);
    c = (c + b) | 0;
    b = (b - a) ^ rotate(a, 6);
    a = (a + c) | 0;
    c = (c - b) ^ rotate(b, 8);
    b = (b + a) | 0;
    a = (a - c) ^ rotate(c, 16);
    c = (c + b) | 0;
    b = (b - a) ^ rotate(a, 19);
    a = (a + c) | 0;
    c = (c - b) ^ rotate(b, 4);
    b = (b + a) | 0;
  }
  if (at === byteLength) return c >>> 0;
  a = (a + partWord(bytes, at, byteLength)) | 0;
  b = (b + partWord(bytes, at + 4, byteLength)) | 0;
  c = (c + partWord(bytes, at + 8, byteLength)) | 0;
  c = ((c ^ b) - rotate(b, 14)) | 0;
  a = ((a ^ c) - rotate(c, 11)) | 0;
  b = ((b ^ a) - rotate(a, 25)) | 0;
  c = ((c ^ b) - rotate(b, 16)) | 0;
  a = ((a ^ c) - rotate(c, 4)) | 0;
  b = ((b ^ a) - rotate(a, 14)) | 0;
  c = ((c ^ b) - rotate(b, 24)) | 0;
  return c >>> 0;
}

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

function word(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
}

function partWord(bytes: Uint8Array, at: number, end: number): number {
  let value = 0;
  for (let i = at; i < end && i < at + 4; i++) value |= bytes[i]! << (8 * (i - at));
  return value;
}

/** Maximum length of one structure of metadata: a header's part, a node of a tree, a block or collection of a heap. */
const MAX_STRUCTURE_BYTES = 32 * 1024 * 1024;

/** Maximum bytes of metadata that are read from a file. */
const MAX_METADATA_BYTES = 512 * 1024 * 1024;

/**
 * Bytes of metadata per byte of the file. Each structure is read once, and its first bytes twice: a file that needs more has
 * structures that lead back to themselves.
 */
const READS_PER_BYTE = 4;

/** Bytes that may be read from the smallest file. */
const LEAST_METADATA_BYTES = 64 * 1024;

const CHECKSUM_BYTES = 4;

/** Structures that are fetched at a time if they are not in memory. */
const FETCHED_AT_ONCE = 8;

/**
 * Metadata of an HDF5 file, by address. Addresses are as stored: relative to the base address. All readers of structures throw
 * ZpublishError `invalid-metadata`, `unsupported`, `source-unreadable` or `source-changed`.
 */
export class Hdf5Input {
  private readonly slice = createSlice();
  private bytesRead = 0;

  /**
   * @param baseAddress Offset of the superblock in the file.
   * @param maxBytes Bytes that may be read, which ends loops of structures. Default: by the length of the file.
   */
  constructor(
    readonly file: FileBlocks,
    readonly baseAddress: number,
    private readonly maxBytes = Math.max(
      Math.min(READS_PER_BYTE * file.byteLength, MAX_METADATA_BYTES),
      LEAST_METADATA_BYTES,
    ),
  ) {}

  /** True if so much was read that nothing more can be: the file as a whole is refused then. */
  get isExhausted(): boolean {
    return this.bytesRead > this.maxBytes;
  }

  /** Bytes from an address to the end of the file; negative if it is behind that. */
  bytesFrom(address: number): number {
    return this.file.byteLength - this.baseAddress - address;
  }

  /** @throws ZpublishError `invalid-metadata` if these bytes are not inside the file */
  checkInside(address: number, byteLength: number, structure: string): void {
    if (byteLength <= this.bytesFrom(address)) return;
    const end = address + this.baseAddress + byteLength;
    check(false, structure, `a file of at least ${end} bytes`, this.file.byteLength);
  }

  /**
   * Reads a structure.
   * @param structure Its name, for messages.
   * @throws ZpublishError `invalid-metadata` if it is not inside the file, `source-unreadable`, `source-changed`
   */
  async read(address: number, byteLength: number, structure: string): Promise<ByteCursor> {
    this.checkInside(address, byteLength, structure);
    check(byteLength <= MAX_STRUCTURE_BYTES, structure, `at most ${MAX_STRUCTURE_BYTES} bytes`, byteLength);
    this.bytesRead += byteLength;
    if (this.isExhausted) {
      throw this.maxBytes === MAX_METADATA_BYTES
        ? unsupportedFile(`there are more than ${MAX_METADATA_BYTES} bytes of metadata`)
        : invalidFile("structures lead back to themselves: they have more bytes than the file");
    }
    if (this.slice.isOver()) await this.slice.next();
    const offset = address + this.baseAddress;
    const bytes = this.file.readNow(offset, byteLength) ?? (await this.file.read(offset, byteLength));
    return new ByteCursor(bytes, structure);
  }

  /**
   * Reads a structure that ends with a checksum.
   * @param signature Its first characters; empty if it has none.
   * @returns A cursor behind the signature, which ends before the checksum.
   * @throws ZpublishError as {@link read}
   */
  async readChecked(
    address: number,
    byteLength: number,
    signature: string,
    structure: string,
  ): Promise<ByteCursor> {
    const { bytes } = await this.read(address, byteLength, structure);
    const cursor = new ByteCursor(bytes, structure, 0, byteLength - CHECKSUM_BYTES);
    cursor.signature(signature);
    checkChecksum(bytes, structure);
    return cursor;
  }

  /** Fetches the beginnings of some structures at once, from the one at `from` on, if this one is not in memory. */
  async prefetch(addresses: readonly number[], from: number, byteLength: number): Promise<void> {
    const offsets = addresses
      .slice(from, from + FETCHED_AT_ONCE)
      .map((address) => address + this.baseAddress);
    const [first] = offsets;
    if (first === undefined || this.file.readNow(first, byteLength) !== undefined) return;
    const inside = offsets.filter((offset) => offset + byteLength <= this.file.byteLength);
    await Promise.all(inside.map((offset) => this.file.read(offset, byteLength)));
  }

  /** Lets the event loop run if it has waited for some milliseconds: for loops that read nothing. */
  pause(): Promise<void> | undefined {
    return this.slice.isOver() ? this.slice.next() : undefined;
  }
}
