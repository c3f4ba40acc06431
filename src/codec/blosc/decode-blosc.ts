import nodeZlib from "node:zlib";
import type { CodecStep } from "../../zarr/codec-step.js";
import { corrupt } from "../codec.js";
import { inflate } from "../deflate.js";
import { currentKernel, type Kernel } from "../kernel/kernel.js";
import { type KernelMemory, OWN_MEMORY } from "../kernel/wasm-memory.js";
import { decodeSnappyBlock } from "../plain/block-decoders.js";
import { zstd } from "../zstd.js";
import {
  type BloscHeader,
  FLAG_BIT_SHUFFLE,
  FLAG_COPIED,
  FLAG_NOT_SPLIT,
  FLAG_SHUFFLE,
  HEADER_BYTES,
  type InnerFormat,
  isSplittable,
  readHeader,
} from "./blosc-frame.js";
import { streamStep } from "./inner-encoders.js";

/** A part of a block that is encoded by itself. */
interface Stream {
  /** A copy of the decoded bytes if there are as many. */
  readonly encoded: Uint8Array;
  readonly decodedLength: number;
}

/** Decodes a stream into its place; false if the stream is not whole or does not fill the place exactly. */
type DecodeInto = (kernel: Kernel, source: Uint8Array, target: Uint8Array) => boolean;

const DECODE_INTO: Partial<Record<InnerFormat, DecodeInto>> = {
  blosclz: (kernel, source, target) => kernel.decodeBlosclz(source, target),
  lz4: (kernel, source, target) => kernel.decodeLz4(source, target),
  snappy: (_kernel, source, target) => decodeSnappyBlock(source, target),
};

/** Decodes a stream into memory of its own, for formats that the kernel does not know. */
type DecodeApart = (stream: Stream) => Uint8Array | Promise<Uint8Array>;

const DECODE_APART: Partial<Record<InnerFormat, DecodeApart>> = { zlib: decodeZlib, zstd: decodeZstd };

/**
 * Decodes a Blosc 1 chunk, checking every length against its header and the header against the plan.
 * @throws ZpublishError `corrupt-chunk`
 */
export async function decodeBlosc(
  bytes: Uint8Array,
  step: CodecStep,
  memory: KernelMemory = OWN_MEMORY,
): Promise<Uint8Array> {
  const header = readHeader(bytes, step);
  const { flags, innerFormat, byteLength, blockSize } = header;
  if ((flags & FLAG_COPIED) !== 0) {
    if (bytes.length !== byteLength + HEADER_BYTES) {
      throw corrupt(`blosc: expected ${byteLength} copied bytes, received ${bytes.length - HEADER_BYTES}`);
    }
    return bytes.subarray(HEADER_BYTES);
  }
  const blockCount = Math.ceil(byteLength / blockSize);
  const startsEnd = HEADER_BYTES + 4 * blockCount;
  if (startsEnd > bytes.length) {
    throw corrupt(`blosc: expected ${blockCount} blocks, received ${bytes.length} bytes in all`);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const decodeApart = DECODE_APART[innerFormat];
  const target = memory.allocate(byteLength);
  for (let block = 0; block < blockCount; block++) {
    const begin = block * blockSize;
    const place = target.subarray(begin, Math.min(begin + blockSize, byteLength));
    const from = view.getUint32(HEADER_BYTES + 4 * block, true);
    const streams = from < startsEnd ? undefined : locateStreams(view, bytes, from, place.length, header);
    if (streams === undefined) throw damaged(block, blockCount);
    const decoded: Uint8Array[] = [];
    if (decodeApart !== undefined) {
      for (const stream of streams) decoded.push(isCopy(stream) ? stream.encoded : await decodeApart(stream));
    }
    if (!fillBlock(header, streams, decoded, place)) throw damaged(block, blockCount);
  }
  return target;
}

function damaged(block: number, blockCount: number): Error {
  return corrupt(`blosc: block ${block + 1} of ${blockCount} is damaged`);
}

/** Finds the streams of a block, each behind its length; undefined if they do not fit into the chunk. */
function locateStreams(
  view: DataView,
  bytes: Uint8Array,
  begin: number,
  blockLength: number,
  { flags, typeSize, blockSize }: BloscHeader,
): Stream[] | undefined {
  const isSplit =
    (flags & FLAG_NOT_SPLIT) === 0 && blockLength === blockSize && isSplittable(typeSize, blockSize);
  const count = isSplit ? typeSize : 1;
  const decodedLength = blockLength / count;
  if (!Number.isInteger(decodedLength)) return undefined;
  const streams: Stream[] = [];
  let from = begin;
  while (streams.length < count) {
    if (from + 4 > bytes.length) return undefined;
    const end = from + 4 + view.getUint32(from, true);
    if (end > bytes.length) return undefined;
    streams.push({ encoded: bytes.subarray(from + 4, end), decodedLength });
    from = end;
  }
  return streams;
}

function isCopy({ encoded, decodedLength }: Stream): boolean {
  return encoded.length === decodedLength;
}

/**
 * Joins the streams of a block and undoes the shuffle.
 * @param decoded The streams that were decoded into memory of their own; empty if none were.
 * @returns Whether the block is whole.
 */
function fillBlock(
  { flags, innerFormat, typeSize }: BloscHeader,
  streams: readonly Stream[],
  decoded: readonly Uint8Array[],
  place: Uint8Array,
): boolean {
  const kernel = currentKernel();
  const isByteShuffled = (flags & FLAG_SHUFFLE) !== 0 && typeSize > 1;
  const isBitShuffled = !isByteShuffled && (flags & FLAG_BIT_SHUFFLE) !== 0 && place.length >= typeSize;
  const mark = kernel.memory.mark();
  try {
    const shuffled = isByteShuffled || isBitShuffled ? kernel.memory.allocate(place.length) : place;
    let to = 0;
    for (const [index, stream] of streams.entries()) {
      const into = shuffled.subarray(to, to + stream.decodedLength);
      const bytes = decoded[index] ?? (isCopy(stream) ? stream.encoded : undefined);
      if (bytes !== undefined) {
        if (bytes.length !== into.length) return false;
        into.set(bytes);
      } else if (DECODE_INTO[innerFormat]?.(kernel, stream.encoded, into) !== true) return false;
      to += stream.decodedLength;
    }
    if (isByteShuffled) kernel.unshuffleBytes(shuffled, place, typeSize);
    else if (isBitShuffled) kernel.unshuffleBits(shuffled, place, typeSize);
    return true;
  } finally {
    kernel.memory.rewind(mark);
  }
}

function decodeZlib({ encoded, decodedLength }: Stream): Uint8Array {
  return inflate("blosc: zlib", nodeZlib.inflateSync, encoded, streamStep({ id: "zlib" }, decodedLength));
}

function decodeZstd({ encoded, decodedLength }: Stream): Uint8Array | Promise<Uint8Array> {
  return zstd.decode(encoded, streamStep({ id: "zstd" }, decodedLength));
}
