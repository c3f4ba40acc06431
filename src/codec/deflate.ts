import nodeZlib from "node:zlib";
import { messageOf, ZpublishError } from "../errors.js";
import type { CodecStep } from "../zarr/codec-step.js";
import { type Codec, corrupt, plainBytes } from "./codec.js";

/** Place of the operating system in a gzip header (RFC 1952, section 2.3.1). */
const OS_PLACE = 9;
const OS_UNKNOWN = 255;

/** The formats of deflated data: RFC 1950 and RFC 1952. */
type DeflateFormat = "zlib" | "gzip";

/**
 * Deflates with `node:zlib` in one pass, with numcodecs' window (32 KiB) and memory level (8).
 *
 * The output depends on the zlib in Node only (see `encoder-revision.ts`): the header of `gzip` names neither time nor operating system.
 * @param level 0 to 9, or -1, which is 6.
 * @returns A view of a longer buffer.
 * @throws ZpublishError `codec-failed`
 */
export function deflate(format: DeflateFormat, bytes: Uint8Array, level: number): Uint8Array {
  const options = { level, chunkSize: deflateBound(bytes.length) };
  try {
    if (format === "zlib") return plainBytes(nodeZlib.deflateSync(bytes, options));
    const encoded = plainBytes(nodeZlib.gzipSync(bytes, options));
    // Node writes the system that it was built for; numcodecs and Python write "unknown".
    encoded[OS_PLACE] = OS_UNKNOWN;
    return encoded;
  } catch (error) {
    throw new ZpublishError("codec-failed", `${format}: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * Upper bound of a deflated length (zlib's own for any parameters, and some room), so that zlib runs once and nothing is
 * copied. Level 0 cuts its blocks by the room it is given: this formula decides which bytes are written.
 */
function deflateBound(byteLength: number): number {
  return byteLength + (byteLength >>> 5) + (byteLength >>> 7) + (byteLength >>> 11) + 128;
}

/** `zlib` of numcodecs (RFC 1950) by Node. */
export const zlib: Codec = {
  decode: (bytes, step) => inflate("zlib", nodeZlib.inflateSync, bytes, step),
  encode: (bytes, { codec }) => deflate("zlib", bytes, Number(codec.level)),
};

/** One of the decoders of `node:zlib`. */
export type InflateSync = (
  bytes: Uint8Array,
  options: { readonly maxOutputLength: number; readonly chunkSize: number },
) => Uint8Array;

/**
 * Runs one of Node's decoders with a bound on its output.
 * @throws ZpublishError `corrupt-chunk`
 */
export function inflate(
  id: string,
  inflateSync: InflateSync,
  bytes: Uint8Array,
  { decodedByteLength, maxDecodedByteLength }: CodecStep,
): Uint8Array {
  // With a little room zlib needs one pass; with none it needs an empty second one.
  const chunkSize = decodedByteLength === null ? 2 ** 18 : decodedByteLength + 64;
  try {
    // Each `…Sync` call makes a stream: a thread terminated at that instant aborts the process ("close before init"), which is accepted.
    return plainBytes(inflateSync(bytes, { maxOutputLength: Math.max(1, maxDecodedByteLength), chunkSize }));
  } catch (error) {
    if ((error as { code?: unknown }).code === "ERR_BUFFER_TOO_LARGE") {
      throw corrupt(`${id}: decodes to more than the ${maxDecodedByteLength} bytes expected`, error);
    }
    throw corrupt(`${id}: ${messageOf(error)}`, error);
  }
}

/** `gzip` of numcodecs (RFC 1952) by Node: any number of members, and zeros behind them. */
export const gzip: Codec = {
  decode: (bytes, step) => inflate("gzip", nodeZlib.gunzipSync, bytes, step),
  encode: (bytes, { codec }) => deflate("gzip", bytes, Number(codec.level)),
};
