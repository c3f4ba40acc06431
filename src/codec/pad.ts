import type { Codec } from "./codec.js";

/** Chunks that are stored shorter than the others, as the last strip of a TIFF is: zero bytes are appended. */
export const pad: Codec = {
  decode(bytes, { decodedByteLength }) {
    const whole = new Uint8Array(decodedByteLength ?? bytes.length);
    whole.set(bytes);
    return whole;
  },
};
