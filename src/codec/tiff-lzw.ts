import { type Codec, checkDecodedLength, corrupt } from "./codec.js";
import { OWN_MEMORY } from "./kernel/kernel-memory.js";

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
    if (bytes.length > 1 && bytes[0] === 0 && (bytes[1] as number) & 1) {
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
      bits = ((bits << 8) | (bytes[position++] as number)) & 0xffffff;
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
      const from = starts[code] as number;
      const end = Math.min(written + (lengths[code] as number), target.length);
      // Source and target overlap by a byte if the entry is the newest; it is written before it is read.
      for (let source = from; written < end; ) target[written++] = target[source++] as number;
    } else {
      throw corrupt(`tiff-lzw: expected a code below ${free}, received ${code}`);
    }
    previousStart = start;
    previousLength = written - start;
    if (free >= (1 << width) - 1 && width < 12) width++;
  }
  return written;
}
