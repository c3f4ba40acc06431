import { type Codec, corrupt } from "./codec.js";

/** Chunks that are stored shorter than the others, as the last strip of a TIFF is: zero bytes are appended. */
export const pad: Codec = {
  decode(bytes, { codec, decodedByteLength }) {
    const byteLength = Number(codec.byteLength);
    if (bytes.length !== byteLength) {
      throw corrupt(`pad: expected ${byteLength} bytes before they are padded, received ${bytes.length}`);
    }
    const whole = new Uint8Array(decodedByteLength ?? byteLength);
    whole.set(bytes);
    return whole;
  },
};
