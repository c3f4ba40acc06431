import nodeZlib from "node:zlib";
import type { Codec } from "./codec.js";
import { deflate } from "./deflate.js";
import { keepStream } from "./kept-stream.js";
import { inflate } from "./zlib.js";

const { constants, createGunzip, gunzipSync } = nodeZlib;

const gunzip = keepStream({
  create: createGunzip,
  finish: constants.Z_FINISH,
  isReset: true,
  runOnce: gunzipSync,
});

/** `gzip` of numcodecs (RFC 1952): any number of members, and zeros behind them. By Node both ways. */
export const gzip: Codec = {
  decode: (bytes, step) => inflate("gzip", gunzip, bytes, step),
  encode: (bytes, { codec }) => deflate("gzip", bytes, Number(codec.level)),
};
