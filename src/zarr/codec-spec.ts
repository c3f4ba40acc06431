import type { JsonValue } from "../json/json-value.js";

/**
 * One codec as numcodecs configures it and a v2 `.zarray` writes it: `{"id":"blosc","cname":"lz4",…}`.
 * A stored array may also have a codec that only Zarr v3 knows (`{"id":"crc32c"}`); a served one never does.
 */
export interface CodecSpec {
  readonly id: string;
  readonly [key: string]: JsonValue;
}

/** Compressor to serve if an array has none that clients know: Blosc with LZ4. */
export const DEFAULT_COMPRESSOR: CodecSpec = Object.freeze({
  id: "blosc",
  cname: "lz4",
  clevel: 5,
  shuffle: 1,
  blocksize: 0,
});
