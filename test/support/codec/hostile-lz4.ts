import { lz4Block } from "./blosc-frame.js";

/** An LZ4 block made by hand, and what must come of it. */
export interface HostileBlock {
  readonly name: string;
  /** Made when it is needed: some are 17 MB. */
  readonly block: () => Uint8Array;
  /** Bytes it is to decode to. */
  readonly byteLength: number;
  /** The bytes, or that it is corrupt. */
  readonly gives: Uint8Array | "corrupt";
  /** Against the rules for the end of a block, and harmless: a decoder may refuse it as well. */
  readonly mayBeRefused?: boolean;
  /** Why native is not to be asked; absent: it does the same. */
  readonly notNative?: string;
}

const MIN_MATCH = 4;
/** What a token says of itself; lengths from here on have more bytes. */
const TOKEN_LENGTH = 15;
/** So many literals at the end satisfy every decoder. */
const TAIL = ascending(12, 200);
/** With so many behind it, a sequence may be copied in the way that writes too much. */
const LONG_TAIL = ascending(200, 30);

const DISTANCES = Array.from({ length: 40 }, (_, index) => index + 1);

/** Every block that is worth a try. */
export const HOSTILE_BLOCKS: readonly HostileBlock[] = [
  ...[1, 14, 15, 16, 269, 270, 271, 524, 525, 526, 4000].map((length) =>
    good(`${length} literals`, lz4Block({ literals: ascending(length) }), ascending(length)),
  ),
  ...DISTANCES.flatMap((distance) => [
    repeated(distance, 400),
    ...[4, 15, 16, 17, 18, 19, 31, 32, 33, 64, 65].map((length) => repeated(distance, length, LONG_TAIL)),
  ]),
  ...[4, 5, 18, 19, 20, 273, 274, 275, 528, 529, 530].map((matchLength) => repeated(7, matchLength)),
  repeated(65_535, 100),
  // As little room as copies that write too much need, and less.
  ...Array.from({ length: 40 }, (_, room) => repeated(14, 4, ascending(12 + room))),

  corrupt("no bytes at all", new Uint8Array(0), 100),
  corrupt("a token of nothing", Uint8Array.of(0), 100),
  corrupt("a match token at the very end", Uint8Array.of(0x40, 1, 2, 3, 4, 4, 0, 0x0f), 100),
  corrupt("half an offset", Uint8Array.of(0x40, 1, 2, 3, 4, 4), 8),
  corrupt("literals past the end of the block", Uint8Array.of(0x50, 1, 2, 3), 5),
  corrupt(
    "literals past the end of the block by one",
    lz4Block({ literals: ascending(20) }).subarray(0, -1),
    20,
  ),
  // What lies behind the block is a good offset, if anybody looks.
  ...[1, 2, 12].map((missing) =>
    corrupt(
      `literals past the end of the block by ${missing}, and a match`,
      lz4Block({ literals: ascending(300), distance: 1, matchLength: 8 }).subarray(0, -2 - missing),
      308,
    ),
  ),
  ...[1, 2, 12].map((missing) =>
    corrupt(
      `few literals past the end of the block by ${missing}, and a match`,
      lz4Block(
        { literals: ascending(300), distance: 300, matchLength: 100 },
        { literals: ascending(14), distance: 1, matchLength: 4 },
      ).subarray(0, -2 - missing),
      418,
    ),
  ),
  corrupt("a length of literals without an end", new Uint8Array(40).fill(255), 10_000),
  corrupt("a length of literals that is not there", Uint8Array.of(0xf0), 15),
  corrupt("a match length without an end", Uint8Array.of(0x4f, 1, 2, 3, 4, 4, 0, 255, 255, 255), 10_000),
  corrupt("a match length that is not there", Uint8Array.of(0x4f, 1, 2, 3, 4, 4, 0), 23),
  corrupt("one literal more than there is room for", lz4Block({ literals: ascending(101) }), 100),
  corrupt("one literal less than there is room for", lz4Block({ literals: ascending(99) }), 100),
  ...[TAIL, LONG_TAIL].flatMap((tail) => badDistances(tail)),
  corrupt(
    "a match past the end by one",
    lz4Block({ literals: ascending(8), distance: 8, matchLength: 93 }, { literals: new Uint8Array(0) }),
    100,
  ),
  ...[100, 101, 104, 118].map((length) =>
    corrupt(
      `a match past the end of 100 bytes, up to ${length}, and more behind it`,
      lz4Block(
        { literals: ascending(92), distance: 8, matchLength: length - 92 },
        { literals: ascending(3000), distance: 8, matchLength: 3000 },
        { literals: TAIL },
      ),
      100,
    ),
  ),
  corrupt(
    "a match far past the end",
    lz4Block({ literals: ascending(8), distance: 1, matchLength: 100_000 }, { literals: TAIL }),
    100,
  ),
  corrupt(
    "bytes behind the last literals",
    Buffer.concat([lz4Block({ literals: ascending(20) }), Uint8Array.of(0)]),
    20,
  ),
  corrupt(
    "another sequence behind the last literals",
    lz4Block({ literals: ascending(20), distance: 4, matchLength: 4 }, { literals: TAIL }),
    20,
  ),

  // Sums of so many 255s are small again, or negative, in 32 bits.
  ...wrapping("is 20", 2 ** 32 + 20),
  ...wrapping("is -1", 2 ** 32 - 1),
  ...wrapping("is the most negative number", 2 ** 31),
  ...wrapping("is -100", 2 ** 32 - 100),
  {
    name: "literals that lead back to their own token in 32 bits",
    block: () => {
      // One byte for the token, one for each 255, one for the rest: 256 * 16,777,215 + 239 + 17 = 2 ** 32.
      return Buffer.concat([Uint8Array.of(0xf0), new Uint8Array(16_777_215).fill(255), Uint8Array.of(239)]);
    },
    byteLength: 100,
    gives: "corrupt",
  },

  ...(
    [
      ["a match as the end", new Uint8Array(0), -1],
      ["an empty sequence as the end", new Uint8Array(0)],
      ["one literal behind the last match", Uint8Array.of(9)],
    ] as const
  ).map(([name, literals, end]) => ({
    ...good(
      name,
      lz4Block({ literals: ascending(8), distance: 8, matchLength: 12 }, { literals }).subarray(0, end),
      Buffer.concat([cycle(ascending(8), 20), literals]),
    ),
    mayBeRefused: true,
  })),
];

function good(name: string, block: Uint8Array, bytes: Uint8Array): HostileBlock {
  return { name, block: () => block, byteLength: bytes.length, gives: bytes };
}

function corrupt(name: string, block: Uint8Array, byteLength: number): HostileBlock {
  return { name, block: () => block, byteLength, gives: "corrupt" };
}

/** Literals, the same again and again, and a tail. */
function repeated(distance: number, matchLength: number, tail = TAIL): HostileBlock {
  const literals = ascending(distance);
  return good(
    `a match of ${matchLength} bytes at distance ${distance}, ${tail.length} literals behind it`,
    lz4Block({ literals, distance, matchLength }, { literals: tail }),
    Buffer.concat([cycle(literals, distance + matchLength), tail]),
  );
}

/** Matches that begin where nothing is. */
function badDistances(tail: Uint8Array): HostileBlock[] {
  const behind = `, ${tail.length} literals behind it`;
  const match = (distance: number) =>
    lz4Block({ literals: ascending(8), distance, matchLength: 20 }, { literals: tail });
  return [
    {
      ...corrupt(`offset 0${behind}`, match(0), 28 + tail.length),
      notNative: "it takes it for a distance",
    },
    corrupt(`a match one byte before the start${behind}`, match(9), 28 + tail.length),
    corrupt(`a match far before the start${behind}`, match(65_535), 28 + tail.length),
    corrupt(
      `a match before the start, first thing${behind}`,
      lz4Block({ literals: new Uint8Array(0), distance: 1, matchLength: 20 }, { literals: tail }),
      20 + tail.length,
    ),
  ];
}

/** A length of literals and one of a match that are this long, and in 32 bits something else. */
function wrapping(what: string, length: number): HostileBlock[] {
  return [
    {
      name: `a length of literals that ${what} in 32 bits`,
      block: () => Buffer.concat([Uint8Array.of(0xf0), manyBytes(length - TOKEN_LENGTH), ascending(20)]),
      byteLength: 20,
      gives: "corrupt",
    },
    {
      name: `a match length that ${what} in 32 bits`,
      block: () =>
        Buffer.concat([
          Uint8Array.of(0x8f, ...ascending(8), 8, 0),
          manyBytes(length - TOKEN_LENGTH - MIN_MATCH),
          lz4Block({ literals: TAIL }),
        ]),
      byteLength: 40,
      gives: "corrupt",
    },
  ];
}

function manyBytes(sum: number): Uint8Array {
  const bytes = new Uint8Array(Math.floor(sum / 255) + 1).fill(255);
  bytes[bytes.length - 1] = sum % 255;
  return bytes;
}

function ascending(length: number, first = 1): Uint8Array {
  return new Uint8Array(length).map((_, index) => first + index);
}

function cycle(bytes: Uint8Array, length: number): Uint8Array {
  return new Uint8Array(length).map((_, index) => bytes[index % bytes.length]!);
}
