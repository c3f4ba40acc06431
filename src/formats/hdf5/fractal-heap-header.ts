import { ByteCursor, invalidFile, unsupportedFile } from "./byte-cursor.js";
import { checkChecksum } from "./lookup3.js";

/** Bytes of the header of a heap without filters. */
export const HEAP_HEADER_BYTES = 146;

/** The fields of a heap's header that finding objects needs. */
export interface HeapHeader {
  readonly idBytes: number;
  readonly hasBlockChecksums: boolean;
  readonly maxManagedBytes: number;
  readonly hugeTree: number | null;
  /** Columns of the doubling table. */
  readonly width: number;
  readonly startBytes: number;
  readonly maxDirectBytes: number;
  /** Bytes of an offset in the heap. */
  readonly offsetBytes: number;
  readonly rootAddress: number | null;
  /** Rows of the root block; 0 if it is a direct block. */
  readonly rootRows: number;
}

/**
 * Parses the header of a fractal heap (HDF5 File Format Specification, III.G).
 * @throws ZpublishError `invalid-metadata`, `unsupported`
 */
export function parseHeapHeader(bytes: Uint8Array): HeapHeader {
  const cursor = new ByteCursor(bytes, "fractal heap");
  cursor.signature("FRHP");
  cursor.version(0, 0);
  const idBytes = cursor.u16();
  if (cursor.u16() !== 0) throw unsupportedFile("fractal heap: its blocks have filters");
  checkChecksum(bytes, "fractal heap");
  const hasBlockChecksums = (cursor.u8() & 2) !== 0;
  const maxManagedBytes = cursor.u32();
  cursor.skip(8);
  const hugeTree = cursor.optional();
  // Free space, and statistics.
  cursor.skip(80);
  const width = cursor.u16();
  const startBytes = cursor.u64();
  const maxDirectBytes = cursor.u64();
  const heapBits = cursor.u16();
  cursor.skip(2);
  const rootAddress = cursor.optional();
  const rootRows = cursor.u16();
  if (!isPowerOfTwo(width) || !isPowerOfTwo(startBytes) || !isPowerOfTwo(maxDirectBytes) || heapBits > 64) {
    throw invalidFile(
      `fractal heap: received blocks of ${startBytes} to ${maxDirectBytes} bytes in ${width} columns`,
    );
  }
  const offsetBytes = Math.ceil(heapBits / 8);
  return {
    idBytes,
    hasBlockChecksums,
    maxManagedBytes,
    hugeTree,
    width,
    startBytes,
    maxDirectBytes,
    offsetBytes,
    rootAddress,
    rootRows,
  };
}

function isPowerOfTwo(value: number): boolean {
  return value > 0 && Number.isInteger(Math.log2(value));
}
