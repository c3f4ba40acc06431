import type { CodecStep } from "../../zarr/codec-step.js";
import { checkDecodedLength, corrupt } from "../codec.js";

/*
 * The parts of a Blosc 1 chunk, for servers and browsers. The header, little-endian (c-blosc, README_CHUNK_FORMAT.rst):
 *
 *   0 format version   1 version of the inner format   2 flags   3 type size   4 nbytes   8 blocksize   12 cbytes
 */

/** Length of the header. */
export const HEADER_BYTES = 16;
/** Version of the container that Blosc 1 writes; Blosc 2 writes 3 and up. */
const FORMAT_VERSION = 2;
/** Version of every inner format. */
const INNER_VERSION = 1;

/** Blocks are byte-shuffled. */
export const FLAG_SHUFFLE = 0x01;
/** The decoded bytes follow the header as they are. */
export const FLAG_COPIED = 0x02;
/** Blocks are bit-shuffled. */
export const FLAG_BIT_SHUFFLE = 0x04;
/** Blocks are one stream each. */
export const FLAG_NOT_SPLIT = 0x10;
const FLAG_RESERVED = 0x08;
const FORMAT_SHIFT = 5;

/** Inner formats, in the order of their numbers in the top three bits of the flags. */
export type InnerFormat = "blosclz" | "lz4" | "snappy" | "zlib" | "zstd";
const INNER_FORMATS: readonly InnerFormat[] = ["blosclz", "lz4", "snappy", "zlib", "zstd"];

/** What a header says, checked. */
export interface BloscHeader {
  /** `FLAG_…`, without the inner format. */
  readonly flags: number;
  readonly innerFormat: InnerFormat;
  /** Bytes of an item, 1 to 255. */
  readonly typeSize: number;
  /** Bytes of the decoded chunk. */
  readonly byteLength: number;
  /** Decoded bytes of every block but the last. */
  readonly blockSize: number;
}

/** Reads and checks a header. @throws ZpublishError `corrupt-chunk`, also if its decoded length is not the step's. */
export function readBloscHeader(bytes: Uint8Array, step: CodecStep): BloscHeader {
  if (bytes.length < HEADER_BYTES) {
    throw corrupt(`blosc: expected a header of ${HEADER_BYTES} bytes, received ${bytes.length}`);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, HEADER_BYTES);
  const version = view.getUint8(0);
  if (version !== FORMAT_VERSION) {
    throw corrupt(`blosc: expected format version ${FORMAT_VERSION}, received ${version}`);
  }
  const encodedLength = view.getUint32(12, true);
  if (encodedLength !== bytes.length) {
    throw corrupt(`blosc: the header announces ${encodedLength} bytes, received ${bytes.length}`);
  }
  const byteLength = view.getUint32(4, true);
  checkDecodedLength("blosc", byteLength, step);
  const blockSize = view.getUint32(8, true);
  const typeSize = view.getUint8(3);
  if (byteLength > 0 && typeSize === 0) throw corrupt("blosc: expected a type size from 1 on, received 0");
  if (byteLength > 0 && (blockSize === 0 || blockSize > byteLength)) {
    throw corrupt(`blosc: expected blocks of 1 to ${byteLength} bytes, received ${blockSize}`);
  }
  const flags = view.getUint8(2);
  if ((flags & FLAG_RESERVED) !== 0) throw corrupt("blosc: expected flag 0x08 not to be set");
  const innerFormat = INNER_FORMATS[flags >>> FORMAT_SHIFT];
  if (innerFormat === undefined) throw corrupt(`blosc: unknown inner codec ${flags >>> FORMAT_SHIFT}`);
  const innerVersion = view.getUint8(1);
  if ((flags & FLAG_COPIED) === 0 && byteLength > 0 && innerVersion !== INNER_VERSION) {
    throw corrupt(`blosc: expected ${innerFormat} of version ${INNER_VERSION}, received ${innerVersion}`);
  }
  return { flags: flags & ((1 << FORMAT_SHIFT) - 1), innerFormat, typeSize, byteLength, blockSize };
}

/** Returns the decoded bytes of a chunk that is a copy of them; undefined for other chunks. @throws ZpublishError `corrupt-chunk` */
export function copiedBytes(bytes: Uint8Array, { flags, byteLength }: BloscHeader): Uint8Array | undefined {
  if ((flags & FLAG_COPIED) === 0) return undefined;
  if (bytes.length === byteLength + HEADER_BYTES) return bytes.subarray(HEADER_BYTES);
  throw corrupt(`blosc: expected ${byteLength} copied bytes, received ${bytes.length - HEADER_BYTES}`);
}

/** A part of a block that is encoded by itself. */
export interface BloscStream {
  /** A copy of the decoded bytes if there are as many. */
  readonly encoded: Uint8Array;
  readonly decodedLength: number;
}

/** A block: where its decoded bytes begin and end, and its streams. */
interface BloscBlock {
  readonly begin: number;
  readonly end: number;
  readonly streams: readonly BloscStream[];
  /** Throws that the block is damaged. */
  readonly refuse: () => never;
}

/** Finds the blocks of a chunk, checking that their streams lie in it. @throws ZpublishError `corrupt-chunk` */
export function* bloscBlocks(bytes: Uint8Array, header: BloscHeader): Generator<BloscBlock> {
  const { byteLength, blockSize } = header;
  const count = byteLength === 0 ? 0 : Math.ceil(byteLength / blockSize);
  const startsEnd = HEADER_BYTES + 4 * count;
  if (startsEnd > bytes.length)
    throw corrupt(`blosc: expected ${count} blocks, received ${bytes.length} bytes in all`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let block = 0; block < count; block++) {
    const refuse = (): never => {
      throw corrupt(`blosc: block ${block + 1} of ${count} is damaged`);
    };
    const begin = block * blockSize;
    const end = Math.min(begin + blockSize, byteLength);
    const from = view.getUint32(HEADER_BYTES + 4 * block, true);
    const streams = from < startsEnd ? undefined : locateStreams(view, bytes, from, end - begin, header);
    yield { begin, end, streams: streams ?? refuse(), refuse };
  }
}

/** Finds the streams of a block, each behind its length; undefined if they do not fit into the chunk. */
function locateStreams(
  view: DataView,
  bytes: Uint8Array,
  begin: number,
  blockLength: number,
  { flags, typeSize, blockSize }: BloscHeader,
): BloscStream[] | undefined {
  const isSplit =
    (flags & FLAG_NOT_SPLIT) === 0 && blockLength === blockSize && isSplittable(typeSize, blockSize);
  const count = isSplit ? typeSize : 1;
  const decodedLength = blockLength / count;
  if (!Number.isInteger(decodedLength)) return undefined;
  const streams: BloscStream[] = [];
  let from = begin;
  while (streams.length < count) {
    if (from + 4 > bytes.length) return undefined;
    const end = from + 4 + view.getUint32(from, true);
    if (end > bytes.length) return undefined;
    streams.push({ encoded: bytes.subarray(from + 4, end), decodedLength });
    from = end;
  }
  return streams;
}

/** Writes a header. @param encodedLength Bytes of the whole encoded chunk. */
export function writeBloscHeader(target: Uint8Array, header: BloscHeader, encodedLength: number): void {
  const view = new DataView(target.buffer, target.byteOffset, HEADER_BYTES);
  view.setUint8(0, FORMAT_VERSION);
  view.setUint8(1, INNER_VERSION);
  view.setUint8(2, header.flags | (INNER_FORMATS.indexOf(header.innerFormat) << FORMAT_SHIFT));
  view.setUint8(3, header.typeSize);
  view.setUint32(4, header.byteLength, true);
  view.setUint32(8, header.blockSize, true);
  view.setUint32(12, encodedLength, true);
}

/** Inner codecs that blocks can be encoded with. */
export type InnerCodec = "lz4" | "zlib" | "zstd";

/** Split blocks have one stream per byte of an item: at most 16, of at least 128 bytes. */
const MAX_SPLITS = 16;
const MIN_SPLIT_BYTES = 128;

/** Bounds of a forced block size; the upper one is BLOSC_MAX_BLOCKSIZE. */
const MIN_BLOCK_BYTES = 128;
const MAX_BLOCK_BYTES = Math.floor((0x7fffffff - 255 * 4) / 3);

/** Blocks are this times a factor by level; smaller chunks are one block. */
const BASE_BLOCK_BYTES = 32 * 1024;
const BASE_BLOCKS_BY_LEVEL = [1 / 4, 1 / 2, 1, 2, 4, 4, 8, 8, 8, 8];

const MIN_SPLITTABLE_BLOCK_BYTES = 64 * 1024;
const MAX_SPLITTABLE_STREAM_BYTES = 256 * 1024;
const MAX_SPLITTABLE_BLOCK_BYTES = 1024 * 1024;

/** Whether a block is large enough to be split, unless the flags of its chunk say that it is not. */
function isSplittable(typeSize: number, blockSize: number): boolean {
  return typeSize <= MAX_SPLITS && Math.floor(blockSize / typeSize) >= MIN_SPLIT_BYTES;
}

/** Whether c-blosc 1.21 splits blocks of such sizes (split mode "forward compatible"). */
export function isSplit(inner: InnerCodec, typeSize: number, blockSize: number): boolean {
  return inner !== "zstd" && isSplittable(typeSize, blockSize);
}

/**
 * Block size that c-blosc 1.21 chooses (`compute_blocksize`), in decoded bytes, so that encoded sizes are the same.
 * @param forced As in the codec's `blocksize`; 0: automatic.
 */
export function blockSizeOf(
  inner: InnerCodec,
  level: number,
  typeSize: number,
  byteLength: number,
  forced: number,
): number {
  if (byteLength < typeSize) return 1;
  let size = byteLength;
  if (forced > 0) size = Math.min(Math.max(forced, MIN_BLOCK_BYTES), MAX_BLOCK_BYTES);
  else if (byteLength >= BASE_BLOCK_BYTES) {
    // Codecs for high compression lose much at the beginning of every block.
    const isThorough = inner !== "lz4";
    size = BASE_BLOCK_BYTES * BASE_BLOCKS_BY_LEVEL[level]! * (isThorough ? 2 : 1);
    if (isThorough && level === 9) size *= 2;
  }
  if (level > 0 && isSplit(inner, typeSize, size)) {
    size = Math.min(size, MAX_SPLITTABLE_STREAM_BYTES) * typeSize;
    size = Math.min(Math.max(size, MIN_SPLITTABLE_BLOCK_BYTES), MAX_SPLITTABLE_BLOCK_BYTES);
  }
  size = Math.min(size, byteLength);
  return size > typeSize ? size - (size % typeSize) : size;
}
