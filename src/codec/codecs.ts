import { bitround } from "./bitround.js";
import { blosc } from "./blosc/blosc.js";
import { adler32, crc32, crc32cTrailer } from "./checksum.js";
import type { Codec } from "./codec.js";
import { delta } from "./delta.js";
import { fixedScaleOffset } from "./fixed-scale-offset.js";
import { gzip } from "./gzip.js";
import { lz4 } from "./lz4.js";
import { pad } from "./pad.js";
import { shuffle } from "./shuffle.js";
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
  lz4,
  pad,
  quantize: bitround,
  shuffle,
  zlib,
  zstd,
});
