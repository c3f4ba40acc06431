const FRAME_MAGIC = 0xfd2fb528;
/** The sixteen magics of skippable frames: 0x184D2A5?. */
const SKIPPABLE_MAGIC = 0x184d2a50;
const MAX_BLOCK_BYTES = 128 * 1024;

/** The decoded length of a zstd input, as far as it can be known without decoding. */
export interface ZstdLength {
  /** Lower bound, in bytes. */
  readonly min: number;
  /** Upper bound, in bytes; equal to `min` if every frame says its content size. */
  readonly max: number;
  /** Number of frames, skippable ones included. */
  readonly frames: number;
}

/**
 * Measures a zstd input by its frames and blocks (RFC 8878, section 3.1), so that nothing is decoded that would not fit.
 * Undefined if it is not whole frames.
 */
export function measureZstd(bytes: Uint8Array): ZstdLength | undefined {
  if (bytes.length === 0) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let min = 0;
  let max = 0;
  let frames = 0;
  let position = 0;
  while (position < bytes.length) {
    if (position + 8 > bytes.length) return undefined;
    frames++;
    const magic = view.getUint32(position, true);
    if ((magic & 0xfffffff0) >>> 0 === SKIPPABLE_MAGIC) {
      position += 8 + view.getUint32(position + 4, true);
      if (position > bytes.length) return undefined;
      continue;
    }
    if (magic !== FRAME_MAGIC) return undefined;
    const frame = measureFrame(view, position + 4);
    if (frame === undefined) return undefined;
    min += frame.min;
    max += frame.max;
    position = frame.end;
  }
  return { min, max, frames };
}

/** `Frame_Content_Size_flag` of 2: the size is in four bytes. */
const SIZE_FLAG_4 = 2 << 6;

/**
 * Returns the frame with its content size in the header (RFC 8878, section 3.1.1.1): a decoder then allocates no more than that,
 * and refuses any other length.
 * @param bytes One frame without a content size.
 */
export function withContentSize(bytes: Uint8Array, contentSize: number): Uint8Array {
  // It follows the magic, the descriptor, the window descriptor and the dictionary id.
  const place = 4 + 1 + 1 + [0, 1, 2, 4][bytes[4]! & 3]!;
  const sized = new Uint8Array(bytes.length + 4);
  sized.set(bytes.subarray(0, place));
  sized[4] = (bytes[4]! & 0x3f) | SIZE_FLAG_4;
  new DataView(sized.buffer).setUint32(place, contentSize, true);
  sized.set(bytes.subarray(place), place + 4);
  return sized;
}

function measureFrame(
  view: DataView,
  begin: number,
): (Omit<ZstdLength, "frames"> & { end: number }) | undefined {
  const total = view.byteLength;
  const descriptor = view.getUint8(begin);
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const hasChecksum = (descriptor & 0x04) !== 0;
  const sizeFlag = descriptor >>> 6;
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3]!;
  const sizeBytes = sizeFlag === 0 ? (isSingleSegment ? 1 : 0) : 2 ** sizeFlag;

  let position = begin + 1 + (isSingleSegment ? 0 : 1) + dictionaryBytes;
  if (position + sizeBytes > total) return undefined;
  let contentSize: number | undefined;
  if (sizeBytes === 1) contentSize = view.getUint8(position);
  else if (sizeBytes === 2) contentSize = view.getUint16(position, true) + 256;
  else if (sizeBytes === 4) contentSize = view.getUint32(position, true);
  else if (sizeBytes === 8) contentSize = Number(view.getBigUint64(position, true));
  position += sizeBytes;

  let min = 0;
  let max = 0;
  for (;;) {
    if (position + 3 > total) return undefined;
    const header = view.getUint16(position, true) | (view.getUint8(position + 2) << 16);
    const kind = (header >>> 1) & 3;
    const size = header >>> 3;
    position += 3;
    if (kind === 3 || size > MAX_BLOCK_BYTES) return undefined;
    // Raw blocks hold their bytes, RLE blocks one byte, compressed blocks decode to as much as a block may.
    position += kind === 1 ? 1 : size;
    if (position > total) return undefined;
    if (kind !== 2) min += size;
    max += kind === 2 ? MAX_BLOCK_BYTES : size;
    if ((header & 1) !== 0) break;
  }
  const end = position + (hasChecksum ? 4 : 0);
  if (end > total) return undefined;
  if (contentSize === undefined) return { min, max, end };
  if (contentSize < min || contentSize > max) return undefined;
  return { min: contentSize, max: contentSize, end };
}
