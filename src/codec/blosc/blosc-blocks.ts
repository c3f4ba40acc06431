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
export function isSplittable(typeSize: number, blockSize: number): boolean {
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
