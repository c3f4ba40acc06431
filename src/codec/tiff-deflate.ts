import nodeZlib from "node:zlib";
import { type Codec, corrupt } from "./codec.js";
import { inflate } from "./zlib.js";

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
