import { decompress } from "fzstd";
import {
  type BloscHeader,
  bloscBlocks,
  copiedBytes,
  FLAG_BIT_SHUFFLE,
  FLAG_SHUFFLE,
  readBloscHeader,
} from "../../../codec/blosc/blosc-frame.js";
import { corrupt } from "../../../codec/codec.js";
import {
  decodeBlosclzBlock,
  decodeLz4Block,
  decodeSnappyBlock,
} from "../../../codec/plain/block-decoders.js";
import { unshuffleBits, unshuffleBytes } from "../../../codec/plain/shuffles.js";
import { measureZstd } from "../../../codec/plain/zstd-frame.js";

/** Decodes gzip or zlib (browsers call it `deflate`); the decoder of the browser checks the checksum. @throws ZpublishError `corrupt-chunk` */
export async function inflateStream(
  bytes: Uint8Array,
  format: "gzip" | "deflate",
  maxByteLength: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([bytes as Uint8Array<ArrayBuffer>]).stream();
  const reader = stream.pipeThrough(new DecompressionStream(format)).getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      length += value.length;
      if (length > maxByteLength) throw corrupt(`expected at most ${maxByteLength} bytes`);
    }
  } catch (error) {
    await reader.cancel().catch(() => {});
    throw corrupt(`${format}: ${error instanceof Error ? error.message : String(error)}`, error);
  }
  const whole = new Uint8Array(length);
  let position = 0;
  for (const part of parts) {
    whole.set(part, position);
    position += part.length;
  }
  return whole;
}

const PRIME_1 = 0x9e3779b185ebca87n;
const PRIME_2 = 0xc2b2ae3d27d4eb4fn;
const PRIME_3 = 0x165667b19e3779f9n;
const PRIME_4 = 0x85ebca77c2b2ae63n;
const PRIME_5 = 0x27d4eb2f165667c5n;

const STRIPE_BYTES = 32;

/** Returns the XXH64 of bytes with the seed 0 (xxhash_spec.md, "XXH64 algorithm"). Slow, as it counts with big integers: few writers of zstd ask for a checksum. */
export function xxh64(bytes: Uint8Array): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const { length } = bytes;
  let position = 0;
  let hash = PRIME_5;
  if (length >= STRIPE_BYTES) {
    const lanes = [wrap(PRIME_1 + PRIME_2), PRIME_2, 0n, wrap(-PRIME_1)];
    for (; position + STRIPE_BYTES <= length; position += STRIPE_BYTES)
      for (let lane = 0; lane < 4; lane++)
        lanes[lane] = round(lanes[lane]!, view.getBigUint64(position + 8 * lane, true));
    const [a, b, c, d] = lanes as [bigint, bigint, bigint, bigint];
    hash = wrap(rotate(a, 1n) + rotate(b, 7n) + rotate(c, 12n) + rotate(d, 18n));
    for (const lane of lanes) hash = wrap((hash ^ round(0n, lane)) * PRIME_1 + PRIME_4);
  }
  hash = wrap(hash + BigInt(length));
  for (; position + 8 <= length; position += 8)
    hash = wrap(rotate(hash ^ round(0n, view.getBigUint64(position, true)), 27n) * PRIME_1 + PRIME_4);
  if (position + 4 <= length) {
    hash = wrap(
      rotate(hash ^ wrap(BigInt(view.getUint32(position, true)) * PRIME_1), 23n) * PRIME_2 + PRIME_3,
    );
    position += 4;
  }
  for (; position < length; position++)
    hash = wrap(rotate(hash ^ wrap(BigInt(bytes[position]!) * PRIME_5), 11n) * PRIME_1);
  hash = wrap((hash ^ (hash >> 33n)) * PRIME_2);
  hash = wrap((hash ^ (hash >> 29n)) * PRIME_3);
  return hash ^ (hash >> 32n);
}

function round(lane: bigint, input: bigint): bigint {
  return wrap(rotate(wrap(lane + input * PRIME_2), 31n) * PRIME_1);
}

function rotate(value: bigint, bits: bigint): bigint {
  return wrap((value << bits) | (value >> (64n - bits)));
}

function wrap(value: bigint): bigint {
  return BigInt.asUintN(64, value);
}

/** Written behind the last block, so that its place tells how much was decoded: fzstd returns a buffer as long as it was told. */
const MARK = Uint8Array.of(0x9e, 0x37, 0x79, 0xb9, 0x7f, 0x4a, 0x7c, 0x15);
const CHECKSUM_FLAG = 0x04;
const BLOCK_HEADER_BYTES = 3;
const RAW_BLOCK = 0;
const RLE_BLOCK = 1;

/**
 * Decodes zstd with fzstd, and checks the decoded length, and the checksum of a single frame that has one: fzstd checks neither.
 * @param byteLength Decoded bytes; undefined if unknown, so that only the frame's own length is checked.
 * @throws ZpublishError `corrupt-chunk`
 */
export function decodeZstd(
  bytes: Uint8Array,
  byteLength: number | undefined,
  maxByteLength = byteLength ?? Number.POSITIVE_INFINITY,
): Uint8Array<ArrayBuffer> {
  const measured = measureZstd(bytes);
  if (measured === undefined) throw corrupt("zstd: the frame is damaged");
  const { min, max, frames } = measured;
  const expected = byteLength ?? (min === max ? min : undefined);
  if (
    expected === undefined
      ? min > maxByteLength
      : expected < min || expected > max || expected > maxByteLength
  )
    throw corrupt(`zstd: expected ${expected ?? maxByteLength} bytes, received ${min} to ${max}`);
  const marked = frames === 1 && expected !== undefined ? withMark(bytes) : undefined;
  if (marked === undefined || expected === undefined) {
    const decoded = attempt(() => decompress(bytes));
    if (byteLength !== undefined && decoded.length !== byteLength)
      throw corrupt(`zstd: expected ${byteLength} bytes, received ${decoded.length}`);
    return decoded.slice();
  }
  const target = new Uint8Array(expected + MARK.length);
  attempt(() => decompress(marked, target));
  if (MARK.some((byte, index) => target[expected + index] !== byte))
    throw corrupt(`zstd: decodes to another length than ${expected} bytes`);
  const decoded = target.subarray(0, expected);
  if ((bytes[4]! & CHECKSUM_FLAG) === 0) return decoded;
  // A frame ends with the low half of the XXH64 of what it decodes to (RFC 8878, section 3.1.1).
  const announced = new DataView(bytes.buffer, bytes.byteOffset).getUint32(bytes.length - 4, true);
  const checksum = Number(xxh64(decoded) & 0xffffffffn);
  if (checksum !== announced) throw corrupt(`zstd: expected checksum ${announced}, received ${checksum}`);
  return decoded;
}

function attempt(decode: () => Uint8Array): Uint8Array {
  try {
    return decode();
  } catch (error) {
    throw corrupt(`zstd: ${error instanceof Error ? error.message : String(error)}`, error);
  }
}

/** Copies a frame (RFC 8878, section 3.1.1) with a raw block at its end; undefined if it has no block. */
function withMark(frame: Uint8Array): Uint8Array | undefined {
  const descriptor = frame[4]!;
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const sizeFlag = descriptor >>> 6;
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3]!;
  const sizeBytes = sizeFlag === 0 ? Number(isSingleSegment) : 1 << sizeFlag;
  let position = 5 + (isSingleSegment ? 0 : 1) + dictionaryBytes + sizeBytes;
  for (;;) {
    if (position + BLOCK_HEADER_BYTES > frame.length) return undefined;
    const header = frame[position]! | (frame[position + 1]! << 8) | (frame[position + 2]! << 16);
    const kind = (header >>> 1) & 3;
    const next = position + BLOCK_HEADER_BYTES + (kind === RLE_BLOCK ? 1 : header >>> 3);
    if ((header & 1) === 0) {
      position = next;
      continue;
    }
    const marked = new Uint8Array(frame.length + BLOCK_HEADER_BYTES + MARK.length);
    marked.set(frame.subarray(0, next));
    marked[position] = frame[position]! & ~1;
    marked[next] = 1 | (RAW_BLOCK << 1) | (MARK.length << 3);
    marked.set(MARK, next + BLOCK_HEADER_BYTES);
    marked.set(frame.subarray(next), next + BLOCK_HEADER_BYTES + MARK.length);
    return marked;
  }
}

/** Decodes a stream into its place; false if it is not whole or does not fill the place exactly. */
type DecodeInto = (source: Uint8Array, target: Uint8Array) => boolean | Promise<boolean>;

const DECODE_INTO: Readonly<Record<BloscHeader["innerFormat"], DecodeInto>> = Object.freeze({
  blosclz: decodeBlosclzBlock,
  lz4: decodeLz4Block,
  snappy: decodeSnappyBlock,
  zlib: async (source, target) => filled(target, await inflateStream(source, "deflate", target.length)),
  zstd: (source, target) => filled(target, decodeZstd(source, target.length)),
});

function filled(target: Uint8Array, decoded: Uint8Array): boolean {
  if (decoded.length !== target.length) return false;
  target.set(decoded);
  return true;
}

/**
 * Decodes a Blosc 1 chunk without WebAssembly: the kernel of the server needs `'wasm-unsafe-eval'`. Every length is checked. The bytes
 * own their buffer.
 * @throws ZpublishError `corrupt-chunk`
 */
export async function decodeBloscFrame(
  bytes: Uint8Array,
  maxByteLength: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const header = readBloscHeader(bytes, {
    codec: { id: "blosc" },
    itemSize: 1,
    decodedByteLength: null,
    maxDecodedByteLength: maxByteLength,
  });
  const { byteLength, blockSize, innerFormat } = header;
  const copied = copiedBytes(bytes, header);
  if (copied !== undefined) return new Uint8Array(copied);
  const target = new Uint8Array(byteLength);
  const scratch = new Uint8Array(isShuffled(header) ? Math.min(blockSize, byteLength) : 0);
  for (const { begin, end, streams, refuse } of bloscBlocks(bytes, header)) {
    const place = target.subarray(begin, end);
    const into = scratch.length > 0 ? scratch.subarray(0, place.length) : place;
    for (const [index, { encoded, decodedLength }] of streams.entries()) {
      const part = into.subarray(index * decodedLength, (index + 1) * decodedLength);
      if (encoded.length === decodedLength) {
        part.set(encoded);
        continue;
      }
      const isDecoded = DECODE_INTO[innerFormat](encoded, part);
      // Awaiting each of a thousand short streams would take longer than decoding them.
      if (!(typeof isDecoded === "boolean" ? isDecoded : await isDecoded)) refuse();
    }
    if (into !== place) unshuffle(into, place, header);
  }
  return target;
}

function isShuffled({ flags, typeSize }: BloscHeader): boolean {
  return ((flags & FLAG_SHUFFLE) !== 0 && typeSize > 1) || (flags & FLAG_BIT_SHUFFLE) !== 0;
}

function unshuffle(source: Uint8Array, target: Uint8Array, { flags, typeSize }: BloscHeader): void {
  if ((flags & FLAG_SHUFFLE) !== 0 && typeSize > 1) unshuffleBytes(source, target, typeSize);
  else if (source.length >= typeSize) unshuffleBits(source, target, typeSize);
  else target.set(source);
}
