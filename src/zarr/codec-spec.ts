import type { JsonValue } from "../model/json-value.js";

/**
 * One codec as numcodecs configures it and a v2 `.zarray` writes it: `{"id":"blosc","cname":"lz4",…}`.
 * Codecs that only Zarr v3 has appear here as well (`{"id":"crc32c"}`); a served array never has one of those.
 */
export interface CodecSpec {
  readonly id: string;
  readonly [key: string]: JsonValue;
}
