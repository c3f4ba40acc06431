import { type ByteCursor, invalidFile } from "./byte-cursor.js";
import type { Hdf5Fill, Hdf5Filter } from "./hdf5-model.js";

/** Maximum number of filters in a pipeline (HDF5's `H5Z_MAX_NFILTERS`). */
const MAX_FILTERS = 32;

/** First id of filters that are not HDF5's own: in version 2 only these have a name. */
const FIRST_NAMED_FILTER = 256;

/** A fill value of zeros that the library chose. */
export const NO_FILL: Hdf5Fill = { item: null, isUserDefined: false };

/**
 * Parses a fill value message (HDF5 File Format Specification, IV.A.2.f).
 * @throws ZpublishError `invalid-metadata`, `unsupported`
 */
export function parseFill(cursor: ByteCursor, itemSize: number): Hdf5Fill {
  const version = cursor.version(1, 3);
  if (version === 3) {
    const hasValue = (cursor.u8() & 0x20) !== 0;
    return hasValue ? fillOf(cursor, itemSize) : NO_FILL;
  }
  // When space is allocated, and when the value is written.
  cursor.skip(2);
  const isDefined = cursor.u8() !== 0;
  return version === 1 || isDefined ? fillOf(cursor, itemSize) : NO_FILL;
}

/**
 * Parses a fill value message of the old kind (IV.A.2.e).
 * @throws ZpublishError `invalid-metadata`
 */
export function parseOldFill(cursor: ByteCursor, itemSize: number): Hdf5Fill {
  return fillOf(cursor, itemSize);
}

function fillOf(cursor: ByteCursor, itemSize: number): Hdf5Fill {
  const byteLength = cursor.u32();
  // A negative size means that no value is defined.
  if (byteLength === 0 || byteLength > 0x7fff_ffff) return NO_FILL;
  if (byteLength !== itemSize) {
    throw invalidFile(`fill value: expected ${itemSize} bytes, received ${byteLength}`);
  }
  return { item: Uint8Array.from(cursor.take(byteLength)), isUserDefined: true };
}

/**
 * Parses a filter pipeline message (IV.A.2.l).
 * @throws ZpublishError `invalid-metadata`, `unsupported`
 */
export function parseFilters(cursor: ByteCursor): Hdf5Filter[] {
  const version = cursor.version(1, 2);
  const count = cursor.u8();
  if (count > MAX_FILTERS) throw invalidFile(`filters: expected at most ${MAX_FILTERS}, received ${count}`);
  if (version === 1) cursor.skip(6);
  return Array.from({ length: count }, () => parseFilter(cursor, version));
}

function parseFilter(cursor: ByteCursor, version: number): Hdf5Filter {
  const id = cursor.u16();
  const hasName = version === 1 || id >= FIRST_NAMED_FILTER;
  const nameBytes = hasName ? cursor.u16() : 0;
  // Whether a chunk may be stored without it: the chunk's mask says so, too.
  cursor.skip(2);
  const valueCount = cursor.u16();
  const name = cursor.text(version === 1 ? roundUp(nameBytes) : nameBytes);
  if (valueCount * 4 > cursor.left)
    throw invalidFile(`filters: received ${valueCount} values in ${cursor.left} bytes`);
  const values = Array.from({ length: valueCount }, () => cursor.u32());
  if (version === 1 && valueCount % 2 === 1) cursor.skip(4);
  return { id, name, values };
}

/** Returns the next multiple of 8. */
export function roundUp(byteLength: number): number {
  return Math.ceil(byteLength / 8) * 8;
}
