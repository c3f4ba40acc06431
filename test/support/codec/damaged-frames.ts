import nodeZlib from "node:zlib";
import { bloscFrame, FLAG, flagsOf, INNER, lz4Block, snappyStream } from "./blosc-frame.js";
import {
  blocksOf,
  COPIED,
  corrupt,
  FOUR_BLOCKS,
  type HostileFrame,
  LZ4,
  ONE_BLOCK,
  PLAIN,
  packed,
  splitFrame,
  streamFrame,
  zstdFrame,
} from "./hostile-frame.js";

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
