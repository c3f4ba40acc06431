import nodeZlib from "node:zlib";
import { messageOf, ZpublishError } from "../errors.js";
import { runNow } from "../event-loop/cooperative-task.js";
import { type Codec, checkDecodedLength, checkEncodable, corrupt, plainBytes } from "./codec.js";
import { type InflateSync, inflate } from "./deflate.js";
import { decodeZstdSteps } from "./plain/zstd-decoder.js";
import { measureZstd, withContentSize } from "./plain/zstd-frame.js";

/*
 * The only file that loads numcodecs.js, whose Zstandard stands in for Node's below 22.15. Measured of version 0.3.2:
 *
 * - It is WebAssembly with one heap per thread of at most 2 GiB that grows and never shrinks; encoding 512 MiB works, 900 MB ends
 *   in a trap. A trap leaves the heap damaged: every later call fails or, worse, answers wrongly. So the module is loaded
 *   again after one.
 * - It leaks its input whenever it refuses it, and some of its stack: the 1,924th refusal of a small frame was a trap.
 */

interface NumcodecsCodec {
  encode(bytes: Uint8Array): Uint8Array | Promise<Uint8Array>;
  decode(bytes: Uint8Array): Uint8Array | Promise<Uint8Array>;
}

interface NumcodecsModule {
  readonly default: { fromConfig(config: object): NumcodecsCodec };
}

let loading: Promise<NumcodecsModule> | undefined;
let reloads = 0;
let leakedBytes = 0;
/** By the module that is loaded now. */
let refusals = 0;
const MAX_REFUSALS = 500;
const MAX_LEAKED_BYTES = 256 * 2 ** 20;

/**
 * Whether this thread's heap is damaged or has leaked much, or could not be loaded. Such a worker ends before its next
 * task, which is the only way to give the memory back.
 */
export function isNumcodecsWornOut(): boolean {
  return reloads > 0 || leakedBytes > MAX_LEAKED_BYTES;
}

/**
 * Runs the Zstandard of numcodecs.js. @returns Bytes outside the WebAssembly heap.
 * @throws Error with the library's message if it refuses the bytes; ZpublishError `codec-failed` if it broke.
 */
async function runNumcodecsZstd(
  operation: "encode" | "decode",
  bytes: Uint8Array,
  config: object = {},
): Promise<Uint8Array> {
  const module = await loadNumcodecsZstd();
  try {
    return await module.default.fromConfig(config)[operation](bytes);
  } catch (error) {
    leakedBytes += bytes.length;
    // Only what the codec itself says is an Error and nothing more; traps and aborts are of other classes.
    const isRefusal = error instanceof Error && error.constructor === Error;
    if (!isRefusal || ++refusals >= MAX_REFUSALS) {
      loading = undefined;
      refusals = 0;
      reloads++;
    }
    if (isRefusal) throw error;
    throw new ZpublishError(
      "codec-failed",
      `zstd: could not ${operation} ${bytes.length} bytes: ${messageOf(error)}`,
      { cause: error },
    );
  }
}

/**
 * Loads the codec before it is needed. Node.js 20 leaves a file's descriptor open if a thread dies while it imports the file, so a
 * worker imports nothing while it handles data that may end it.
 */
export function loadNumcodecsZstd(): Promise<NumcodecsModule> {
  if (loading !== undefined) return loading;
  // The query makes another module of the same file, with a heap of its own.
  const query = reloads === 0 ? "" : `?${reloads}`;
  const module = import(`${import.meta.resolve("numcodecs/zstd")}${query}`) as Promise<NumcodecsModule>;
  loading = module;
  module.catch(() => {
    // For want of descriptors, for example. Node.js may remember it: a worker ends before its next task.
    loading = undefined;
    reloads++;
  });
  return module;
}

/**
 * Bytes beyond the planned length that may be allocated if neither frame nor plan says the size. Blocks only say how much each may
 * decode to.
 */
const MAX_UNANNOUNCED_BYTES = 64 * 2 ** 20;

/** Decoded bytes from which on numcodecs.js is not used: its heap, which stays, would have them and the encoded ones. */
const MAX_HEAP_BYTES = 64 * 2 ** 20;
/** Bit of a frame header's first byte (RFC 8878, section 3.1.1.1.1). */
const CHECKSUM_FLAG = 4;

const MIN_LEVEL = -131072;
const MAX_LEVEL = 22;

/** `ZSTD_c_compressionLevel` and `ZSTD_c_contentSizeFlag` of zstd's interface. */
const LEVEL_PARAMETER = 100;
const CONTENT_SIZE_PARAMETER = 200;

/** Native from Node 22.15 on, which is later than the types this is built with. */
interface NativeZstd {
  readonly zstdCompressSync?: (
    bytes: Uint8Array,
    options: { readonly params: Readonly<Record<number, number>>; readonly chunkSize: number },
  ) => Uint8Array;
  readonly zstdDecompressSync?: InflateSync;
}

const { zstdCompressSync, zstdDecompressSync } = nodeZlib as unknown as NativeZstd;

/**
 * `zstd` of numcodecs, by Node if it has one, else by numcodecs.js. Both write different bytes and know different levels (see
 * {@link encodeZstd}); `encoder-revision.ts` tells their chunks apart.
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
    // Some versions of Node stop after the first frame without an error.
    if (zstdDecompressSync !== undefined && frames === 1) {
      const decodedByteLength = min === max ? max : step.decodedByteLength;
      return inflate("zstd", zstdDecompressSync, bytes, { ...step, decodedByteLength });
    }
    if (min === max && max > MAX_HEAP_BYTES && frames === 1 && (bytes[4]! & CHECKSUM_FLAG) === 0)
      return runNow(decodeZstdSteps(bytes, max, undefined, max));
    // numcodecs.js allocates the upper bound before it decodes.
    const known = min === max || planned === null ? bytes : withContentSize(bytes, planned);
    try {
      return await runNumcodecsZstd("decode", known);
    } catch (error) {
      if (error instanceof ZpublishError) throw error;
      throw corrupt(`zstd: ${messageOf(error)}`, error);
    }
  },
  encode(bytes, { codec }) {
    if (encodeZstd !== undefined) return encodeZstd(bytes, Number(codec.level));
    checkEncodable("zstd", bytes);
    return runNumcodecsZstd("encode", bytes, { level: codec.level });
  },
};

/**
 * Encodes one frame with its content size by Node; undefined if Node has no zstd. Then numcodecs.js encodes, for which levels of 0
 * and below are 1.
 *
 * Levels are those of zstd, and of numcodecs from 0.13 on: 0 is 3, levels below 0 are faster than 1, and levels out of bounds are
 * -131072 or 22. Node takes -1 for "default", which is 3: -2 is used instead.
 * @returns A view of a longer buffer.
 * @throws ZpublishError `codec-failed`
 */
export const encodeZstd =
  zstdCompressSync &&
  ((bytes: Uint8Array, level: number): Uint8Array => {
    const known = level === -1 ? -2 : Math.min(Math.max(level, MIN_LEVEL), MAX_LEVEL);
    try {
      return plainBytes(
        zstdCompressSync(bytes, {
          params: { [LEVEL_PARAMETER]: known, [CONTENT_SIZE_PARAMETER]: 1 },
          chunkSize: compressBound(bytes.length),
        }),
      );
    } catch (error) {
      throw new ZpublishError("codec-failed", `zstd: ${messageOf(error)}`, { cause: error });
    }
  });

/** As {@link loadNumcodecsZstd}; undefined if Node has zstd itself. */
export const loadZstd = encodeZstd === undefined ? loadNumcodecsZstd : undefined;

/** At least `ZSTD_compressBound`: with less room zstd works block by block, which is slower and may write other bytes. */
function compressBound(byteLength: number): number {
  return byteLength + (byteLength >>> 8) + 128;
}
