import nodeZlib from "node:zlib";
import { messageOf, ZpublishError } from "../errors.js";
import { type Codec, checkDecodedLength, corrupt } from "./codec.js";
import { checkEncodable, runNumcodecs } from "./numcodecs-module.js";
import { measureZstd } from "./zstd-frame.js";

/** Frames need not say their size; this much of them is decoded at most. */
const MAX_UNANNOUNCED_BYTES = 512 * 2 ** 20;

/** Native from Node 22.15 on, which is later than the types this is built with. */
const zstdDecompressSync = (
  nodeZlib as unknown as {
    zstdDecompressSync?: (bytes: Uint8Array, options: { maxOutputLength: number }) => Uint8Array;
  }
).zstdDecompressSync;

/**
 * `zstd` of numcodecs. Encodes with numcodecs.js everywhere, also where Node has its own zstd: the bytes must be the same
 * on every instance, whatever its Node. Levels of 0 and below are written as level 1, which is what numcodecs.js knows.
 */
export const zstd: Codec = {
  async decode(bytes, step) {
    const length = measureZstd(bytes);
    if (length === undefined) throw corrupt(`zstd: expected whole frames, received something else`);
    const { min, max, frames } = length;
    if (min === max) checkDecodedLength("zstd", max, step);
    else if (min > step.maxDecodedByteLength) checkDecodedLength("zstd", min, step);
    else if (max > Math.max(step.maxDecodedByteLength, MAX_UNANNOUNCED_BYTES)) {
      throw corrupt(`zstd: may decode to ${max} bytes, expected at most ${step.maxDecodedByteLength}`);
    }
    if (max === 0) return new Uint8Array(0);
    try {
      // Node's own stops silently after the first frame.
      return zstdDecompressSync === undefined || frames > 1
        ? await runNumcodecs("zstd", "decode", {}, bytes)
        : zstdDecompressSync(bytes, { maxOutputLength: Math.max(1, step.maxDecodedByteLength) });
    } catch (error) {
      if (error instanceof ZpublishError) throw error;
      throw corrupt(`zstd: ${messageOf(error)}`, error);
    }
  },
  encode(bytes, { codec }) {
    checkEncodable("zstd", bytes);
    return runNumcodecs("zstd", "encode", { level: codec.level }, bytes);
  },
};
