import nodeZlib from "node:zlib";
import { messageOf, ZpublishError } from "../errors.js";
import { keepStreams } from "./kept-stream.js";

const { constants, createDeflate, createGzip, deflateSync, gzipSync } = nodeZlib;

/** Place of the operating system in a gzip header (RFC 1952, section 2.3.1). */
const OS_PLACE = 9;
const OS_UNKNOWN = 255;

/** What wraps the same deflated data: RFC 1950 and RFC 1952. */
export type DeflateFormat = "zlib" | "gzip";

/**
 * Deflates by `node:zlib`, in one pass, with the window (32 KiB) and memory level (8) that numcodecs has.
 *
 * Which bytes come out depends on the zlib that Node is built with and, in Chromium's, on what the processor can do: see
 * `encoder-revision.ts`. Nothing else may have a say: the header of `gzip` names no time and no operating system.
 * @param level 0 to 9, or -1, which zlib takes for 6.
 * @returns A view of a longer buffer.
 * @throws ZpublishError `codec-failed`
 */
export function deflate(format: DeflateFormat, bytes: Uint8Array, level: number): Uint8Array {
  try {
    const encoded = ENCODERS[format](level)(bytes, { chunkSize: deflateBound(bytes.length) });
    // Node writes the system it was built for; numcodecs, as Python does, this.
    if (format === "gzip") encoded[OS_PLACE] = OS_UNKNOWN;
    return encoded;
  } catch (error) {
    throw new ZpublishError("codec-failed", `${format}: ${messageOf(error)}`, { cause: error });
  }
}

/** Of zlib's encoder: twice what it refers back to (32 KiB). */
const WINDOW_BYTES = 2 ** 16;

/** More than zlib has. */
const MAX_LEVELS = 24;

const ENCODERS = {
  gzip: keepEncoders(createGzip, gzipSync),
  zlib: keepEncoders(createDeflate, deflateSync),
};

function keepEncoders(create: typeof createGzip | typeof createDeflate, sync: typeof gzipSync) {
  return keepStreams(MAX_LEVELS, (level) => ({
    create: () => create({ level }),
    finish: constants.Z_FINISH,
    isReset: true,
    windowBytes: WINDOW_BYTES,
    runOnce: (bytes, options) => sync(bytes, { ...options, level }),
  }));
}

/**
 * More than deflated data can be long (zlib's own bound for any parameters, and some room), so that zlib runs once and
 * nothing is copied. Level 0 cuts its blocks by the room it is given: this formula is part of what is written.
 */
function deflateBound(byteLength: number): number {
  return byteLength + (byteLength >>> 5) + (byteLength >>> 7) + (byteLength >>> 11) + 128;
}
