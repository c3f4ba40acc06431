import nodeZlib from "node:zlib";
import { messageOf } from "../errors.js";
import type { CodecStep } from "../zarr/encoding-plan.js";
import { type Codec, corrupt } from "./codec.js";
import { deflate } from "./deflate.js";
import { keepStream, type StreamRun } from "./kept-stream.js";

const { constants, createInflate, inflateSync } = nodeZlib;

/** Decodes RFC 1950; for {@link inflate}. */
export const inflateZlib = keepStream({
  create: createInflate,
  finish: constants.Z_FINISH,
  isReset: true,
  runOnce: inflateSync,
});

/** `zlib` of numcodecs (RFC 1950). By Node both ways. */
export const zlib: Codec = {
  decode: (bytes, step) => inflate("zlib", inflateZlib, bytes, step),
  encode: (bytes, { codec }) => deflate("zlib", bytes, Number(codec.level)),
};

/**
 * Runs one of Node's decoders with a bound on what comes out.
 * @throws ZpublishError `corrupt-chunk`
 */
export function inflate(
  id: string,
  run: StreamRun,
  bytes: Uint8Array,
  { decodedByteLength, maxDecodedByteLength }: CodecStep,
): Uint8Array {
  // One buffer with a little room makes one pass of it; an exact one is followed by an empty second.
  const chunkSize = decodedByteLength === null ? 2 ** 18 : decodedByteLength + 64;
  try {
    return run(bytes, { maxOutputLength: Math.max(1, maxDecodedByteLength), chunkSize });
  } catch (error) {
    if ((error as { code?: unknown }).code === "ERR_BUFFER_TOO_LARGE") {
      throw corrupt(`${id}: decodes to more than the ${maxDecodedByteLength} bytes expected`, error);
    }
    throw corrupt(`${id}: ${messageOf(error)}`, error);
  }
}
