import { currentKernel, type Kernel } from "../kernel/kernel.js";
import { type KernelMemory, OWN_MEMORY } from "../kernel/kernel-memory.js";
import {
  type BloscHeader,
  blockSizeOf,
  FLAG_BIT_SHUFFLE,
  FLAG_COPIED,
  FLAG_NOT_SPLIT,
  FLAG_SHUFFLE,
  HEADER_BYTES,
  type InnerCodec,
  isSplit,
  writeBloscHeader,
} from "./blosc-frame.js";
import { type EncodeInto, type StreamEncoder, streamEncoder } from "./inner-encoders.js";

/** Chunks of fewer bytes are copied. */
const MIN_ENCODED_BYTES = 128;

/** Options of an encoded chunk. */
export interface BloscOptions {
  readonly inner: InnerCodec;
  /** 0 to 9; 0: copied. */
  readonly level: number;
  readonly shuffle: "none" | "byte" | "bit";
  /** Bytes of an item, 1 to 255. */
  readonly typeSize: number;
  /** 0: chosen by level and type size. */
  readonly forcedBlockSize: number;
}

/**
 * Encodes a Blosc 1 chunk as c-blosc 1.21 does with one thread: the same blocks, split the same way, and copies if those are not
 * longer. The chunk is at most a header longer than the bytes.
 */
export async function encodeBlosc(
  bytes: Uint8Array,
  options: BloscOptions,
  memory: KernelMemory = OWN_MEMORY,
): Promise<Uint8Array> {
  const { inner, level, shuffle, typeSize, forcedBlockSize } = options;
  const blockSize = blockSizeOf(inner, level, typeSize, bytes.length, forcedBlockSize);
  const shuffleFlag = shuffle === "byte" ? FLAG_SHUFFLE : shuffle === "bit" ? FLAG_BIT_SHUFFLE : 0;
  const header: BloscHeader = {
    flags: shuffleFlag | (isSplit(inner, typeSize, blockSize) ? 0 : FLAG_NOT_SPLIT),
    innerFormat: inner,
    typeSize,
    byteLength: bytes.length,
    blockSize,
  };
  const target = memory.allocate(HEADER_BYTES + bytes.length);
  const encoder =
    level === 0 || bytes.length < MIN_ENCODED_BYTES
      ? undefined
      : streamEncoder(currentKernel(), inner, level);
  const length = encoder && (await encodeBlocks(bytes, header, encoder, target));
  if (length !== undefined) {
    writeBloscHeader(target, header, length);
    return target.subarray(0, length);
  }
  writeBloscHeader(target, { ...header, flags: header.flags | FLAG_COPIED }, target.length);
  target.set(bytes, HEADER_BYTES);
  return target;
}

/** Encodes all blocks. @returns Bytes of the whole chunk; undefined if they do not fit into the target. */
async function encodeBlocks(
  bytes: Uint8Array,
  header: BloscHeader,
  encoder: StreamEncoder,
  target: Uint8Array,
): Promise<number | undefined> {
  const { blockSize, flags, typeSize } = header;
  const blockCount = Math.ceil(bytes.length / blockSize);
  let to = HEADER_BYTES + 4 * blockCount;
  if (to > target.length) return undefined;
  const view = new DataView(target.buffer, target.byteOffset, target.byteLength);
  for (let block = 0; block < blockCount; block++) {
    view.setUint32(HEADER_BYTES + 4 * block, to, true);
    const source = bytes.subarray(block * blockSize, (block + 1) * blockSize);
    const isSplitHere = source.length === blockSize && (flags & FLAG_NOT_SPLIT) === 0;
    const place: BlockPlace = { streams: isSplitHere ? typeSize : 1, target, begin: to };
    const end =
      encoder.place === "kernel"
        ? encodeInKernel(source, header, encoder.encode, place)
        : await encodeApart(source, header, encoder.encode, place);
    if (end === undefined) return undefined;
    to = end;
  }
  return to;
}

/** Number of streams of a block, and its place in the target. */
interface BlockPlace {
  readonly streams: number;
  readonly target: Uint8Array;
  readonly begin: number;
}

/** Encodes a block synchronously: in a wait, another task could allocate or release memory of the kernel. */
function encodeInKernel(
  source: Uint8Array,
  header: BloscHeader,
  encode: EncodeInto,
  place: BlockPlace,
): number | undefined {
  const kernel = currentKernel();
  const mark = kernel.memory.mark();
  try {
    return placeStreams(shuffleBlock(kernel, header, source, kernel.memory), place, encode);
  } finally {
    kernel.memory.rewind(mark);
  }
}

async function encodeApart(
  source: Uint8Array,
  header: BloscHeader,
  encode: (source: Uint8Array) => Promise<Uint8Array>,
  place: BlockPlace,
): Promise<number | undefined> {
  const block = shuffleBlock(currentKernel(), header, source, OWN_MEMORY);
  const encoded: Uint8Array[] = [];
  const streamLength = streamLengthOf(block, place);
  for (let from = 0; from < block.length; from += streamLength) {
    encoded.push(await encode(block.subarray(from, from + streamLength)));
  }
  let index = 0;
  return placeStreams(block, place, (_stream, target) => {
    const bytes = encoded[index++]!;
    if (bytes.length > target.length) return 0;
    target.set(bytes);
    return bytes.length;
  });
}

function shuffleBlock(
  kernel: Kernel,
  { flags, typeSize }: BloscHeader,
  source: Uint8Array,
  memory: KernelMemory,
): Uint8Array {
  const isByteShuffled = (flags & FLAG_SHUFFLE) !== 0 && typeSize > 1;
  const isBitShuffled = (flags & FLAG_BIT_SHUFFLE) !== 0 && source.length >= typeSize;
  if (!isByteShuffled && !isBitShuffled) return source;
  const shuffled = memory.allocate(source.length);
  if (isByteShuffled) kernel.shuffleBytes(source, shuffled, typeSize);
  else kernel.shuffleBits(source, shuffled, typeSize);
  return shuffled;
}

function streamLengthOf(block: Uint8Array, { streams }: BlockPlace): number {
  return Math.floor(block.length / streams);
}

/**
 * Writes the streams of a block one after the other, each behind its length.
 * @returns The end of the last one; undefined if they do not fit into the target.
 */
function placeStreams(block: Uint8Array, place: BlockPlace, encode: EncodeInto): number | undefined {
  const { target, begin } = place;
  const view = new DataView(target.buffer, target.byteOffset, target.byteLength);
  const streamLength = streamLengthOf(block, place);
  let to = begin;
  for (let from = 0; from < block.length; from += streamLength) {
    const stream = block.subarray(from, from + streamLength);
    const free = target.subarray(to + 4, to + 4 + streamLength);
    if (free.length === 0) return undefined;
    let length = encode(stream, free);
    if (length === 0 || length === streamLength) {
      // A stream that does not get shorter is copied.
      if (free.length < streamLength) return undefined;
      free.set(stream);
      length = streamLength;
    }
    view.setUint32(to, length, true);
    to += 4 + length;
  }
  return to;
}
