import { decompress } from "fzstd";
import { corrupt } from "../../../codec/codec.js";
import { measureZstd } from "../../../codec/zstd.js";
import { xxh64 } from "./xxh64.js";

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
  if ((bytes[4]! & CHECKSUM_FLAG) !== 0) assertChecksum(decoded, bytes);
  return decoded;
}

/** A frame ends with the low half of the XXH64 of what it decodes to (RFC 8878, section 3.1.1). */
function assertChecksum(decoded: Uint8Array, frame: Uint8Array): void {
  const expected = new DataView(frame.buffer, frame.byteOffset).getUint32(frame.length - 4, true);
  const received = Number(xxh64(decoded) & 0xffffffffn);
  if (received !== expected) throw corrupt(`zstd: expected checksum ${expected}, received ${received}`);
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
  const descriptor = frame[4] as number;
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const sizeFlag = descriptor >>> 6;
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3] as number;
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
