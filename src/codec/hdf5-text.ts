import type { Codec } from "./codec.js";

const SPACE = 0x20;

/**
 * Strings of a fixed length as HDF5 pads them. Decoding clears what is behind their end, as numpy has them: a program that writes
 * strings that end with a null character may leave anything behind it.
 */
export const hdf5Text: Codec = {
  decode(bytes, { codec }) {
    const size = Number(codec.itemSize);
    const texts = Uint8Array.from(bytes);
    for (let start = 0; start + size <= texts.length; start += size) {
      const text = texts.subarray(start, start + size);
      text.fill(0, codec.padding === "space-padded" ? endOfSpaced(text) : endOfTerminated(text));
    }
    return texts;
  },
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
