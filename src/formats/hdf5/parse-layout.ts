import { type ByteCursor, invalidFile, unsupportedFile } from "./byte-cursor.js";
import type { Hdf5Input } from "./hdf5-input.js";
import type { Hdf5ChunkIndex, Hdf5Layout, Hdf5Type } from "./hdf5-model.js";
import { itemCount } from "./parse-dataspace.js";
import { MAX_RANK } from "./parse-datatype.js";

/** A dataset's shape and type, which a layout has to agree with. */
export interface LayoutOwner {
  readonly shape: readonly number[] | null;
  readonly type: Hdf5Type;
}

/** Bytes of the largest chunk (HDF5 reference of `H5Pset_chunk`). Version 5 allows more. */
const MAX_CHUNK_BYTES = 0xffff_ffff;

/**
 * Parses a layout message (HDF5 File Format Specification, IV.A.2.i).
 * @throws ZpublishError `invalid-metadata`, also if it does not fit the dataset or the file; `unsupported`
 */
export function parseLayout(input: Hdf5Input, cursor: ByteCursor, owner: LayoutOwner): Hdf5Layout {
  const version = cursor.version(1, 5);
  return version < 3 ? parseOldLayout(input, cursor, owner) : parseNewLayout(input, cursor, owner, version);
}

/** Versions 1 and 2. */
function parseOldLayout(input: Hdf5Input, cursor: ByteCursor, owner: LayoutOwner): Hdf5Layout {
  const rank = parseRank(cursor);
  const layoutClass = cursor.u8();
  cursor.skip(5);
  const address = layoutClass === 0 ? null : cursor.optional();
  const lengths = Array.from({ length: rank }, () => cursor.u32());
  if (layoutClass === 0) return compact(cursor, cursor.u32(), owner);
  if (layoutClass === 1) return contiguous(input, address, owner);
  if (layoutClass !== 2) throw invalidFile(`layout: expected class 0 to 2, received ${layoutClass}`);
  return chunked(
    input,
    { version: 3, lengths, address, edgesAreUnfiltered: false, index: { kind: "b-tree-1" } },
    owner,
  );
}

/** Versions 3 to 5. */
function parseNewLayout(
  input: Hdf5Input,
  cursor: ByteCursor,
  owner: LayoutOwner,
  version: number,
): Hdf5Layout {
  const layoutClass = cursor.u8();
  switch (layoutClass) {
    case 0:
      return compact(cursor, cursor.u16(), owner);
    case 1:
      return contiguous(input, cursor.optional(), owner);
    case 2:
      return version === 3
        ? parseChunked3(input, cursor, owner)
        : parseChunked4(input, cursor, owner, version);
    case 3:
      return { kind: "unsupported", reason: "it is a virtual dataset, made of others" };
    default:
      return { kind: "unsupported", reason: `its layout has the unknown class ${layoutClass}` };
  }
}

function parseChunked3(input: Hdf5Input, cursor: ByteCursor, owner: LayoutOwner): Hdf5Layout {
  const rank = parseRank(cursor);
  const address = cursor.optional();
  const lengths = Array.from({ length: rank }, () => cursor.u32());
  return chunked(
    input,
    { version: 3, lengths, address, edgesAreUnfiltered: false, index: { kind: "b-tree-1" } },
    owner,
  );
}

function parseChunked4(
  input: Hdf5Input,
  cursor: ByteCursor,
  owner: LayoutOwner,
  version: number,
): Hdf5Layout {
  const flags = cursor.u8();
  const rank = parseRank(cursor);
  const lengthBytes = cursor.u8();
  if (lengthBytes < 1 || lengthBytes > 8)
    throw invalidFile(`layout: received lengths of ${lengthBytes} bytes`);
  const lengths = Array.from({ length: rank }, () => cursor.uint(lengthBytes));
  const index = parseIndex(cursor, flags);
  const address = cursor.optional();
  return chunked(input, { version, lengths, address, edgesAreUnfiltered: (flags & 1) !== 0, index }, owner);
}

/** Parses the number of lengths: those of a chunk, and the size of an item. */
function parseRank(cursor: ByteCursor): number {
  const rank = cursor.u8();
  if (rank > MAX_RANK + 1)
    throw invalidFile(`layout: expected at most ${MAX_RANK + 1} lengths, received ${rank}`);
  return rank;
}

function parseIndex(cursor: ByteCursor, flags: number): Hdf5ChunkIndex {
  const kind = cursor.u8();
  switch (kind) {
    case 1: {
      const isFiltered = (flags & 2) !== 0;
      const byteLength = isFiltered ? cursor.u64() : null;
      return { kind: "single", byteLength, filterMask: isFiltered ? cursor.u32() : 0 };
    }
    case 2:
      return { kind: "implicit" };
    case 3:
      return { kind: "fixed-array", pageBits: cursor.u8() };
    case 4: {
      const [maxBits, indexElements, minPointers, minElements] = [
        cursor.u8(),
        cursor.u8(),
        cursor.u8(),
        cursor.u8(),
      ];
      return {
        kind: "extensible-array",
        maxBits,
        indexElements,
        minPointers,
        minElements,
        pageBits: cursor.u8(),
      };
    }
    case 5:
      // Size of nodes, and when they are split and merged: the tree's header has them, too.
      cursor.skip(6);
      return { kind: "b-tree-2" };
    default:
      throw unsupportedFile(`layout: the index of chunks has the unknown kind ${kind}`);
  }
}

function compact(cursor: ByteCursor, byteLength: number, owner: LayoutOwner): Hdf5Layout {
  const expected = itemCount(owner.shape) * owner.type.size;
  if (byteLength < expected) {
    throw invalidFile(`layout: expected ${expected} bytes of compact data, received ${byteLength}`);
  }
  // A copy, because the model outlives the file's blocks.
  return { kind: "compact", bytes: Uint8Array.from(cursor.take(expected)) };
}

function contiguous(input: Hdf5Input, address: number | null, owner: LayoutOwner): Hdf5Layout {
  const byteLength = itemCount(owner.shape) * owner.type.size;
  // Files that were never written beyond their metadata have no such address.
  if (address === null || byteLength === 0) return { kind: "contiguous", address: null, byteLength };
  input.checkInside(address, byteLength, "contiguous data");
  return { kind: "contiguous", address: address + input.baseAddress, byteLength };
}

function chunked(
  input: Hdf5Input,
  layout: {
    readonly version: number;
    /** Those of a chunk, and the size of an item. */
    readonly lengths: readonly number[];
    readonly address: number | null;
    readonly edgesAreUnfiltered: boolean;
    readonly index: Hdf5ChunkIndex;
  },
  owner: LayoutOwner,
): Hdf5Layout {
  const { lengths, address, version, edgesAreUnfiltered, index } = layout;
  const chunkShape = lengths.slice(0, -1);
  const itemSize = lengths.at(-1) ?? 0;
  const rank = owner.shape?.length ?? 0;
  if (chunkShape.length !== rank || rank === 0) {
    throw invalidFile(`layout: expected chunks of ${rank} axes, received ${chunkShape.length}`);
  }
  if (itemSize !== owner.type.size) {
    throw invalidFile(`layout: expected items of ${owner.type.size} bytes, received ${itemSize}`);
  }
  const chunkBytes = lengths.reduce((product, length) => product * length, 1);
  if (chunkBytes === 0 || chunkBytes > MAX_CHUNK_BYTES) {
    throw invalidFile(`layout: expected chunks of 1 to ${MAX_CHUNK_BYTES} bytes, received ${chunkBytes}`);
  }
  if (address !== null) input.checkInside(address, 1, "index of chunks");
  return {
    kind: "chunked",
    version,
    chunkShape,
    itemSize,
    address: address === null ? null : address + input.baseAddress,
    baseAddress: input.baseAddress,
    edgesAreUnfiltered,
    index,
  };
}
