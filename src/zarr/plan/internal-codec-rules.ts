import type { CodecSpec } from "../codec-spec.js";
import type { CodecRule } from "./codec-rule.js";

/**
 * Rules of codecs that files other than Zarr stores have, and that no client of Zarr knows. They are decoded only; arrays are served
 * with codecs of Zarr in their place.
 */
export const INTERNAL_RULES: Readonly<Record<string, CodecRule>> = {
  /** Decoding appends zero bytes up to the length of a whole chunk. `byteLength` is that of the shorter chunk, as stored. */
  pad: {
    options: {},
    isInternal: true,
    encodeProblem: () => "pad is decoded only",
    encodedByteLength: ({ byteLength }: CodecSpec) => Number(byteLength),
  },
};
