import type { Codec } from "./codec.js";

/**
 * `bitround`, and `quantize` within one type, which drop bits when they first encode: neither decoding nor encoding decoded
 * items again has anything to do.
 */
export const bitround: Codec = { decode: (bytes) => bytes, encode: (bytes) => bytes };
