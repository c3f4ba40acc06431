import { createSlice } from "../../event-loop/cooperative-task.js";
import type { FileBlocks } from "../file-format.js";
import { invalidFile, unsupportedFile } from "./byte-cursor.js";

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

/** Attributes, links or nodes from one look at the clock to the next. */
const STEPS_PER_LOOK = 8;

/** Metadata of an HDF5 file, by address. Addresses are as stored: relative to the base address. */
export class Hdf5Input {
  readonly warnings: string[] = [];
  private readonly slice = createSlice();
  private readonly maxBytes: number;
  private bytesRead = 0;
  private steps = 0;

  /** @param baseAddress Offset of the superblock in the file. */
  constructor(
    readonly file: FileBlocks,
    readonly baseAddress: number,
  ) {
    const most = Math.min(READS_PER_BYTE * file.byteLength, MAX_METADATA_BYTES);
    this.maxBytes = Math.max(most, LEAST_METADATA_BYTES);
  }

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
    throw invalidFile(
      `${structure}: expected a file of at least ${end} bytes, received ${this.file.byteLength}`,
    );
  }

  /**
   * Reads a structure.
   * @returns The bytes themselves if they are in memory.
   * @throws ZpublishError `invalid-metadata` if they are not inside the file, `source-unreadable`, `source-changed`
   */
  read(address: number, byteLength: number, structure: string): Uint8Array | Promise<Uint8Array> {
    this.checkInside(address, byteLength, structure);
    if (byteLength > MAX_STRUCTURE_BYTES) {
      throw unsupportedFile(
        `${structure}: expected at most ${MAX_STRUCTURE_BYTES} bytes, received ${byteLength}`,
      );
    }
    this.bytesRead += byteLength;
    if (this.bytesRead > this.maxBytes) {
      throw this.maxBytes < MAX_METADATA_BYTES
        ? invalidFile("structures lead back to themselves: their bytes are several times those of the file")
        : unsupportedFile(`there are more than ${MAX_METADATA_BYTES} bytes of metadata`);
    }
    const offset = address + this.baseAddress;
    return this.file.readNow(offset, byteLength) ?? this.file.read(offset, byteLength);
  }

  /** Tells if the event loop has waited for some time, and should run: see {@link pause}. */
  get isPauseDue(): boolean {
    // The clock is not asked each time.
    this.steps = (this.steps + 1) % STEPS_PER_LOOK;
    return this.steps === 0 && this.slice.isOver();
  }

  /** Lets the event loop run. */
  pause(): Promise<void> {
    return this.slice.next();
  }
}
