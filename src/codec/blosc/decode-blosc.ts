import nodeZlib from "node:zlib";
import type { CodecStep } from "../../zarr/codec-step.js";
import { inflate } from "../deflate.js";
import { currentKernel, type Kernel } from "../kernel/kernel.js";
import { type KernelMemory, OWN_MEMORY } from "../kernel/kernel-memory.js";
import { decodeSnappyBlock } from "../plain/block-decoders.js";
import { zstd } from "../zstd.js";
import {
  type BloscHeader,
  type BloscStream,
  bloscBlocks,
  copiedBytes,
  FLAG_BIT_SHUFFLE,
  FLAG_SHUFFLE,
  type InnerFormat,
  readBloscHeader,
} from "./blosc-frame.js";
import { streamStep } from "./inner-encoders.js";

/** Decodes a stream into its place; false if the stream is not whole or does not fill the place exactly. */
type DecodeInto = (kernel: Kernel, source: Uint8Array, target: Uint8Array) => boolean;

const DECODE_INTO: Partial<Record<InnerFormat, DecodeInto>> = {
  blosclz: (kernel, source, target) => kernel.decodeBlosclz(source, target),
  lz4: (kernel, source, target) => kernel.decodeLz4(source, target),
  snappy: (_kernel, source, target) => decodeSnappyBlock(source, target),
};

/** Decodes a stream into memory of its own, for formats that the kernel does not know. */
type DecodeApart = (stream: BloscStream) => Uint8Array | Promise<Uint8Array>;

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
  const header = readBloscHeader(bytes, step);
  const copied = copiedBytes(bytes, header);
  if (copied !== undefined) return copied;
  const decodeApart = DECODE_APART[header.innerFormat];
  const target = memory.allocate(header.byteLength);
  for (const { begin, end, streams, refuse } of bloscBlocks(bytes, header)) {
    const decoded: Uint8Array[] = [];
    if (decodeApart !== undefined) {
      for (const stream of streams) decoded.push(isCopy(stream) ? stream.encoded : await decodeApart(stream));
    }
    if (!fillBlock(header, streams, decoded, target.subarray(begin, end))) refuse();
  }
  return target;
}

function isCopy({ encoded, decodedLength }: BloscStream): boolean {
  return encoded.length === decodedLength;
}

/**
 * Joins the streams of a block and undoes the shuffle.
 * @param decoded The streams that were decoded into memory of their own; empty if none were.
 * @returns Whether the block is whole.
 */
function fillBlock(
  { flags, innerFormat, typeSize }: BloscHeader,
  streams: readonly BloscStream[],
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

function decodeZlib({ encoded, decodedLength }: BloscStream): Uint8Array {
  return inflate("blosc: zlib", nodeZlib.inflateSync, encoded, streamStep({ id: "zlib" }, decodedLength));
}

function decodeZstd({ encoded, decodedLength }: BloscStream): Uint8Array | Promise<Uint8Array> {
  return zstd.decode(encoded, streamStep({ id: "zstd" }, decodedLength));
}
