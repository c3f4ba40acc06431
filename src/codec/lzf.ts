import { type Codec, checkDecodedLength, corrupt } from "./codec.js";
import { OWN_MEMORY } from "./kernel/kernel-memory.js";
import { copyMatch } from "./plain/copy-match.js";

/** Control bytes below it are the number of literals less one; others begin a match. */
const MAX_LITERALS = 32;
/** Value of the upper three bits of a match whose length continues in the next byte. */
const LONG_MATCH = 7;

/** `lzf` of h5py: one LibLZF block, of which only the dataset knows how long it is decoded. */
export const lzf: Codec = {
  decode(bytes, step, memory = OWN_MEMORY) {
    const byteLength = measureLzf(bytes);
    if (byteLength === undefined) throw corrupt("lzf: expected a whole block, received one that ends early");
    checkDecodedLength("lzf", byteLength, step);
    const decoded = memory.allocate(byteLength);
    if (!decodeLzf(bytes, decoded)) throw corrupt("lzf: a match reaches before the beginning of the block");
    return decoded;
  },
};

/** Returns the length of a block when decoded; undefined if it ends within a literal or a match. */
function measureLzf(source: Uint8Array): number | undefined {
  let byteLength = 0;
  let from = 0;
  while (from < source.length) {
    const control = source[from++]!;
    if (control < MAX_LITERALS) {
      from += control + 1;
      byteLength += control + 1;
    } else {
      byteLength += (control >>> 5) + 2;
      if (control >>> 5 === LONG_MATCH) byteLength += source[from++] ?? 0;
      from++;
    }
  }
  return from === source.length ? byteLength : undefined;
}

/** Decodes a measured block. @returns False if a match reaches before the block. */
function decodeLzf(source: Uint8Array, target: Uint8Array): boolean {
  let from = 0;
  let to = 0;
  while (from < source.length) {
    const control = source[from++]!;
    if (control < MAX_LITERALS) {
      for (const end = from + control + 1; from < end; ) target[to++] = source[from++]!;
      continue;
    }
    let length = (control >>> 5) + 2;
    if (control >>> 5 === LONG_MATCH) length += source[from++]!;
    const distance = ((control & 31) << 8) + source[from++]! + 1;
    if (distance > to) return false;
    copyMatch(target, to, distance, length);
    to += length;
  }
  return true;
}
