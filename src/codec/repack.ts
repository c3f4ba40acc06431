import type { JsonValue } from "../json/json-value.js";
import { type Codec, corrupt } from "./codec.js";

/**
 * Items with padding between their fields, as compounds of HDF5 have it. Decoding takes the padding out, and reverses the bytes of
 * numbers of the other byte order.
 */
export const repack: Codec = {
  decode(bytes, { codec }) {
    const storedSize = Number(codec.itemSize);
    const pieces = (codec.pieces as readonly (readonly JsonValue[])[]).map(
      ([offset, byteLength, reversed]) => [Number(offset), Number(byteLength), Number(reversed)] as const,
    );
    const count = bytes.length / storedSize;
    if (!Number.isInteger(count)) {
      throw corrupt(`repack: expected items of ${storedSize} bytes, received ${bytes.length} bytes`);
    }
    const packed = new Uint8Array(count * pieces.reduce((sum, [, byteLength]) => sum + byteLength, 0));
    let to = 0;
    for (let item = 0; item < bytes.length; item += storedSize) {
      for (const [offset, byteLength, reversed] of pieces) {
        for (let from = item + offset; from < item + offset + byteLength; from += reversed) {
          for (let byte = reversed - 1; byte >= 0; byte--) packed[to++] = bytes[from + byte] as number;
        }
      }
    }
    return packed;
  },
};
