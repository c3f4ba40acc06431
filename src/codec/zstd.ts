import nodeZlib from "node:zlib";
import { messageOf, ZpublishError } from "../errors.js";
import { type Codec, checkDecodedLength, checkEncodable, corrupt, plainBytes } from "./codec.js";
import { type InflateSync, inflate } from "./deflate.js";

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
 * Runs the Zstandard of numcodecs.js.
 * @param config With the `level`, to encode.
 * @returns Bytes that own their buffer, outside the WebAssembly heap.
 * @throws Error with the library's message if it refuses the bytes; ZpublishError `codec-failed` if it broke.
 */
async function runNumcodecsZstd(
  operation: "encode" | "decode",
  bytes: Uint8Array,
  config: object = {},
): Promise<Uint8Array> {
  const module = await loadModule();
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
export async function loadNumcodecsZstd(): Promise<void> {
  await loadModule();
}

function loadModule(): Promise<NumcodecsModule> {
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

const FRAME_MAGIC = 0xfd2fb528;
/** The sixteen magics of skippable frames: 0x184D2A5?. */
const SKIPPABLE_MAGIC = 0x184d2a50;
const MAX_BLOCK_BYTES = 128 * 1024;

/** The decoded length of a zstd input, as far as it can be known without decoding. */
interface ZstdLength {
  /** Lower bound, in bytes. */
  readonly min: number;
  /** Upper bound, in bytes; equal to `min` if every frame says its content size. */
  readonly max: number;
  /** Number of frames, skippable ones included. */
  readonly frames: number;
}

/**
 * Measures a zstd input by its frames and blocks (RFC 8878, section 3.1), so that nothing is decoded that would not fit.
 * Undefined if it is not whole frames.
 */
export function measureZstd(bytes: Uint8Array): ZstdLength | undefined {
  if (bytes.length === 0) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let min = 0;
  let max = 0;
  let frames = 0;
  let position = 0;
  while (position < bytes.length) {
    if (position + 8 > bytes.length) return undefined;
    frames++;
    const magic = view.getUint32(position, true);
    if ((magic & 0xfffffff0) >>> 0 === SKIPPABLE_MAGIC) {
      position += 8 + view.getUint32(position + 4, true);
      if (position > bytes.length) return undefined;
      continue;
    }
    if (magic !== FRAME_MAGIC) return undefined;
    const frame = measureFrame(view, position + 4);
    if (frame === undefined) return undefined;
    min += frame.min;
    max += frame.max;
    position = frame.end;
  }
  return { min, max, frames };
}

/** `Frame_Content_Size_flag` of 2: the size is in four bytes. */
const SIZE_FLAG_4 = 2 << 6;

/**
 * Returns the frame with its content size in the header (RFC 8878, section 3.1.1.1): a decoder then allocates no more than that,
 * and refuses any other length.
 * @param bytes One frame without a content size.
 */
function withContentSize(bytes: Uint8Array, contentSize: number): Uint8Array {
  // It follows the magic, the descriptor, the window descriptor and the dictionary id.
  const place = 4 + 1 + 1 + [0, 1, 2, 4][bytes[4]! & 3]!;
  const sized = new Uint8Array(bytes.length + 4);
  sized.set(bytes.subarray(0, place));
  sized[4] = (bytes[4]! & 0x3f) | SIZE_FLAG_4;
  new DataView(sized.buffer).setUint32(place, contentSize, true);
  sized.set(bytes.subarray(place), place + 4);
  return sized;
}

function measureFrame(
  view: DataView,
  begin: number,
): (Omit<ZstdLength, "frames"> & { end: number }) | undefined {
  const total = view.byteLength;
  const descriptor = view.getUint8(begin);
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const hasChecksum = (descriptor & 0x04) !== 0;
  const sizeFlag = descriptor >>> 6;
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3]!;
  const sizeBytes = sizeFlag === 0 ? (isSingleSegment ? 1 : 0) : 2 ** sizeFlag;

  let position = begin + 1 + (isSingleSegment ? 0 : 1) + dictionaryBytes;
  if (position + sizeBytes > total) return undefined;
  let contentSize: number | undefined;
  if (sizeBytes === 1) contentSize = view.getUint8(position);
  else if (sizeBytes === 2) contentSize = view.getUint16(position, true) + 256;
  else if (sizeBytes === 4) contentSize = view.getUint32(position, true);
  else if (sizeBytes === 8) contentSize = Number(view.getBigUint64(position, true));
  position += sizeBytes;

  let min = 0;
  let max = 0;
  for (;;) {
    if (position + 3 > total) return undefined;
    const header = view.getUint16(position, true) | (view.getUint8(position + 2) << 16);
    const kind = (header >>> 1) & 3;
    const size = header >>> 3;
    position += 3;
    if (kind === 3 || size > MAX_BLOCK_BYTES) return undefined;
    // Raw blocks hold their bytes, RLE blocks one byte, compressed blocks decode to as much as a block may.
    position += kind === 1 ? 1 : size;
    if (position > total) return undefined;
    if (kind !== 2) min += size;
    max += kind === 2 ? MAX_BLOCK_BYTES : size;
    if ((header & 1) !== 0) break;
  }
  const end = position + (hasChecksum ? 4 : 0);
  if (end > total) return undefined;
  if (contentSize === undefined) return { min, max, end };
  if (contentSize < min || contentSize > max) return undefined;
  return { min: contentSize, max: contentSize, end };
}

/**
 * Bytes beyond the planned length that may be allocated if neither frame nor plan says the size. Blocks only say how much each may
 * decode to.
 */
const MAX_UNANNOUNCED_BYTES = 64 * 2 ** 20;

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
