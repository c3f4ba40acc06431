import { type BloscFrame, bloscFrame, FLAG, flagsOf, INNER, lz4Block, uint32 } from "./blosc-frame.js";

/** A Blosc chunk made by hand, and what must come of it. */
export interface HostileFrame {
  readonly name: string;
  readonly chunk: Uint8Array;
  /** What the plan expects. */
  readonly byteLength: number;
  /** The bytes, or that it is corrupt. */
  readonly gives: Uint8Array | "corrupt";
  /** Against the rules and harmless: a decoder may refuse it as well. */
  readonly mayBeRefused?: boolean;
  /** Why native is not to be asked; undefined: it does the same. */
  readonly notNative?: string | undefined;
}

/** The plain bytes of most of these chunks: no byte is like its neighbours. */
export const PLAIN: Uint8Array = new Uint8Array(1024).map((_, i) => (i * i * 7 + (i >>> 3)) & 255);

/** Flags of blocks that are one stream of LZ4. */
export const LZ4: number = flagsOf(INNER.lz4, FLAG.notSplit);

/** One block of LZ4. */
export const ONE_BLOCK: BloscFrame = { flags: LZ4, byteLength: PLAIN.length, blocks: [[packed(PLAIN)]] };

/** Four blocks of LZ4. */
export const FOUR_BLOCKS: BloscFrame = {
  flags: LZ4,
  byteLength: PLAIN.length,
  blockSize: 256,
  blocks: blocksOf(256),
};

/** Nothing compressed. */
export const COPIED: BloscFrame = {
  flags: flagsOf(INNER.lz4, FLAG.notSplit, FLAG.copied),
  byteLength: PLAIN.length,
  body: PLAIN,
};

/** A chunk that decodes. */
export function valid(name: string, frame: BloscFrame, bytes = PLAIN): HostileFrame {
  return {
    name,
    chunk: bloscFrame({ ...frame, byteLength: bytes.length }),
    byteLength: bytes.length,
    gives: bytes,
  };
}

/** A chunk that is none, where {@link PLAIN} is expected. */
export function corrupt(name: string, frame: BloscFrame, notNative?: string): HostileFrame {
  return { name, chunk: bloscFrame(frame), byteLength: PLAIN.length, gives: "corrupt", notNative };
}

/** A stream of literals only, which is longer than what it decodes to. */
export function packed(bytes: Uint8Array): Uint8Array {
  return lz4Block({ literals: bytes });
}

/** The plain bytes in blocks of one stream each. */
export function blocksOf(blockSize: number, bytes = PLAIN): Uint8Array[][] {
  return Array.from({ length: Math.ceil(bytes.length / blockSize) }, (_, block) => [
    packed(bytes.subarray(block * blockSize, (block + 1) * blockSize)),
  ]);
}

/** Blocks of as many streams as an item has bytes; a last block that is short is one stream. */
export function splitFrame(bytes: Uint8Array, typeSize: number, blockSize: number): BloscFrame {
  const streamSize = blockSize / typeSize;
  const blocks: Uint8Array[][] = [];
  for (let begin = 0; begin < bytes.length; begin += blockSize) {
    const block = bytes.subarray(begin, begin + blockSize);
    const isWhole = block.length === blockSize;
    blocks.push(isWhole ? blocksOf(streamSize, block).flat() : [packed(block)]);
  }
  return { flags: flagsOf(INNER.lz4), typeSize, byteLength: bytes.length, blockSize, blocks };
}

/** One block of one stream of any inner codec, for {@link PLAIN}. */
export function streamFrame(inner: number, stream: Uint8Array): BloscFrame {
  return { ...ONE_BLOCK, flags: flagsOf(inner, FLAG.notSplit), blocks: [[stream]] };
}

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
