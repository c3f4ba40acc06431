/** A filter of HDF5 with its client data. */
export interface ChunkFilter {
  readonly id: number;
  readonly values: readonly number[];
}

/** Name of the dataset in the file. */
export const DATASET_NAME = "data";

const SUPERBLOCK_BYTES = 96;
const UNDEFINED = -1;
/** Codes of messages (HDF5 File Format Specification, IV.A.2). */
const DATASPACE = 1;
const LINK_INFO = 2;
const DATATYPE = 3;
const FILL_VALUE = 5;
const LINK = 6;
const LAYOUT = 8;
const PIPELINE = 11;

type Field = readonly [value: number, byteLength: number];

/**
 * Makes an HDF5 file of one dataset, which has one chunk of bytes, so that HDF5 itself undoes filters. No filter needs to know the type
 * of the items: what it depends on is in its client data.
 * @param byteLength Length of the decoded chunk.
 */
export function hdf5ChunkFile(
  stored: Uint8Array,
  byteLength: number,
  filters: readonly ChunkFilter[],
): Uint8Array<ArrayBuffer> {
  const groupAt = SUPERBLOCK_BYTES;
  // The addresses are known once the lengths of headers are.
  const groupBytes = group(0).length;
  const headerBytes = dataset(0, byteLength, stored.length, filters).length;
  const datasetAt = groupAt + groupBytes;
  const chunkAt = datasetAt + headerBytes;
  const file = new Uint8Array(chunkAt + stored.length);
  file.set(superblock(groupAt, file.length));
  file.set(group(datasetAt), groupAt);
  file.set(dataset(chunkAt, byteLength, stored.length, filters), datasetAt);
  file.set(stored, chunkAt);
  return file;
}

/** Superblock of version 0, whose root group is cached nowhere. */
function superblock(rootAt: number, fileBytes: number): Uint8Array {
  const signature = Uint8Array.from([0x89, 0x48, 0x44, 0x46, 0x0d, 0x0a, 0x1a, 0x0a]);
  const fields = packed([
    // Versions and a reserved byte, sizes of addresses and of lengths, nodes of B-trees, flags.
    ...bytes(0, 0, 0, 0, 0, 8, 8, 0),
    [4, 2],
    [16, 2],
    [0, 4],
    [0, 8],
    [UNDEFINED, 8],
    [fileBytes, 8],
    [UNDEFINED, 8],
    // Entry of the root group.
    [0, 8],
    [rootAt, 8],
    ...bytes(0, 0, 0, 0, 0, 0, 0, 0),
    [0, 8],
    [0, 8],
  ]);
  return joined([signature, fields]);
}

/** Object header of a group with one link. */
function group(datasetAt: number): Uint8Array {
  const name = new TextEncoder().encode(DATASET_NAME);
  const info = packed([...bytes(0, 0), [UNDEFINED, 8], [UNDEFINED, 8]]);
  const link = joined([packed(bytes(1, 0, name.length)), name, packed([[datasetAt, 8]])]);
  return objectHeader([
    [LINK_INFO, info],
    [LINK, link],
  ]);
}

/** Object header of a dataset with one chunk. */
function dataset(
  chunkAt: number,
  byteLength: number,
  storedBytes: number,
  filters: readonly ChunkFilter[],
): Uint8Array {
  // HDF5 refuses chunk shapes that are wider than they need to be.
  const width = Math.floor((Math.floor(Math.log2(byteLength)) + 8) / 8);
  return objectHeader([
    [DATASPACE, packed([...bytes(2, 1, 0, 1), [byteLength, 8]])],
    // Unsigned integers of 8 bits.
    [DATATYPE, packed([...bytes(0x10, 0, 0, 0), [1, 4], [0, 2], [8, 2]])],
    [FILL_VALUE, packed(bytes(3, 0x0b))],
    // Version 4, chunked, a single chunk with filters; its shape and the size of an item.
    [
      LAYOUT,
      packed([
        ...bytes(4, 2, 2, 2, width),
        [byteLength, width],
        [1, width],
        [1, 1],
        [storedBytes, 8],
        [0, 4],
        [chunkAt, 8],
      ]),
    ],
    [
      PIPELINE,
      packed([
        ...bytes(2, filters.length),
        ...filters.flatMap(({ id, values }): Field[] => [
          [id, 2],
          // Only filters that are not HDF5's own have a name.
          ...(id < 256 ? [] : [[0, 2] as const]),
          [0, 2],
          [values.length, 2],
          ...values.map((value): Field => [value, 4]),
        ]),
      ]),
    ],
  ]);
}

/** Object header of version 1. Messages take a multiple of 8 bytes. */
function objectHeader(messages: readonly (readonly [type: number, body: Uint8Array])[]): Uint8Array {
  const parts = messages.map(([type, body]) => {
    const length = Math.ceil(body.length / 8) * 8;
    return joined([
      packed([[type, 2], [length, 2], ...bytes(0, 0, 0, 0)]),
      body,
      new Uint8Array(length - body.length),
    ]);
  });
  const size = parts.reduce((sum, { length }) => sum + length, 0);
  return joined([packed([...bytes(1, 0), [messages.length, 2], [1, 4], [size, 4], [0, 4]]), ...parts]);
}

function bytes(...values: readonly number[]): Field[] {
  return values.map((value) => [value, 1]);
}

/** Writes numbers one behind the other, little-endian. */
function packed(fields: readonly Field[]): Uint8Array {
  const target = Buffer.alloc(fields.reduce((sum, [, byteLength]) => sum + byteLength, 0));
  let at = 0;
  for (const [value, byteLength] of fields) {
    if (byteLength === 8) at = target.writeBigInt64LE(BigInt(value), at);
    else at = target.writeUIntLE(value, at, byteLength);
  }
  return target;
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}
