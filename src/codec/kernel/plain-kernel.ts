import { unshuffleBits } from "../plain/bit-shuffle.js";
import { decodeBlosclzBlock } from "../plain/blosclz-block.js";
import { shuffleBytes, unshuffleBytes } from "../plain/byte-shuffle.js";
import { decodeLz4Block } from "../plain/lz4-block.js";
import type { Kernel } from "./kernel.js";
import { OWN_MEMORY } from "./kernel-memory.js";

/** The kernel in plain JavaScript: slow, without encoders, and nothing in it that the other has. */
export const PLAIN_KERNEL: Kernel = Object.freeze({
  memory: OWN_MEMORY,
  lease: () => OWN_MEMORY,
  decodeLz4: decodeLz4Block,
  decodeBlosclz: decodeBlosclzBlock,
  shuffleBytes,
  unshuffleBytes,
  unshuffleBits,
});
