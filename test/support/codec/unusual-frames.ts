import nodeZlib from "node:zlib";
import { FLAG, flagsOf, INNER, snappyStream, uint32 } from "./blosc-frame.js";
import {
  blocksOf,
  COPIED,
  FOUR_BLOCKS,
  type HostileFrame,
  LZ4,
  ONE_BLOCK,
  PLAIN,
  packed,
  splitFrame,
  streamFrame,
  valid,
  zstdFrame,
} from "./hostile-frame.js";

const GARBAGE = new Uint8Array(50).fill(99);
const NO_EMPTY = "numcodecs takes a decoded length of 0 for an error";
const TYPE_SIZES_WITH_REST = [3, 7, 100, 255];

/** Chunks that hardly any writer writes, and that are right: c-blosc reads them. */
export const UNUSUAL_FRAMES: readonly HostileFrame[] = [
  valid("four blocks", FOUR_BLOCKS),
  valid("blocks in reverse order", {
    ...FOUR_BLOCKS,
    blocks: blocksOf(256).reverse(),
    starts: (found) => [...found].reverse(),
  }),
  valid(
    "all blocks at one place",
    {
      ...FOUR_BLOCKS,
      blocks: [blocksOf(256)[0]!, [], [], []],
      starts: ([first]) => [first!, first!, first!, first!],
    },
    repeat(PLAIN.subarray(0, 256), 4),
  ),
  valid("garbage between the table and the block", {
    ...ONE_BLOCK,
    blocks: [[]],
    body: Buffer.concat([GARBAGE, uint32(packed(PLAIN).length), packed(PLAIN)]),
    starts: ([first]) => [first! + GARBAGE.length],
  }),
  valid("garbage behind the last block", { ...FOUR_BLOCKS, body: GARBAGE }),
  valid("a stream that is a copy", { ...ONE_BLOCK, blocks: [[PLAIN]] }),
  valid(
    "blocks of one byte",
    {
      ...ONE_BLOCK,
      byteLength: 200,
      blockSize: 1,
      blocks: [...PLAIN.subarray(0, 200)].map((byte) => [Uint8Array.of(byte)]),
    },
    PLAIN.subarray(0, 200),
  ),
  valid("a last block of one byte", { ...ONE_BLOCK, blockSize: 1023, blocks: blocksOf(1023) }),

  valid("both shuffles, which is byte shuffle", {
    ...ONE_BLOCK,
    flags: LZ4 | FLAG.shuffle | FLAG.bitShuffle,
    typeSize: 4,
    blocks: [[packed(shuffled(PLAIN, 4))]],
  }),
  valid("both shuffles of items of one byte, which is bit shuffle", {
    ...ONE_BLOCK,
    flags: LZ4 | FLAG.shuffle | FLAG.bitShuffle,
    blocks: [[packed(bitShuffled(PLAIN, 1))]],
  }),
  valid("byte shuffle of items of one byte, which is none", { ...ONE_BLOCK, flags: LZ4 | FLAG.shuffle }),
  ...TYPE_SIZES_WITH_REST.map((typeSize) =>
    valid(`byte shuffle with bytes left over, typesize ${typeSize}`, {
      ...ONE_BLOCK,
      flags: LZ4 | FLAG.shuffle,
      typeSize,
      blocks: [[packed(shuffled(PLAIN, typeSize))]],
    }),
  ),
  ...[...TYPE_SIZES_WITH_REST, 9, 127, 128].map((typeSize) =>
    valid(`bit shuffle, typesize ${typeSize}`, {
      ...ONE_BLOCK,
      flags: LZ4 | FLAG.bitShuffle,
      typeSize,
      blocks: [[packed(bitShuffled(PLAIN, typeSize))]],
    }),
  ),
  ...[FLAG.shuffle, FLAG.bitShuffle].map((shuffle) =>
    valid(`a typesize larger than a block, shuffle ${shuffle}`, {
      ...ONE_BLOCK,
      flags: LZ4 | shuffle,
      typeSize: 255,
      blockSize: 200,
      blocks: blocksOf(200),
    }),
  ),

  valid("split into two streams", splitFrame(PLAIN, 2, 1024)),
  valid("split into sixteen streams", splitFrame(repeat(PLAIN, 4), 16, 2048), repeat(PLAIN, 4)),
  valid(
    "split, but for a last block that is short",
    splitFrame(repeat(PLAIN, 2).subarray(0, 1500), 4, 1024),
    repeat(PLAIN, 2).subarray(0, 1500),
  ),
  valid("to be split, with a typesize of 17", { ...ONE_BLOCK, flags: flagsOf(INNER.lz4), typeSize: 17 }),
  valid("to be split, in blocks of 127 items", {
    ...ONE_BLOCK,
    flags: flagsOf(INNER.lz4),
    typeSize: 4,
    blockSize: 508,
    blocks: blocksOf(508),
  }),

  valid("copied", COPIED),
  valid("copied, with both shuffles", {
    ...COPIED,
    flags: COPIED.flags | FLAG.shuffle | FLAG.bitShuffle,
    typeSize: 4,
  }),
  {
    ...valid("copied, from an unknown inner codec", {
      ...COPIED,
      flags: flagsOf(7, FLAG.copied),
      innerVersion: 9,
    }),
    mayBeRefused: true,
  },
  valid("copied, in blocks", { ...COPIED, blockSize: 100 }),
  valid("copied, one byte", { ...COPIED, byteLength: 1, body: Uint8Array.of(7) }, Uint8Array.of(7)),
  {
    ...valid("no bytes", { flags: LZ4 | FLAG.copied, byteLength: 0, blockSize: 1 }, new Uint8Array(0)),
    notNative: NO_EMPTY,
  },
  {
    ...valid("no bytes, and garbage", { flags: LZ4, byteLength: 0, body: GARBAGE }, new Uint8Array(0)),
    mayBeRefused: true,
    notNative: NO_EMPTY,
  },

  valid(
    "BloscLZ: literals and a match",
    streamFrame(INNER.blosclz, blosclzStream()),
    repeat(PLAIN.subarray(0, 32), 32),
  ),
  valid(
    "Snappy: literals and copies",
    streamFrame(INNER.snappy, snappyStream(PLAIN.subarray(0, 32), 1024)),
    repeat(PLAIN.subarray(0, 32), 32),
  ),
  valid(
    "zlib",
    streamFrame(INNER.zlib, nodeZlib.deflateSync(repeat(PLAIN.subarray(0, 64), 16))),
    repeat(PLAIN.subarray(0, 64), 16),
  ),
  valid("zstd: a block that is not compressed", streamFrame(INNER.zstd, zstdFrame(PLAIN))),
];

/** 32 literals, then the same again and again. */
function blosclzStream(): Uint8Array {
  // 7 in the control byte stands for 9 bytes and more; c-blosc wants a literal as the end.
  const more = 1024 - 32 - 9 - 1;
  const lengths = [...new Uint8Array(Math.floor(more / 255)).fill(255), more % 255];
  return Uint8Array.of(31, ...PLAIN.subarray(0, 32), 0xe0, ...lengths, 31, 0, PLAIN[31]!);
}

/** Byte `b` of all items together, as Blosc does it. */
function shuffled(bytes: Uint8Array, typeSize: number): Uint8Array {
  const count = Math.floor(bytes.length / typeSize);
  return bytes.map((byte, at) => {
    if (at >= count * typeSize) return byte;
    return bytes[(at % count) * typeSize + Math.floor(at / count)]!;
  });
}

/** Bit `k` of byte `b` of all items together, as Blosc does it. */
function bitShuffled(bytes: Uint8Array, typeSize: number): Uint8Array {
  const count = Math.floor(bytes.length / typeSize);
  if (count % 8 !== 0) return bytes;
  const shuffled = bytes.slice().fill(0, 0, count * typeSize);
  for (let at = 0; at < count * typeSize * 8; at++) {
    const row = Math.floor(at / count);
    const bit = (bytes[(at % count) * typeSize + (row >>> 3)]! >>> (row & 7)) & 1;
    shuffled[at >>> 3]! |= bit << (at & 7);
  }
  return shuffled;
}

function repeat(bytes: Uint8Array, times: number): Uint8Array {
  return Buffer.concat(Array.from({ length: times }, () => bytes));
}
