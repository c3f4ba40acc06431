import nodeZlib from "node:zlib";
import { messageOf } from "../errors.js";
import type { CodecStep } from "../zarr/encoding-plan.js";
import { unshuffleBits } from "./bit-shuffle.js";
import { decodeBlosclzBlock } from "./blosclz-block.js";
import { unshuffleBytes } from "./byte-shuffle.js";
import { checkDecodedLength, corrupt } from "./codec.js";
import { decodeLz4Block } from "./lz4-block.js";
import { decodeSnappyBlock } from "./snappy-block.js";
import { zstd } from "./zstd.js";

const HEADER_BYTES = 16;
/** Version of the container that Blosc 1 writes; Blosc 2 writes 3 and up. */
const FORMAT_VERSION = 2;

const FLAG_SHUFFLE = 0x01;
const FLAG_COPIED = 0x02;
const FLAG_BIT_SHUFFLE = 0x04;
const FLAG_NOT_SPLIT = 0x10;

/** Where blocks are split into one stream per byte of an item: at most so many, of at least so many bytes. */
const MAX_SPLITS = 16;
const MIN_SPLIT_BYTES = 128;

/** Decodes one stream of a block; false where it is not whole or does not fill its place exactly. */
type StreamDecoder = (
  source: Uint8Array,
  sourceBegin: number,
  sourceEnd: number,
  target: Uint8Array,
  targetBegin: number,
  targetEnd: number,
) => boolean | Promise<boolean>;

/** By the top three bits of the header's flags. */
const STREAM_DECODERS: readonly StreamDecoder[] = [
  decodeBlosclzBlock,
  decodeLz4Block,
  decodeSnappyBlock,
  decodeZlibStream,
  decodeZstdStream,
];

interface BloscHeader {
  readonly flags: number;
  readonly typeSize: number;
  readonly byteLength: number;
  readonly blockSize: number;
}

/**
 * Decodes a Blosc 1 chunk, checking every length against its header and every header against the plan.
 * @throws ZpublishError `corrupt-chunk`
 */
export async function decodeBlosc(bytes: Uint8Array, step: CodecStep): Promise<Uint8Array> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const header = readHeader(view, step);
  const { flags, byteLength, blockSize } = header;
  if ((flags & FLAG_COPIED) !== 0) {
    if (bytes.length !== byteLength + HEADER_BYTES) {
      throw corrupt(`blosc: expected ${byteLength} copied bytes, received ${bytes.length - HEADER_BYTES}`);
    }
    return bytes.subarray(HEADER_BYTES);
  }
  const target = new Uint8Array(byteLength);
  if (byteLength === 0) return target;

  const decodeStream = STREAM_DECODERS[flags >>> 5];
  if (decodeStream === undefined) throw corrupt(`blosc: unknown inner codec ${flags >>> 5}`);
  const blockCount = Math.ceil(byteLength / blockSize);
  const startsEnd = HEADER_BYTES + 4 * blockCount;
  if (startsEnd > bytes.length) {
    throw corrupt(`blosc: expected ${blockCount} blocks, received ${bytes.length} bytes in all`);
  }
  const isShuffled = (flags & (FLAG_SHUFFLE | FLAG_BIT_SHUFFLE)) !== 0;
  const scratch = isShuffled ? new Uint8Array(Math.min(blockSize, byteLength)) : undefined;

  for (let block = 0; block < blockCount; block++) {
    const begin = block * blockSize;
    const end = Math.min(begin + blockSize, byteLength);
    const streams = end - begin < blockSize ? 1 : streamsPerBlock(header);
    const from = view.getUint32(HEADER_BYTES + 4 * block, true);
    const into = scratch ?? target;
    const intoBegin = scratch === undefined ? begin : 0;
    const isWhole =
      from >= startsEnd &&
      (await decodeStreams(
        decodeStream,
        view,
        bytes,
        from,
        streams,
        into,
        intoBegin,
        intoBegin + end - begin,
      ));
    if (!isWhole) throw corrupt(`blosc: block ${block + 1} of ${blockCount} is damaged`);
    if (scratch !== undefined) {
      unshuffleBlock(header, scratch.subarray(0, end - begin), target.subarray(begin, end));
    }
  }
  return target;
}

function readHeader(view: DataView, step: CodecStep): BloscHeader {
  if (view.byteLength < HEADER_BYTES) {
    throw corrupt(`blosc: expected a header of ${HEADER_BYTES} bytes, received ${view.byteLength}`);
  }
  const version = view.getUint8(0);
  if (version !== FORMAT_VERSION) {
    throw corrupt(`blosc: expected format version ${FORMAT_VERSION}, received ${version}`);
  }
  const compressedLength = view.getUint32(12, true);
  if (compressedLength !== view.byteLength) {
    throw corrupt(`blosc: the header announces ${compressedLength} bytes, received ${view.byteLength}`);
  }
  const byteLength = view.getUint32(4, true);
  checkDecodedLength("blosc", byteLength, step);
  const blockSize = view.getUint32(8, true);
  const typeSize = view.getUint8(3);
  if (byteLength > 0 && (blockSize === 0 || typeSize === 0)) {
    throw corrupt(
      `blosc: expected sizes above 0, received block size ${blockSize} and type size ${typeSize}`,
    );
  }
  return { flags: view.getUint8(2), typeSize, byteLength, blockSize };
}

function streamsPerBlock({ flags, typeSize, blockSize }: BloscHeader): number {
  const isSplit =
    (flags & FLAG_NOT_SPLIT) === 0 &&
    typeSize <= MAX_SPLITS &&
    Math.floor(blockSize / typeSize) >= MIN_SPLIT_BYTES;
  return isSplit ? typeSize : 1;
}

/** Every stream begins with its length; one as long as its place is a copy. */
async function decodeStreams(
  decodeStream: StreamDecoder,
  view: DataView,
  bytes: Uint8Array,
  begin: number,
  streams: number,
  into: Uint8Array,
  intoBegin: number,
  intoEnd: number,
): Promise<boolean> {
  const streamLength = Math.floor((intoEnd - intoBegin) / streams);
  if (streamLength * streams !== intoEnd - intoBegin) return false;
  let from = begin;
  for (let to = intoBegin; to < intoEnd; to += streamLength) {
    if (from + 4 > bytes.length) return false;
    const encodedLength = view.getUint32(from, true);
    from += 4;
    const end = from + encodedLength;
    if (end > bytes.length) return false;
    if (encodedLength === streamLength) into.set(bytes.subarray(from, end), to);
    else {
      const whole = decodeStream(bytes, from, end, into, to, to + streamLength);
      if (!(typeof whole === "boolean" ? whole : await whole)) return false;
    }
    from = end;
  }
  return true;
}

function unshuffleBlock({ flags, typeSize }: BloscHeader, source: Uint8Array, target: Uint8Array): void {
  if ((flags & FLAG_SHUFFLE) !== 0 && typeSize > 1) unshuffleBytes(source, target, typeSize);
  else if ((flags & FLAG_BIT_SHUFFLE) !== 0 && source.length >= typeSize) {
    unshuffleBits(source, target, typeSize);
  } else target.set(source);
}

function decodeZlibStream(...[source, begin, end, target, to, toEnd]: Parameters<StreamDecoder>): boolean {
  const byteLength = toEnd - to;
  try {
    const decoded = nodeZlib.inflateSync(source.subarray(begin, end), {
      maxOutputLength: byteLength,
      chunkSize: byteLength + 64,
    });
    if (decoded.length !== byteLength) return false;
    target.set(decoded, to);
    return true;
  } catch (error) {
    throw corrupt(`blosc: zlib: ${messageOf(error)}`, error);
  }
}

async function decodeZstdStream(
  ...[source, begin, end, target, to, toEnd]: Parameters<StreamDecoder>
): Promise<boolean> {
  const byteLength = toEnd - to;
  const step: CodecStep = {
    codec: { id: "zstd" },
    decodedByteLength: byteLength,
    maxDecodedByteLength: byteLength,
    itemSize: 1,
  };
  const decoded = await zstd.decode(source.subarray(begin, end), step);
  if (decoded.length !== byteLength) return false;
  target.set(decoded, to);
  return true;
}
