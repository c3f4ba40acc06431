import nodeZlib from "node:zlib";
import { messageOf } from "../errors.js";
import type { CodecStep } from "../zarr/codec-step.js";
import { type Codec, corrupt, plainBytes } from "./codec.js";
import { deflate } from "./deflate.js";

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
