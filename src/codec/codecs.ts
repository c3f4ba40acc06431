import { bitround } from "./bitround.js";
import { blosc } from "./blosc/blosc.js";
import { adler32, crc32, crc32cTrailer } from "./checksum.js";
import type { Codec } from "./codec.js";
import { delta } from "./delta.js";
import { fixedScaleOffset } from "./fixed-scale-offset.js";
import { gzip } from "./gzip.js";
import { hdf5Bits } from "./hdf5-bits.js";
import { hdf5Bitshuffle } from "./hdf5-bitshuffle.js";
import { hdf5Filters } from "./hdf5-filters.js";
import { hdf5Fletcher32 } from "./hdf5-fletcher32.js";
import { hdf5Lz4 } from "./hdf5-lz4.js";
import { hdf5Shuffle } from "./hdf5-shuffle.js";
import { hdf5Text } from "./hdf5-text.js";
import { jpeg } from "./jpeg.js";
import { lz4 } from "./lz4.js";
import { lzf } from "./lzf.js";
import { pad } from "./pad.js";
import { repack } from "./repack.js";
import { shuffle } from "./shuffle.js";
import { tiffDeflate } from "./tiff-deflate.js";
import { tiffLzw } from "./tiff-lzw.js";
import { tiffPackbits } from "./tiff-packbits.js";
import { tiffPredictor } from "./tiff-predictor.js";
import { zlib } from "./zlib.js";
import { zstd } from "./zstd.js";

/** Every codec with an implementation, by id. Chunks in other codecs can only be passed through. */
export const CODECS: Readonly<Record<string, Codec>> = Object.freeze({
  adler32,
  bitround,
  blosc,
  crc32,
  crc32c: crc32cTrailer,
  delta,
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
  shuffle,
  "tiff-deflate": tiffDeflate,
  "tiff-lzw": tiffLzw,
  "tiff-packbits": tiffPackbits,
  "tiff-predictor": tiffPredictor,
  zlib,
  zstd,
});
