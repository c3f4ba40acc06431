/** Inner codecs by their number in the flags. */
export const INNER = { blosclz: 0, lz4: 1, snappy: 2, zlib: 3, zstd: 4 } as const;

/** Bits of the flags. */
export const FLAG = {
  shuffle: 0x01,
  copied: 0x02,
  bitShuffle: 0x04,
  reserved: 0x08,
  notSplit: 0x10,
} as const;

/** A Blosc 1 chunk in parts; what is left out is as c-blosc would write it. */
export interface BloscFrame {
  readonly version?: number;
  readonly innerVersion?: number;
  readonly flags: number;
  readonly typeSize?: number;
  readonly byteLength: number;
  readonly blockSize?: number;
  /** What the header calls the length of the chunk. */
  readonly announcedLength?: number;
  /** The streams of every block; empty where all bytes are `body`. */
  readonly blocks?: readonly (readonly Uint8Array[])[];
  /** Where the blocks are said to begin. */
  readonly starts?: (found: readonly number[]) => readonly number[];
  /** What the streams are said to be long, block by block. */
  readonly streamLength?: (found: number, block: number, stream: number) => number;
  /** Bytes behind everything, or behind the header where there are no blocks. */
  readonly body?: Uint8Array;
}

const HEADER_BYTES = 16;

/** The flags of an inner codec and bits of {@link FLAG}. */
export function flagsOf(inner: number, ...bits: readonly number[]): number {
  return bits.reduce((flags, bit) => flags | bit, inner << 5);
}

/** Writes a chunk just as it is told, right or wrong. */
export function bloscFrame(frame: BloscFrame): Uint8Array {
  const { flags, byteLength, blocks = [], body = new Uint8Array(0) } = frame;
  const { version = 2, innerVersion = 1, typeSize = 1, blockSize = byteLength } = frame;
  const streamLength = frame.streamLength ?? ((found) => found);
  const parts: Uint8Array[] = [];
  const found: number[] = [];
  let position = HEADER_BYTES + 4 * blocks.length;
  blocks.forEach((streams, block) => {
    found.push(position);
    streams.forEach((stream, index) => {
      parts.push(uint32(streamLength(stream.length, block, index)), stream);
      position += 4 + stream.length;
    });
  });
  const starts = frame.starts?.(found) ?? found;
  const length = frame.announcedLength ?? position + body.length;
  return Buffer.concat([
    Uint8Array.of(version, innerVersion, flags, typeSize),
    ...[byteLength, blockSize, length, ...starts].map(uint32),
    ...parts,
    body,
  ]);
}

/** An encoded stream of a Blosc chunk, and the decoded bytes that it stands for. */
export interface FrameStream {
  readonly stream: Uint8Array;
  /** Begin and end. */
  readonly place: readonly [number, number];
}

/** The encoded streams of a chunk that is as c-blosc writes it; those that are copies are left out. */
export function* streamsOf(frame: Uint8Array): Generator<FrameStream> {
  const view = Buffer.from(frame.buffer, frame.byteOffset, frame.length);
  const [flags, typeSize] = [view[2]!, view[3]!];
  if ((flags & FLAG.copied) !== 0) return;
  const [byteLength, blockSize] = [view.readUInt32LE(4), view.readUInt32LE(8)];
  for (let block = 0; block * blockSize < byteLength; block++) {
    const begin = block * blockSize;
    const blockLength = Math.min(blockSize, byteLength - begin);
    const isSplit = (flags & FLAG.notSplit) === 0 && blockLength === blockSize;
    const length = isSplit ? blockLength / typeSize : blockLength;
    let from = view.readUInt32LE(HEADER_BYTES + 4 * block);
    for (let at = begin; at < begin + blockLength; at += length) {
      const stream = frame.subarray(from + 4, from + 4 + view.readUInt32LE(from));
      if (stream.length < length) yield { stream, place: [at, at + length] };
      from += 4 + stream.length;
    }
  }
}

/** One sequence of an LZ4 block: literals, then a match; without a distance, the last one. */
export interface Lz4Sequence {
  readonly literals: Uint8Array;
  readonly distance?: number;
  readonly matchLength?: number;
}

/** Writes an LZ4 block (lz4_Block_format.md) just as it is told, right or wrong. */
export function lz4Block(...sequences: readonly Lz4Sequence[]): Uint8Array {
  return Buffer.concat(
    sequences.flatMap(({ literals, distance, matchLength = 4 }) => {
      const match = distance === undefined ? 0 : matchLength - 4;
      const token = (Math.min(literals.length, 15) << 4) | Math.min(match, 15);
      const head = [Uint8Array.of(token), lengthBytes(literals.length), literals];
      return distance === undefined
        ? head
        : [...head, Uint8Array.of(distance & 255, distance >>> 8), lengthBytes(match)];
    }),
  );
}

/** What follows a token whose four bits are not enough. */
function lengthBytes(length: number): Uint8Array {
  if (length < 15) return new Uint8Array(0);
  const rest = length - 15;
  const bytes = new Uint8Array(Math.floor(rest / 255) + 1).fill(255);
  bytes[bytes.length - 1] = rest % 255;
  return bytes;
}

/** A raw Snappy stream: up to 60 literals, then copies of up to 64 bytes from as far back. */
export function snappyStream(literals: Uint8Array, byteLength: number): Uint8Array {
  const length: number[] = [];
  for (let rest = byteLength; ; rest >>>= 7) {
    length.push((rest & 127) | (rest > 127 ? 128 : 0));
    if (rest < 128) break;
  }
  const copies: number[] = [];
  for (let rest = byteLength - literals.length; rest > 0; rest -= 64) {
    copies.push(((Math.min(rest, 64) - 1) << 2) | 2, literals.length, 0);
  }
  return Uint8Array.of(...length, (literals.length - 1) << 2, ...literals, ...copies);
}

/** A number as Blosc and LZ4 write it. */
export function uint32(value: number): Uint8Array {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
}
