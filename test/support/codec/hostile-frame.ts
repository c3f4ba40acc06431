import nodeZlib from "node:zlib";
import {
  type BloscFrame,
  bloscFrame,
  FLAG,
  flagsOf,
  INNER,
  lz4Block,
  snappyStream,
  uint32,
} from "./blosc-frame.js";

/** A Blosc chunk made by hand, and what must come of it. */
interface HostileFrame {
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
const COPIED: BloscFrame = {
  flags: flagsOf(INNER.lz4, FLAG.notSplit, FLAG.copied),
  byteLength: PLAIN.length,
  body: PLAIN,
};

/** A chunk that decodes. */
function valid(name: string, frame: BloscFrame, bytes = PLAIN): HostileFrame {
  return {
    name,
    chunk: bloscFrame({ ...frame, byteLength: bytes.length }),
    byteLength: bytes.length,
    gives: bytes,
  };
}

/** A chunk that is none, where {@link PLAIN} is expected. */
function corrupt(name: string, frame: BloscFrame, notNative?: string): HostileFrame {
  return { name, chunk: bloscFrame(frame), byteLength: PLAIN.length, gives: "corrupt", notNative };
}

/** A stream of literals only, which is longer than what it decodes to. */
export function packed(bytes: Uint8Array): Uint8Array {
  return lz4Block({ literals: bytes });
}

/** The plain bytes in blocks of one stream each. */
function blocksOf(blockSize: number, bytes = PLAIN): Uint8Array[][] {
  return Array.from({ length: Math.ceil(bytes.length / blockSize) }, (_, block) => [
    packed(bytes.subarray(block * blockSize, (block + 1) * blockSize)),
  ]);
}

/** Blocks of as many streams as an item has bytes; a last block that is short is one stream. */
function splitFrame(bytes: Uint8Array, typeSize: number, blockSize: number): BloscFrame {
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

const NO_LENGTHS = "it is not told how long a chunk is";
const NO_PLAN = "it knows no plan";
const UNFILLED = "it leaves what is not decoded as it was";

const MAX_UINT32 = 2 ** 32 - 1;
/** Lengths at which signs and sums turn over. */
const EXTREMES = [2 ** 31 - 1, 2 ** 31, MAX_UINT32 - 15, MAX_UINT32];

const SPLIT = splitFrame(PLAIN, 2, 1024);
const WHOLE = bloscFrame(ONE_BLOCK).length;

/** What is wrong with a header. */
const HEADERS: readonly HostileFrame[] = [
  ...[0, 1, 3, 4, 255].map((version) => corrupt(`version ${version}`, { ...ONE_BLOCK, version })),
  ...[0, 2, 255].map((innerVersion) =>
    corrupt(`version ${innerVersion} of the inner codec`, { ...ONE_BLOCK, innerVersion }),
  ),
  ...[5, 6, 7].map((inner) =>
    corrupt(`inner codec ${inner}`, { ...ONE_BLOCK, flags: flagsOf(inner, FLAG.notSplit) }),
  ),
  corrupt("the reserved flag", { ...ONE_BLOCK, flags: LZ4 | FLAG.reserved }),
  corrupt("the reserved flag, copied", { ...COPIED, flags: COPIED.flags | FLAG.reserved }),
  corrupt("typesize 0", { ...ONE_BLOCK, typeSize: 0 }),
  corrupt("typesize 0, copied", { ...COPIED, typeSize: 0 }),
  ...[0, 1025, ...EXTREMES].flatMap((blockSize) => [
    corrupt(`blocks of ${blockSize} bytes`, { ...ONE_BLOCK, blockSize }),
    corrupt(`blocks of ${blockSize} bytes, copied`, { ...COPIED, blockSize }),
  ]),
  ...[0, 1, 1023, 1025, ...EXTREMES].flatMap((byteLength) => [
    corrupt(`${byteLength} bytes, where 1024 are expected`, { ...ONE_BLOCK, byteLength }, NO_PLAN),
    corrupt(`${byteLength} bytes copied, where 1024 are expected`, { ...COPIED, byteLength }, NO_PLAN),
  ]),
  ...[1023, 1025, 2048].map((byteLength) => ({
    ...corrupt(`${byteLength} bytes expected and announced, and a block of 1024`, {
      ...ONE_BLOCK,
      byteLength,
    }),
    byteLength,
  })),
  ...[0, 1, 15, 16, WHOLE - 1, WHOLE + 1, ...EXTREMES].map((announcedLength) =>
    corrupt(
      `${announcedLength} bytes in all, where there are ${WHOLE}`,
      { ...ONE_BLOCK, announcedLength },
      NO_LENGTHS,
    ),
  ),
  ...[0, 1, 4, 15].map((length) => ({
    ...corrupt(`${length} bytes of a header`, ONE_BLOCK, NO_LENGTHS),
    chunk: bloscFrame(ONE_BLOCK).subarray(0, length),
  })),
  corrupt("a header and nothing else", { ...ONE_BLOCK, blocks: [] }),
  ...[0, 1023, 1025].map((length) =>
    corrupt(`copied, with ${length} bytes`, { ...COPIED, body: new Uint8Array(length) }),
  ),
];

/** What is wrong with the table of blocks, and with their streams. */
const BLOCKS: readonly HostileFrame[] = [
  corrupt("more blocks than there is room for their table", { ...ONE_BLOCK, blockSize: 1 }),
  corrupt("a table and nothing else", { ...ONE_BLOCK, blocks: [], blockSize: 128, body: new Uint8Array(32) }),
  ...[0, 1, 12, 15, 16, 19, 28, 31, ...EXTREMES].map((start) =>
    corrupt(`a block that starts at ${start}`, {
      ...FOUR_BLOCKS,
      starts: ([first, second, , last]) => [first!, second!, start, last!],
    }),
  ),
  ...[0, 1, 3, 4].map((before) =>
    corrupt(`a block that starts ${before} bytes before the end`, {
      ...FOUR_BLOCKS,
      starts: ([first, second, third]) => [first!, second!, third!, bloscFrame(FOUR_BLOCKS).length - before],
    }),
  ),
  corrupt("a block that starts in the midst of another", {
    ...FOUR_BLOCKS,
    starts: ([first, second, third, last]) => [first!, second! + 1, third!, last!],
  }),
  ...[0, 1, 3, ...EXTREMES, MAX_UINT32 - 3, MAX_UINT32 - 4].map((length) =>
    corrupt(`a stream of ${length} bytes`, {
      ...FOUR_BLOCKS,
      streamLength: (found, block) => (block === 1 ? length : found),
    }),
  ),
  corrupt("a last stream one byte past the end", {
    ...FOUR_BLOCKS,
    streamLength: (found, block) => (block === 3 ? found + 1 : found),
  }),
  corrupt("a last stream that is a copy, one byte past the end", {
    ...FOUR_BLOCKS,
    blocks: [...blocksOf(256).slice(0, 3), [PLAIN.subarray(0, 255)]],
    streamLength: (found, block) => (block === 3 ? found + 1 : found),
  }),
  corrupt("a first stream that swallows the length of the second", {
    ...SPLIT,
    streamLength: (found, _, stream) => (stream === 0 ? found + 4 : found),
  }),
  corrupt("a second stream that is not there", { ...SPLIT, blocks: [[packed(PLAIN.subarray(0, 512))]] }),
  corrupt("a second stream that reaches back into the first", {
    ...SPLIT,
    blocks: [
      [
        packed(PLAIN.subarray(0, 512)),
        lz4Block(
          { literals: PLAIN.subarray(0, 1), distance: 2, matchLength: 499 },
          { literals: PLAIN.subarray(0, 12) },
        ),
      ],
    ],
  }),
  corrupt("blocks of one stream that are to be split", { ...SPLIT, blocks: [[packed(PLAIN)]] }),
  corrupt("split blocks that are to be of one stream", { ...SPLIT, flags: LZ4 }),
  corrupt("a short last block that is split", {
    ...splitFrame(PLAIN, 2, 512),
    blockSize: 640,
    blocks: [
      [packed(PLAIN.subarray(0, 320)), packed(PLAIN.subarray(320, 640))],
      [packed(PLAIN.subarray(640, 832)), packed(PLAIN.subarray(832))],
    ],
  }),
  corrupt(
    "a typesize that does not divide split blocks",
    { ...SPLIT, typeSize: 3, blocks: [[0, 1, 2].map(() => packed(PLAIN.subarray(0, 341)))] },
    UNFILLED,
  ),
];

/** What is wrong inside of a stream; see `hostile-lz4.ts` for those of LZ4. */
const STREAMS: readonly HostileFrame[] = [
  ...Object.entries(INNER).flatMap(([name, inner]) =>
    [0, 1, 2, 3, 12, 60].flatMap((length) => [
      corrupt(`${name}: ${length} bytes of 255`, streamFrame(inner, new Uint8Array(length).fill(255))),
      corrupt(`${name}: ${length} zeros`, streamFrame(inner, new Uint8Array(length))),
    ]),
  ),
  corrupt("BloscLZ: literals past the end", streamFrame(INNER.blosclz, Uint8Array.of(31, 1, 2))),
  corrupt("BloscLZ: a match before the start", blosclzMatch(1)),
  corrupt("BloscLZ: a match far before the start", blosclzMatch(0xff, 0xff, 0xff)),
  corrupt(
    "BloscLZ: a match length without an end",
    streamFrame(INNER.blosclz, Uint8Array.of(0, 1, 0xe0, 255, 255)),
  ),
  corrupt(
    "BloscLZ: a match past the end",
    streamFrame(INNER.blosclz, Uint8Array.of(0, 1, 0xe0, 255, 255, 255, 255, 255, 0, 0, 0, 1)),
  ),
  corrupt("Snappy: another length", streamFrame(INNER.snappy, snappyStream(PLAIN.subarray(0, 60), 1023))),
  corrupt("Snappy: a length of 4 GB", streamFrame(INNER.snappy, Uint8Array.of(255, 255, 255, 255, 15, 0, 1))),
  corrupt("Snappy: a length without an end", streamFrame(INNER.snappy, new Uint8Array(20).fill(128))),
  ...[
    ["a copy before the start", [0, 1, 0xfe, 2, 0]],
    ["a copy at offset 0", [0, 1, 0xfe, 0, 0]],
    ["a copy from 4 GB before", [0, 1, 0xff, 255, 255, 255, 255]],
    ["literals of 4 GB", [0xfc, 255, 255, 255, 255, 1]],
    ["literals past the end", [0xf0, 59, 1, 2, 3]],
  ].map(([what, body]) =>
    corrupt(`Snappy: ${what}`, streamFrame(INNER.snappy, Uint8Array.of(0x80, 8, ...(body as number[])))),
  ),
  ...[1023, 1025, 10_000_000].map((length) =>
    corrupt(`zlib: ${length} bytes`, streamFrame(INNER.zlib, nodeZlib.deflateSync(new Uint8Array(length)))),
  ),
  corrupt(
    "zlib: another checksum",
    streamFrame(INNER.zlib, withLastByte(nodeZlib.deflateSync(new Uint8Array(1024)), 255)),
  ),
  corrupt("zlib: cut short", streamFrame(INNER.zlib, nodeZlib.deflateSync(PLAIN).subarray(0, -5))),
  corrupt("zstd: a byte less", streamFrame(INNER.zstd, zstdFrame(PLAIN.subarray(0, 1023)))),
  corrupt("zstd: 4 GB announced", streamFrame(INNER.zstd, zstdFrame(PLAIN, MAX_UINT32))),
  corrupt("zstd: cut short", streamFrame(INNER.zstd, zstdFrame(PLAIN).subarray(0, -1))),
];

/** Chunks that are none. */
export const DAMAGED_FRAMES: readonly HostileFrame[] = [...HEADERS, ...BLOCKS, ...STREAMS];

/** One literal, then a match that reaches this much farther than the literal. */
function blosclzMatch(low: number, ...far: readonly number[]) {
  return streamFrame(INNER.blosclz, Uint8Array.of(0, 1, far.length > 0 ? 0x3f : 0x20, low, ...far, 0, 1));
}

function withLastByte(bytes: Uint8Array, byte: number): Uint8Array {
  bytes[bytes.length - 1] = byte;
  return bytes;
}

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
