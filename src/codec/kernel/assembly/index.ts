import { BLOSCLZ_TABLE_BYTES } from "./blosclz-encode";
import { LZ4_TABLE_BYTES } from "./lz4-encode";
import { LZ4HC_TABLE_BYTES } from "./lz4hc-search";

export { shuffleBits, unshuffleBits } from "./bit-shuffle";
export { decodeBlosclz } from "./blosclz-decode";
export { encodeBlosclz } from "./blosclz-encode";
export { shuffleBytes, unshuffleBytes } from "./byte-shuffle";
export { decodeLz4 } from "./lz4-decode";
export { encodeLz4 } from "./lz4-encode";
export { encodeLz4hc } from "./lz4hc-encode";

// Not by `max`, which the compiler does not take for a constant.
const FAST_TABLE_BYTES = BLOSCLZ_TABLE_BYTES > LZ4_TABLE_BYTES ? BLOSCLZ_TABLE_BYTES : LZ4_TABLE_BYTES;

/** Memory that the tables of any encoder fit into: as much as the largest are. */
export const TABLE_BYTES: i32 = <i32>(
  (LZ4HC_TABLE_BYTES > FAST_TABLE_BYTES ? LZ4HC_TABLE_BYTES : FAST_TABLE_BYTES)
);
