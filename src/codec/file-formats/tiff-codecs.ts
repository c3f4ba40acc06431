import nodeZlib from "node:zlib";
import { type Codec, checkDecodedLength, corrupt } from "../codec.js";
import { inflate } from "../deflate.js";
import { IS_LITTLE_ENDIAN } from "../item-reader.js";
import { OWN_MEMORY } from "../kernel/kernel-memory.js";

/**
 * Deflate of a TIFF strip whose stream may go on behind its rows, which decoding leaves out: some writers fill the last strip up.
 * `maxByteLength` is the length of a whole strip.
 */
export const tiffDeflate: Codec = {
  decode(bytes, step) {
    const { codec, decodedByteLength } = step;
    if (decodedByteLength === null) throw corrupt("tiff-deflate: expected a chunk of known length");
    const maxDecodedByteLength = Number(codec.maxByteLength);
    const decoded = inflate("tiff-deflate", nodeZlib.inflateSync, bytes, { ...step, maxDecodedByteLength });
    return decoded.subarray(0, decodedByteLength);
  },
};

const CLEAR_CODE = 256;
const END_CODE = 257;
const FIRST_FREE = 258;
const MAX_CODES = 4096;

/**
 * LZW of TIFF (TIFF 6.0, section 13): codes of 9 to 12 bits, most significant bit first, one wider a code early. Decoding stops when the
 * chunk is whole, as libtiff does: some writers leave the end code out.
 */
export const tiffLzw: Codec = {
  decode(bytes, step, memory = OWN_MEMORY) {
    const { decodedByteLength } = step;
    if (decodedByteLength === null) throw corrupt("tiff-lzw: expected a chunk of known length");
    if (bytes.length > 1 && bytes[0] === 0 && bytes[1]! & 1) {
      throw corrupt("tiff-lzw: expected codes with the most significant bit first, received old-style LZW");
    }
    const decoded = memory.allocate(decodedByteLength);
    checkDecodedLength("tiff-lzw", decodeLzw(bytes, decoded), step);
    return decoded;
  },
};

/**
 * Decodes codes until the target is full or the end code comes.
 *
 * An entry of the table is a place in the target: a string is what an earlier code wrote, and the byte behind it.
 * @returns Bytes written.
 * @throws ZpublishError `corrupt-chunk`
 */
function decodeLzw(bytes: Uint8Array, target: Uint8Array): number {
  const starts = new Uint32Array(MAX_CODES);
  const lengths = new Uint32Array(MAX_CODES);
  let free = FIRST_FREE;
  let width = 9;
  let bits = 0;
  let bitCount = 0;
  let position = 0;
  let written = 0;
  let previousStart = 0;
  let previousLength = 0;
  while (written < target.length) {
    while (bitCount < width) {
      if (position === bytes.length) return written;
      bits = ((bits << 8) | bytes[position++]!) & 0xffffff;
      bitCount += 8;
    }
    bitCount -= width;
    const code = (bits >>> bitCount) & ((1 << width) - 1);
    if (code === END_CODE) return written;
    if (code === CLEAR_CODE) {
      free = FIRST_FREE;
      width = 9;
      previousLength = 0;
      continue;
    }
    // The string before this one and the first byte of this one, which follows it in the target.
    if (previousLength > 0 && free < MAX_CODES) {
      starts[free] = previousStart;
      lengths[free] = previousLength + 1;
      free++;
    }
    const start = written;
    if (code < CLEAR_CODE) {
      target[written++] = code;
    } else if (code < free) {
      const from = starts[code]!;
      const end = Math.min(written + lengths[code]!, target.length);
      // Source and target overlap by a byte if the entry is the newest; it is written before it is read.
      for (let source = from; written < end; ) target[written++] = target[source++]!;
    } else {
      throw corrupt(`tiff-lzw: expected a code below ${free}, received ${code}`);
    }
    previousStart = start;
    previousLength = written - start;
    if (free >= (1 << width) - 1 && width < 12) width++;
  }
  return written;
}

/** PackBits (TIFF 6.0, section 9): runs of one byte, and bytes as they are. Decoding stops when the chunk is whole. */
export const tiffPackbits: Codec = {
  decode(bytes, step, memory = OWN_MEMORY) {
    const { decodedByteLength } = step;
    if (decodedByteLength === null) throw corrupt("tiff-packbits: expected a chunk of known length");
    const decoded = memory.allocate(decodedByteLength);
    checkDecodedLength("tiff-packbits", unpack(bytes, decoded), step);
    return decoded;
  },
};

/** Decodes until the target is full or the bytes end, and returns the number of bytes written. */
function unpack(bytes: Uint8Array, target: Uint8Array): number {
  let written = 0;
  for (let position = 0; position + 1 < bytes.length && written < target.length; ) {
    const head = bytes[position++]!;
    if (head === 128) continue;
    if (head > 128) {
      const end = Math.min(written + 257 - head, target.length);
      target.fill(bytes[position++]!, written, end);
      written = end;
    } else {
      const length = Math.min(head + 1, bytes.length - position, target.length - written);
      target.set(bytes.subarray(position, position + length), written);
      written += length;
      position += head + 1;
    }
  }
  return written;
}

/** Options of `tiff-predictor`, as its rule checks them. */
interface PredictorOptions {
  /** 2: each item is stored as the difference from the one before it in its row and band. 3: the same of bytes, by weight. */
  readonly predictor: number;
  /** Bytes of an item. */
  readonly itemSize: number;
  /** Items of a row, of all its bands. */
  readonly rowItems: number;
  /** Items from one item to the next of its band: the number of interleaved bands. */
  readonly step: number;
  readonly isBigEndian: boolean;
}

/** Predictors of TIFF (TIFF 6.0, section 14, and Adobe's TIFF Technical Note 3). Rows are independent of each other. */
export const tiffPredictor: Codec = {
  decode(bytes, { codec }, memory = OWN_MEMORY) {
    const options = codec as unknown as PredictorOptions;
    const { predictor, itemSize, rowItems } = options;
    const rowBytes = rowItems * itemSize;
    if (bytes.length % rowBytes !== 0) {
      throw corrupt(`tiff-predictor: expected rows of ${rowBytes} bytes, received ${bytes.length} bytes`);
    }
    const decoded = memory.allocate(bytes.length);
    if (predictor === 3) sumFloats(bytes, decoded, options);
    else if (itemSize === 1) sumBytes(bytes, decoded, rowBytes, options.step);
    else if (canSumWords(decoded, options)) sumWords(bytes, decoded, options);
    else sumItems(bytes, decoded, options);
    return decoded;
  },
};

function sumBytes(bytes: Uint8Array, target: Uint8Array, rowBytes: number, step: number): void {
  for (let row = 0; row < bytes.length; row += rowBytes) {
    target.set(bytes.subarray(row, row + step), row);
    for (let index = row + step; index < row + rowBytes; index++) {
      target[index] = target[index - step]! + bytes[index]!;
    }
  }
}

/** Whether items are words of this machine. */
function canSumWords({ byteOffset }: Uint8Array, { itemSize, isBigEndian }: PredictorOptions): boolean {
  return (
    (itemSize === 2 || itemSize === 4) && !isBigEndian && IS_LITTLE_ENDIAN && byteOffset % itemSize === 0
  );
}

/** The same as {@link sumItems}, faster. */
function sumWords(bytes: Uint8Array, target: Uint8Array, options: PredictorOptions): void {
  const { itemSize, rowItems, step } = options;
  target.set(bytes);
  const count = target.length / itemSize;
  const words =
    itemSize === 2
      ? new Uint16Array(target.buffer, target.byteOffset, count)
      : new Uint32Array(target.buffer, target.byteOffset, count);
  for (let row = 0; row < count; row += rowItems) {
    for (let index = row + step; index < row + rowItems; index++) {
      words[index] = words[index]! + words[index - step]!;
    }
  }
}

/** Adds integers of 2, 4 and 8 bytes, byte by byte with a carry: rows need not be aligned, and both byte orders are alike. */
function sumItems(bytes: Uint8Array, target: Uint8Array, options: PredictorOptions): void {
  const { itemSize, rowItems, isBigEndian } = options;
  const rowBytes = rowItems * itemSize;
  const back = options.step * itemSize;
  const first = isBigEndian ? itemSize - 1 : 0;
  const next = isBigEndian ? -1 : 1;
  for (let row = 0; row < bytes.length; row += rowBytes) {
    target.set(bytes.subarray(row, row + Math.min(back, rowBytes)), row);
    for (let item = row + back; item < row + rowBytes; item += itemSize) {
      let carry = 0;
      for (let count = 0, index = item + first; count < itemSize; count++, index += next) {
        const sum = target[index - back]! + bytes[index]! + carry;
        target[index] = sum;
        carry = sum >>> 8;
      }
    }
  }
}

/** Adds bytes within a row, which holds the most significant bytes of all items first, and puts items together. */
function sumFloats(bytes: Uint8Array, target: Uint8Array, options: PredictorOptions): void {
  const { itemSize, rowItems, step, isBigEndian } = options;
  const rowBytes = rowItems * itemSize;
  const summed = new Uint8Array(rowBytes);
  for (let row = 0; row < bytes.length; row += rowBytes) {
    sumBytes(bytes.subarray(row, row + rowBytes), summed, rowBytes, step);
    for (let weight = 0; weight < itemSize; weight++) {
      const place = isBigEndian ? weight : itemSize - 1 - weight;
      const plane = weight * rowItems;
      for (let item = 0; item < rowItems; item++) {
        target[row + item * itemSize + place] = summed[plane + item]!;
      }
    }
  }
}
