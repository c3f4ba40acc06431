import type { Codec } from "./codec.js";

/**
 * Filters that only drop bits when they encode (`bitround`, `quantize` within one type): decoding does nothing, and
 * what was decoded from them needs nothing done to be encoded again.
 */
export const bitround: Codec = { decode: (bytes) => bytes, encode: (bytes) => bytes };
