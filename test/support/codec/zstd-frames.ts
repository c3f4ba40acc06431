import { uint32 } from "./blosc-frame.js";

const MAGIC = 0xfd2fb528;
/** One segment, that is no window, and a content size of four bytes. */
const SIZED = 0xa0;
/** Neither; the second byte is a window of 128 KiB. */
const UNSIZED = Uint8Array.of(0, 0x38);
const MAX_BLOCK_BYTES = 2 ** 17;

const RAW = 0;
const RUN = 1;
const COMPRESSED = 2;

/** 128 KiB of 0 to 6 again and again, as zstd compresses them. */
const COMPRESSED_BLOCK = Buffer.from("38000102030405060100f6ffca8b11", "hex");

/** A Zstandard frame of one block that is not compressed (RFC 8878, section 3.1.1). */
export function zstdFrame(bytes: Uint8Array, announcedLength = bytes.length): Uint8Array {
  if (bytes.length > MAX_BLOCK_BYTES) throw new Error(`expected one block, received ${bytes.length} bytes`);
  return Buffer.concat([
    uint32(MAGIC),
    Uint8Array.of(SIZED),
    uint32(announcedLength),
    blockHeader(RAW, bytes.length, true),
    bytes,
  ]);
}

/** A frame that does not say its size, of runs: four bytes for 128 KiB. */
export function zstdRuns(byteLength: number): Uint8Array {
  return repeatedBlocks(byteLength, RUN, MAX_BLOCK_BYTES, new Uint8Array(1));
}

/** A frame that does not say its size, of blocks that do not say theirs either: 18 bytes for 128 KiB. */
export function zstdPatterns(byteLength: number): Uint8Array {
  return repeatedBlocks(byteLength, COMPRESSED, COMPRESSED_BLOCK.length, COMPRESSED_BLOCK);
}

function repeatedBlocks(byteLength: number, kind: number, size: number, content: Uint8Array): Uint8Array {
  const count = Math.ceil(byteLength / MAX_BLOCK_BYTES);
  const blocks = Array.from({ length: count }, (_, index) =>
    Buffer.concat([blockHeader(kind, size, index === count - 1), content]),
  );
  return Buffer.concat([uint32(MAGIC), UNSIZED, ...blocks]);
}

function blockHeader(kind: number, size: number, isLast: boolean): Uint8Array {
  return uint32((size << 3) | (kind << 1) | (isLast ? 1 : 0)).subarray(0, 3);
}
