import { ZpublishError } from "../../errors.js";

/** Creates the error for a file whose bytes are not as the HDF5 File Format Specification demands. */
export function invalidFile(message: string): ZpublishError {
  return new ZpublishError("invalid-metadata", `HDF5: ${message}`);
}

/** Creates the error for a file or object that is valid, but that this reader does not read. */
export function unsupportedFile(message: string): ZpublishError {
  return new ZpublishError("unsupported", `HDF5: ${message}`);
}

/** Returns how many bytes the file has for numbers up to `limit`. */
export function bytesFor(limit: number): number {
  return limit < 1 ? 1 : Math.floor(Math.log2(limit) / 8) + 1;
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

  /** Bytes that are left. */
  get left(): number {
    return this.end - this.at;
  }

  /** @throws ZpublishError `invalid-metadata`, as all methods, if the structure ends before. */
  u8(): number {
    const at = this.advance(1);
    return this.bytes[at] as number;
  }

  u16(): number {
    const at = this.advance(2);
    return (this.bytes[at] as number) | ((this.bytes[at + 1] as number) << 8);
  }

  u32(): number {
    const at = this.advance(4);
    const bytes = this.bytes;
    const high = ((bytes[at + 2] as number) << 16) | ((bytes[at + 3] as number) << 24);
    return ((bytes[at] as number) | ((bytes[at + 1] as number) << 8) | high) >>> 0;
  }

  /** A length or count of 8 bytes. @throws ZpublishError also if it has more than 53 bits */
  u64(): number {
    const low = this.u32();
    const high = this.u32();
    if (high > 0x1fffff) throw invalidFile(`${this.structure}: a number has more than 53 bits`);
    return high * 0x1_0000_0000 + low;
  }

  /** An unsigned integer of 1 to 8 bytes. */
  uint(byteLength: number): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < byteLength; i++) {
      value += this.u8() * scale;
      scale *= 256;
    }
    if (value > Number.MAX_SAFE_INTEGER)
      throw invalidFile(`${this.structure}: a number has more than 53 bits`);
    return value;
  }

  /** An address or size of 8 bytes; null if all bits are set, which means that it is undefined or unlimited. */
  optional(): number | null {
    const at = this.at;
    if (this.left >= 8 && this.bytes[at + 7] === 0xff && this.isAllOnes(at)) {
      this.at = at + 8;
      return null;
    }
    return this.u64();
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
      if (this.bytes[at + i] !== expected.charCodeAt(i)) {
        const found = this.bytes.subarray(at, at + expected.length).toString("hex");
        throw invalidFile(`${this.structure}: expected the signature ${expected}, received 0x${found}`);
      }
    }
  }

  /** Returns the version, one byte. @throws ZpublishError `unsupported` if it is not among those expected */
  version(first: number, last: number): number {
    const version = this.u8();
    if (version >= first && version <= last) return version;
    const expected = first === last ? `${first}` : `${first} to ${last}`;
    throw unsupportedFile(`${this.structure}: expected version ${expected}, received ${version}`);
  }

  private isAllOnes(at: number): boolean {
    for (let i = at; i < at + 8; i++) if (this.bytes[i] !== 0xff) return false;
    return true;
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
