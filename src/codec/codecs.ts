import { blosc } from "./blosc/blosc.js";
import { adler32, crc32, crc32cTrailer, hdf5Fletcher32 } from "./checksums.js";
import type { Codec } from "./codec.js";
import { pad } from "./copy-strided.js";
import { gzip, zlib } from "./deflate.js";
import { hdf5Filters } from "./file-formats/h5wasm-filters.js";
import { hdf5Bits, hdf5Bitshuffle, hdf5Lz4, hdf5Shuffle, hdf5Text, lzf } from "./file-formats/hdf5-codecs.js";
import { jpeg } from "./file-formats/jpeg.js";
import { tiffDeflate, tiffLzw, tiffPackbits, tiffPredictor } from "./file-formats/tiff-codecs.js";
import { lz4 } from "./lz4.js";
import { v3Packbits } from "./registry/packbits.js";
import { castValue, scaleOffset } from "./registry/value-codecs.js";
import { bitround, delta, fixedScaleOffset, fixedText, repack, shuffle } from "./small-codecs.js";
import { zstd } from "./zstd.js";

/** Every codec with an implementation, by id. Chunks in other codecs can only be passed through. */
export const CODECS: Readonly<Record<string, Codec>> = Object.freeze({
  adler32,
  bitround,
  blosc,
  cast_value: castValue,
  crc32,
  crc32c: crc32cTrailer,
  delta,
  "fixed-text": fixedText,
  fixedscaleoffset: fixedScaleOffset,
  gzip,
  "hdf5-bits": hdf5Bits,
  "hdf5-bitshuffle": hdf5Bitshuffle,
  "hdf5-filters": hdf5Filters,
  "hdf5-fletcher32": hdf5Fletcher32,
  "hdf5-lz4": hdf5Lz4,
  "hdf5-shuffle": hdf5Shuffle,
  "hdf5-text": hdf5Text,
  jpeg,
  lz4,
  lzf,
  pad,
  quantize: bitround,
  repack,
  scale_offset: scaleOffset,
  shuffle,
  "tiff-deflate": tiffDeflate,
  "tiff-lzw": tiffLzw,
  "tiff-packbits": tiffPackbits,
  "tiff-predictor": tiffPredictor,
  "v3-packbits": v3Packbits,
  zlib,
  zstd,
});
