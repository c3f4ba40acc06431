import type { CodecSpec } from "../codec-spec.js";
import type { CodecRule } from "./codec-rule.js";

/**
 * Rules of codecs that files other than Zarr stores have, and that no client of Zarr knows. They are decoded only; arrays are served
 * with codecs of Zarr in their place.
 */
export const INTERNAL_RULES: Readonly<Record<string, CodecRule>> = {
  /**
   * Zero bytes, which decoding appends up to the length of a whole chunk. `byteLength` is that of the shorter chunk, as it is stored.
   */
  pad: decodedOnly("pad", ({ byteLength }: CodecSpec) => Number(byteLength)),
  // Filters of HDF5. Those that compress say how long a chunk becomes in the chunk itself.
  "hdf5-bits": decodedOnly("hdf5-bits", (_codec, byteLength) => byteLength),
  "hdf5-bitshuffle": decodedOnly("hdf5-bitshuffle", ({ cname }, byteLength) =>
    cname === null ? byteLength : null,
  ),
  "hdf5-filters": decodedOnly("hdf5-filters", () => null),
  "hdf5-fletcher32": decodedOnly("hdf5-fletcher32", (_codec, byteLength) => byteLength + 4),
  "hdf5-lz4": decodedOnly("hdf5-lz4", () => null),
  "hdf5-shuffle": decodedOnly("hdf5-shuffle", (_codec, byteLength) => byteLength),
  /** Strings of a fixed length, of `itemSize` bytes. With the `charset` `utf-8` they are decoded to four bytes per character. */
  "hdf5-text": {
    ...decodedOnly("hdf5-text", ({ charset }, byteLength) =>
      charset === "utf-8" ? byteLength / 4 : byteLength,
    ),
    encodedItemSize: (codec) => Number(codec.itemSize),
  },
  lzf: decodedOnly("lzf", () => null),
  /**
   * JPEG of TIFF. `width` and `components` are those of the chunk, `tables` the stream of shared tables in Base64, or empty, `isYcbcr`
   * whether colours are converted from YCbCr to RGB.
   */
  jpeg: decodedOnly("jpeg", () => null),
  /** Deflate of a TIFF strip that may go on behind its rows, up to `maxByteLength`, the length of a whole strip. */
  "tiff-deflate": decodedOnly("tiff-deflate", () => null),
  /** LZW of TIFF. */
  "tiff-lzw": decodedOnly("tiff-lzw", () => null),
  /** PackBits of TIFF. The `packbits` of numcodecs is another codec: it packs booleans. */
  "tiff-packbits": decodedOnly("tiff-packbits", () => null),
  /**
   * Differences of TIFF. `predictor` is 2 for items and 3 for bytes of floats, `itemSize` the bytes of an item, `rowItems` the items of
   * a row with all its bands, `step` the number of interleaved bands, `isBigEndian` the byte order.
   */
  "tiff-predictor": decodedOnly("tiff-predictor", (_codec, decodedByteLength) => decodedByteLength),
  /**
   * Padding within items, which decoding takes out. `itemSize` is the length of an item with padding, `pieces` are the parts of it
   * that are kept, in order: offset, length, and the length of the numbers in it if their bytes are reversed, else 1.
   */
  repack: {
    ...decodedOnly(
      "repack",
      (codec, byteLength) => (byteLength / packedSize(codec)) * Number(codec.itemSize),
    ),
    encodedItemSize: (codec) => Number(codec.itemSize),
  },
};

/** The rule of a codec whose options come from a reader of files, which has checked them. */
function decodedOnly(id: string, encodedByteLength: CodecRule["encodedByteLength"]): CodecRule {
  return { options: {}, isInternal: true, encodeProblem: () => `${id} is decoded only`, encodedByteLength };
}

/** Returns the bytes of an item without its padding. */
function packedSize({ pieces }: CodecSpec): number {
  return (pieces as readonly (readonly number[])[]).reduce((sum, [, length = 0]) => sum + length, 0);
}
