import { type Codec, checkDecodedLength, corrupt } from "./codec.js";
import { OWN_MEMORY } from "./kernel/kernel-memory.js";

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
    const head = bytes[position++] as number;
    if (head === 128) continue;
    if (head > 128) {
      const end = Math.min(written + 257 - head, target.length);
      target.fill(bytes[position++] as number, written, end);
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
