import {
  type BloscHeader,
  FLAG_BIT_SHUFFLE,
  FLAG_COPIED,
  FLAG_NOT_SPLIT,
  FLAG_SHUFFLE,
  HEADER_BYTES,
  isSplittable,
  readHeader,
} from "../../../codec/blosc/blosc-frame.js";
import { corrupt } from "../../../codec/codec.js";
import {
  decodeBlosclzBlock,
  decodeLz4Block,
  decodeSnappyBlock,
} from "../../../codec/plain/block-decoders.js";
import { unshuffleBits, unshuffleBytes } from "../../../codec/plain/shuffles.js";
import { inflate } from "./inflate.js";
import { decodeZstd } from "./zstd-frame.js";

/** Decodes a stream into its place; false if it is not whole or does not fill the place exactly. */
type DecodeInto = (source: Uint8Array, target: Uint8Array) => boolean | Promise<boolean>;

const DECODE_INTO: Readonly<Record<BloscHeader["innerFormat"], DecodeInto>> = Object.freeze({
  blosclz: decodeBlosclzBlock,
  lz4: decodeLz4Block,
  snappy: decodeSnappyBlock,
  zlib: decodeZlibStream,
  zstd: decodeZstdStream,
});

/**
 * Decodes a Blosc 1 chunk without WebAssembly: the kernel of the server needs `'wasm-unsafe-eval'`. Every length is checked.
 * @param maxByteLength Decoded bytes that are expected at most.
 * @returns Bytes that own their buffer.
 * @throws ZpublishError `corrupt-chunk`
 */
export async function decodeBloscFrame(
  bytes: Uint8Array,
  maxByteLength: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const header = readHeader(bytes, {
    codec: { id: "blosc" },
    itemSize: 1,
    decodedByteLength: null,
    maxDecodedByteLength: maxByteLength,
  });
  const { flags, byteLength, blockSize, innerFormat } = header;
  if ((flags & FLAG_COPIED) !== 0) {
    if (bytes.length !== byteLength + HEADER_BYTES)
      throw corrupt(`blosc: expected ${byteLength} copied bytes, received ${bytes.length - HEADER_BYTES}`);
    return bytes.slice(HEADER_BYTES);
  }
  const blockCount = byteLength === 0 ? 0 : Math.ceil(byteLength / blockSize);
  const startsEnd = HEADER_BYTES + 4 * blockCount;
  if (startsEnd > bytes.length)
    throw corrupt(`blosc: expected ${blockCount} blocks, received ${bytes.length} bytes in all`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const target = new Uint8Array(byteLength);
  const scratch = new Uint8Array(isShuffled(header) ? Math.min(blockSize, byteLength) : 0);
  for (let block = 0; block < blockCount; block++) {
    const begin = block * blockSize;
    const place = target.subarray(begin, Math.min(begin + blockSize, byteLength));
    const from = view.getUint32(HEADER_BYTES + 4 * block, true);
    const into = scratch.length > 0 ? scratch.subarray(0, place.length) : place;
    const isWhole = from >= startsEnd && (await fillBlock(view, bytes, from, into, header));
    if (!isWhole) throw corrupt(`blosc: block ${block + 1} of ${blockCount} (${innerFormat}) is damaged`);
    if (into !== place) unshuffle(into, place, header);
  }
  return target;
}

/** Decodes the streams of a block, each behind its length; one that is as long as what it decodes to is a copy. */
async function fillBlock(
  view: DataView,
  bytes: Uint8Array,
  begin: number,
  target: Uint8Array,
  { flags, typeSize, blockSize, innerFormat }: BloscHeader,
): Promise<boolean> {
  const isSplit =
    (flags & FLAG_NOT_SPLIT) === 0 && target.length === blockSize && isSplittable(typeSize, blockSize);
  const count = isSplit ? typeSize : 1;
  const length = target.length / count;
  if (!Number.isInteger(length)) return false;
  let from = begin;
  for (let index = 0; index < count; index++) {
    if (from + 4 > bytes.length) return false;
    const end = from + 4 + view.getUint32(from, true);
    if (end > bytes.length) return false;
    const stream = bytes.subarray(from + 4, end);
    const place = target.subarray(index * length, (index + 1) * length);
    if (stream.length === length) place.set(stream);
    else {
      const isDecoded = DECODE_INTO[innerFormat](stream, place);
      // Awaiting each of a thousand short streams would take longer than decoding them.
      if (!(typeof isDecoded === "boolean" ? isDecoded : await isDecoded)) return false;
    }
    from = end;
  }
  return true;
}

function isShuffled({ flags, typeSize }: BloscHeader): boolean {
  return ((flags & FLAG_SHUFFLE) !== 0 && typeSize > 1) || (flags & FLAG_BIT_SHUFFLE) !== 0;
}

function unshuffle(source: Uint8Array, target: Uint8Array, { flags, typeSize }: BloscHeader): void {
  if ((flags & FLAG_SHUFFLE) !== 0 && typeSize > 1) unshuffleBytes(source, target, typeSize);
  else if (source.length >= typeSize) unshuffleBits(source, target, typeSize);
  else target.set(source);
}

function decodeZstdStream(source: Uint8Array, target: Uint8Array): boolean {
  target.set(decodeZstd(source, target.length));
  return true;
}

async function decodeZlibStream(source: Uint8Array, target: Uint8Array): Promise<boolean> {
  const decoded = await inflate(source, "deflate", target.length);
  if (decoded.length !== target.length) return false;
  target.set(decoded);
  return true;
}
