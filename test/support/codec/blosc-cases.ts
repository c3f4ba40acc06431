import { createRandom } from "../../../bench/random.js";
import type { CodecSpec } from "../../../src/zarr/codec-step.js";
import type { NativeCase } from "./native-checks.js";
import { SAMPLE_KINDS, type SampleKind, sampleOf } from "./sample-bytes.js";

/** A chunk to be taken through Blosc: options, and what its bytes are like. */
export interface BloscCase {
  readonly codec: CodecSpec;
  /** Size of its items, which Blosc calls typesize. */
  readonly itemSize: number;
  readonly kind: SampleKind;
  readonly byteLength: number;
  readonly seed: number;
}

/** Inner codecs that are encoded here. */
export const ENCODED_CNAMES = ["lz4", "zlib", "zstd"];
/** Inner codecs that are only decoded here. */
export const DECODED_CNAMES = ["lz4hc", "blosclz", "snappy"];

/** Typesizes: with loops of their own, odd ones, the last that is split (16), the last there is (255), one beyond it. */
const ITEM_SIZES = [1, 2, 3, 4, 7, 8, 12, 16, 24, 32, 255, 300];
/** -1: by item size. */
const SHUFFLES = [0, 1, 2, -1];
/** Zero: Blosc chooses. */
const BLOCK_SIZES = [0, 0, 128, 4096, 10_007, 2 ** 20];
const LEVELS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

/** Around the words of a vector, and the 128 bytes below which Blosc only copies. */
const SMALL_BYTE_LENGTHS = [0, 1, 2, 3, 4, 7, 15, 16, 17, 31, 127, 128, 129, 255, 1000];
/** Around LZ4's reach, its small hash table (64 KiB), and the blocks Blosc chooses. */
const MIDDLE_BYTE_LENGTHS = [
  ...[4096, 65_535, 65_536, 65_537, 2 ** 17 - 1, 2 ** 17 + 1],
  ...[2 ** 18, 2 ** 20 - 3, 2 ** 20 + 17],
];
const LARGE_BYTE_LENGTH = 5_000_000;
/** Blosc's levels from here on are the slowest ones of zstd: a few MB/s. */
const SLOW_ZSTD_LEVEL = 8;
const MAX_SLOW_BYTES = 2 ** 17;

function bytesOfCase({ kind, byteLength, itemSize, seed }: BloscCase): Uint8Array {
  return sampleOf(kind, byteLength, itemSize, seed);
}

function labelOfCase({ codec, itemSize, kind, byteLength, seed }: BloscCase): string {
  return `${JSON.stringify(codec)} of ${byteLength} ${kind} bytes in items of ${itemSize}, seed ${seed}`;
}

/** Cases as {@link NativeCase}. */
export function* nativeCases(cases: Iterable<BloscCase>): Generator<NativeCase> {
  for (const one of cases) {
    const { codec, itemSize } = one;
    yield { codec, itemSize, bytes: bytesOfCase(one), label: labelOfCase(one) };
  }
}

/** Every small length with every level, shuffle and typesize; contents and block sizes take turns. */
export function* smallBloscCases(cnames: readonly string[]): Generator<BloscCase> {
  let turn = 0;
  for (const cname of cnames) {
    for (const clevel of LEVELS) {
      for (const shuffle of SHUFFLES) {
        for (const itemSize of ITEM_SIZES) {
          for (const byteLength of SMALL_BYTE_LENGTHS) {
            const blocksize = BLOCK_SIZES[turn % BLOCK_SIZES.length]!;
            const kind = SAMPLE_KINDS[turn % SAMPLE_KINDS.length]!;
            turn++;
            yield {
              codec: { id: "blosc", cname, clevel, shuffle, blocksize },
              itemSize,
              kind,
              byteLength,
              seed: turn,
            };
          }
          // Keeps the turns from falling together with the lengths.
          turn++;
        }
      }
    }
  }
}

/**
 * Lengths from 4 KiB to 1 MiB, a few of 5 MB: of LZ4 every typesize with every shuffle and length, of the others some;
 * level, block size and contents are drawn, the same each time.
 */
export function* largeBloscCases(cnames: readonly string[]): Generator<BloscCase> {
  const random = createRandom(4);
  for (const byteLength of MIDDLE_BYTE_LENGTHS) {
    for (const cname of cnames) {
      const every = ITEM_SIZES.flatMap((itemSize) => SHUFFLES.map((shuffle) => ({ itemSize, shuffle })));
      const some = Array.from({ length: 8 }, () => drawn(every, random));
      for (const { itemSize, shuffle } of cname === "lz4" ? every : some) {
        yield drawCase(random, cname, byteLength, itemSize, shuffle);
      }
    }
  }
  for (const cname of cnames) {
    for (let count = cname === "lz4" ? 12 : 2; count > 0; count--) {
      yield drawCase(random, cname, LARGE_BYTE_LENGTH, drawn(ITEM_SIZES, random), drawn(SHUFFLES, random));
    }
  }
}

function drawCase(
  random: () => number,
  cname: string,
  byteLength: number,
  itemSize: number,
  shuffle: number,
): BloscCase {
  const isLimited = cname === "zstd" && byteLength > MAX_SLOW_BYTES;
  const levels = isLimited ? LEVELS.filter((level) => level < SLOW_ZSTD_LEVEL) : LEVELS;
  return {
    codec: {
      id: "blosc",
      cname,
      clevel: drawn(levels, random),
      shuffle,
      blocksize: drawn(BLOCK_SIZES, random),
    },
    itemSize,
    kind: drawn(SAMPLE_KINDS, random),
    byteLength,
    seed: Math.floor(random() * 1e6),
  };
}

function drawn<T>(from: readonly T[], random: () => number): T {
  return from[Math.floor(random() * from.length)]!;
}
