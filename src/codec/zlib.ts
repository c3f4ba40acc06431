import nodeZlib from "node:zlib";
import { messageOf } from "../errors.js";
import type { CodecStep } from "../zarr/encoding-plan.js";
import { type Codec, corrupt } from "./codec.js";
import { deflate } from "./deflate.js";
import { plainBytes } from "./plain-bytes.js";

/** `zlib` of numcodecs (RFC 1950). By Node both ways. */
export const zlib: Codec = {
  decode: (bytes, step) => inflate("zlib", nodeZlib.inflateSync, bytes, step),
  encode: (bytes, { codec }) => deflate("zlib", bytes, Number(codec.level)),
};

/** What Node has for every format. */
export type Inflater = (
  bytes: Uint8Array,
  options: { readonly maxOutputLength: number; readonly chunkSize: number },
) => Uint8Array;

/**
 * Runs one of Node's inflaters with a bound on what comes out.
 * @throws ZpublishError `corrupt-chunk`
 */
export function inflate(
  id: string,
  inflateSync: Inflater,
  bytes: Uint8Array,
  { decodedByteLength, maxDecodedByteLength }: CodecStep,
): Uint8Array {
  // One buffer with a little room makes one pass of it; an exact one is followed by an empty second.
  const chunkSize = decodedByteLength === null ? 2 ** 18 : decodedByteLength + 64;
  try {
    return plainBytes(inflateSync(bytes, { maxOutputLength: Math.max(1, maxDecodedByteLength), chunkSize }));
  } catch (error) {
    if ((error as { code?: unknown }).code === "ERR_BUFFER_TOO_LARGE") {
      throw corrupt(`${id}: decodes to more than the ${maxDecodedByteLength} bytes expected`, error);
    }
    throw corrupt(`${id}: ${messageOf(error)}`, error);
  }
}
