import type { Codec } from "./codec.js";

const SPACE = 0x20;
const BYTES_PER_CHARACTER = 4;

/**
 * Strings of a fixed length as HDF5 pads them. Decoding clears what is behind their end, as numpy has them: a program that writes
 * strings that end with a null character may leave anything behind it. Strings in UTF-8 become numpy's `<U`: a character has four
 * bytes, and bytes that are no UTF-8 become U+FFFD.
 */
export const hdf5Text: Codec = {
  decode(bytes, { codec }) {
    const size = Number(codec.itemSize);
    const endOf = ENDS[String(codec.padding)]!;
    return codec.charset === "utf-8" ? decodeUtf8(bytes, size, endOf) : clearEnds(bytes, size, endOf);
  },
};

/** Returns the length of a string without what follows it. */
type EndOf = (text: Uint8Array) => number;

function clearEnds(bytes: Uint8Array, size: number, endOf: EndOf): Uint8Array {
  const texts = Uint8Array.from(bytes);
  for (let start = 0; start < texts.length; start += size) {
    const text = texts.subarray(start, start + size);
    text.fill(0, endOf(text));
  }
  return texts;
}

function decodeUtf8(bytes: Uint8Array, size: number, endOf: EndOf): Uint8Array {
  const decoded = new Uint8Array(bytes.length * BYTES_PER_CHARACTER);
  const view = new DataView(decoded.buffer);
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let start = 0; start < bytes.length; start += size) {
    const end = start + endOf(bytes.subarray(start, start + size));
    let at = start * BYTES_PER_CHARACTER;
    // Each character takes at least one byte of the file, so an item has room for all.
    for (const character of buffer.toString("utf8", start, end)) {
      view.setUint32(at, character.codePointAt(0)!, true);
      at += BYTES_PER_CHARACTER;
    }
  }
  return decoded;
}

/** Ends by padding. The zeros of null-padded strings are those of numpy. */
const ENDS: Readonly<Record<string, EndOf>> = {
  "null-padded": (text) => text.length,
  "null-terminated": endOfTerminated,
  "space-padded": endOfSpaced,
};

function endOfSpaced(text: Uint8Array): number {
  let end = text.length;
  while (end > 0 && text[end - 1] === SPACE) end--;
  return end;
}

function endOfTerminated(text: Uint8Array): number {
  const end = text.indexOf(0);
  return end < 0 ? text.length : end;
}
