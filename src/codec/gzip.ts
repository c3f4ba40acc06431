import nodeZlib from "node:zlib";
import type { Codec } from "./codec.js";
import { checkEncodable, runNumcodecs } from "./numcodecs-module.js";
import { inflate } from "./zlib.js";

/** Place of the four bytes of the modification time in a gzip header (RFC 1952, section 2.3). */
const TIME_BEGIN = 4;
const TIME_END = 8;

/** `gzip` of numcodecs (RFC 1952). Decoded by Node, encoded by numcodecs.js: see there. */
export const gzip: Codec = {
  decode: (bytes, step) => inflate("gzip", nodeZlib.gunzipSync, bytes, step),
  async encode(bytes, { codec }) {
    checkEncodable("gzip", bytes);
    const encoded = await runNumcodecs("gzip", "encode", { level: codec.level }, bytes);
    // The library writes the time of day here; "not available" is the same every time.
    encoded.fill(0, TIME_BEGIN, TIME_END);
    return encoded;
  },
};
