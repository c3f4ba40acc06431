import nodeZlib from "node:zlib";
import type { Codec } from "./codec.js";
import { deflate } from "./deflate.js";
import { inflate } from "./zlib.js";

/** `gzip` of numcodecs (RFC 1952) by Node: any number of members, and zeros behind them. */
export const gzip: Codec = {
  decode: (bytes, step) => inflate("gzip", nodeZlib.gunzipSync, bytes, step),
  encode: (bytes, { codec }) => deflate("gzip", bytes, Number(codec.level)),
};
