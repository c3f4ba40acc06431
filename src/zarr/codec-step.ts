import type { NumberDecoding } from "../cf/decoded-type.js";
import type { JsonValue } from "../json/json-value.js";

/** One codec, and the bytes that it works on. Plain data: no lossless numbers, no big integers. */
export interface CodecStep {
  readonly codec: CodecSpec;
  /** Byte length on the decoded side, against which input and output are checked; null if unknown. */
  readonly decodedByteLength: number | null;
  /** `decodedByteLength` if it is known, else a limit: nothing larger is ever allocated for the decoded side. */
  readonly maxDecodedByteLength: number;
  /** Item size on the decoded side, for codecs that need it (Blosc's typesize, shuffle); 1 if unknown. */
  readonly itemSize: number;
}

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

/** Change of one part's items to those of a joined array. Plain data. */
export type ItemConversion = SwapConversion | UnpackConversion;

/** Items of the same type in the other byte order. */
export interface SwapConversion {
  readonly kind: "swap";
  /** Bytes of an item, 2, 4 or 8; half of that is swapped for complex numbers. */
  readonly wordSize: number;
}

/** Packed items, which become floats as xarray decodes them, of the type that the joined array has. */
export interface UnpackConversion {
  readonly kind: "unpack";
  /** Stored type as Zarr v2 writes it: `<i2`, `>u1`, `<f4`. */
  readonly from: string;
  readonly decoding: NumberDecoding;
}
