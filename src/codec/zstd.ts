import nodeZlib from "node:zlib";
import { messageOf, ZpublishError } from "../errors.js";
import { type Codec, checkDecodedLength, corrupt } from "./codec.js";
import { keepStream, keepStreams, type StreamRun, type StreamRunOptions } from "./kept-stream.js";
import { checkEncodable, loadNumcodecs, runNumcodecs } from "./numcodecs-module.js";
import { inflate } from "./zlib.js";
import { measureZstd, withContentSize } from "./zstd-frame.js";

/**
 * Frames need not say their size, and their blocks only how much each may be: where the plan does not say it either, so much more
 * than it allows may be allocated.
 */
const MAX_UNANNOUNCED_BYTES = 64 * 2 ** 20;

const MIN_LEVEL = -131072;
const MAX_LEVEL = 22;

/** `ZSTD_c_compressionLevel` and `ZSTD_c_contentSizeFlag` of zstd's interface. */
const LEVEL_PARAMETER = 100;
const CONTENT_SIZE_PARAMETER = 200;

/** `ZSTD_e_end`. */
const END = 2;

/** Encoders of so many levels are kept. */
const MAX_LEVELS = 8;

interface ZstdOptions {
  readonly params: Readonly<Record<number, number>>;
}

/** Native from Node 22.15 on, which is later than the types this is built with. */
interface NativeZstd {
  readonly createZstdCompress?: (options: ZstdOptions) => object;
  readonly zstdCompressSync?: (bytes: Uint8Array, options: ZstdOptions & StreamRunOptions) => Uint8Array;
  readonly createZstdDecompress?: () => object;
  readonly zstdDecompressSync?: StreamRun;
}

const { createZstdCompress, zstdCompressSync, createZstdDecompress, zstdDecompressSync } =
  nodeZlib as unknown as NativeZstd;

const decompress =
  createZstdDecompress &&
  zstdDecompressSync &&
  keepStream({
    create: createZstdDecompress,
    finish: END,
    isReset: true,
    runOnce: zstdDecompressSync,
  });

/**
 * `zstd` of numcodecs, by Node where it has its own, else by numcodecs.js. What they write differs, and so does which
 * levels they know (see {@link encodeZstd}); `encoder-revision.ts` tells their chunks apart.
 */
export const zstd: Codec = {
  async decode(bytes, step) {
    const length = measureZstd(bytes);
    if (length === undefined) throw corrupt(`zstd: expected whole frames, received something else`);
    const { min, max, frames } = length;
    const planned = frames === 1 ? step.decodedByteLength : null;
    if (min === max) checkDecodedLength("zstd", max, step);
    else if (min > step.maxDecodedByteLength) checkDecodedLength("zstd", min, step);
    else if (planned === null && max > step.maxDecodedByteLength + MAX_UNANNOUNCED_BYTES) {
      throw corrupt(`zstd: may decode to ${max} bytes, expected at most ${step.maxDecodedByteLength}`);
    }
    if (max === 0) return new Uint8Array(0);
    // Not every Node that has zstd goes on behind the first frame.
    if (decompress !== undefined && frames === 1) {
      const decodedByteLength = min === max ? max : step.decodedByteLength;
      return inflate("zstd", decompress, bytes, { ...step, decodedByteLength });
    }
    // numcodecs.js allocates what may come out before it looks at what does.
    const known = min === max || planned === null ? bytes : withContentSize(bytes, planned);
    try {
      return await runNumcodecs("zstd", "decode", {}, known);
    } catch (error) {
      if (error instanceof ZpublishError) throw error;
      throw corrupt(`zstd: ${messageOf(error)}`, error);
    }
  },
  encode(bytes, { codec }) {
    if (encodeZstd !== undefined) return encodeZstd(bytes, Number(codec.level));
    checkEncodable("zstd", bytes);
    return runNumcodecs("zstd", "encode", { level: codec.level }, bytes);
  },
};

/** By level. */
const encoderOf =
  createZstdCompress &&
  zstdCompressSync &&
  keepStreams(MAX_LEVELS, (level) => {
    const params = { [LEVEL_PARAMETER]: level, [CONTENT_SIZE_PARAMETER]: 1 };
    return {
      create: () => createZstdCompress({ params }),
      finish: END,
      isReset: false,
      runOnce: (bytes, options) => zstdCompressSync(bytes, { ...options, params }),
    };
  });

/**
 * Encodes one frame that says its content size, by Node; undefined where Node has no zstd. Then numcodecs.js encodes, which
 * takes levels of 0 and below for 1.
 *
 * The level is as zstd means it and numcodecs from 0.13 on: 0 is 3, below 0 is faster than 1. What is beyond
 * -131072 or 22 is as that. Node takes -1 for "not said", which would be 3: it is written as -2.
 * @returns A view of a longer buffer.
 * @throws ZpublishError `codec-failed`
 */
export const encodeZstd =
  encoderOf &&
  ((bytes: Uint8Array, level: number): Uint8Array => {
    const known = level === -1 ? -2 : Math.min(Math.max(level, MIN_LEVEL), MAX_LEVEL);
    try {
      return encoderOf(known)(bytes, { chunkSize: compressBound(bytes.length) });
    } catch (error) {
      throw new ZpublishError("codec-failed", `zstd: ${messageOf(error)}`, { cause: error });
    }
  });

/** See {@link loadNumcodecs}; undefined where Node has zstd itself. */
export const loadZstd = encodeZstd === undefined ? () => loadNumcodecs("zstd") : undefined;

/** As `ZSTD_compressBound` or more: with less room zstd works block by block, which is slower and may be other bytes. */
function compressBound(byteLength: number): number {
  return byteLength + (byteLength >>> 8) + 128;
}
