import { type Codec, checkDecodedLength, corrupt } from "./codec.js";
import { framedBlock, framedHeader } from "./hdf5-lz4.js";
import { currentKernel } from "./kernel/kernel.js";
import { type KernelMemory, OWN_MEMORY } from "./kernel/kernel-memory.js";
import { zstd } from "./zstd.js";

const HEADER_BYTES = 12;
const LENGTH_BYTES = 4;
/** Items are shuffled in multiples of it; what is behind the last multiple stays as it is. */
const ITEM_MULTIPLE = 8;
/** `BSHUF_TARGET_BLOCK_SIZE_B` and `BSHUF_MIN_RECOMMEND_BLOCK`. */
const DEFAULT_BLOCK_BYTES = 8192;
const MIN_DEFAULT_ITEMS = 128;

/**
 * Bitshuffle as HDF5's filter 32008 writes it: blocks of shuffled bits, each compressed by itself with `cname` (`lz4`, `zstd`, or
 * null for none), in items of `elementsize` bytes. Uncompressed blocks have `blocksize` items; 0 is the default.
 */
export const hdf5Bitshuffle: Codec = {
  async decode(bytes, step, memory = OWN_MEMORY) {
    const itemSize = Number(step.codec.elementsize);
    const { cname } = step.codec;
    const isFramed = cname !== null;
    const { byteLength, blockBytes } = isFramed
      ? framedHeader("hdf5-bitshuffle", bytes)
      : {
          byteLength: bytes.length,
          blockBytes: blockItems(Number(step.codec.blocksize), itemSize) * itemSize,
        };
    checkDecodedLength("hdf5-bitshuffle", byteLength, step);
    const groupBytes = itemSize * ITEM_MULTIPLE;
    if (byteLength % itemSize !== 0 || blockBytes % groupBytes !== 0 || blockBytes === 0) {
      throw corrupt(
        `hdf5-bitshuffle: expected whole items of ${itemSize} bytes in blocks of a multiple of ${groupBytes}, received ${byteLength} bytes in blocks of ${blockBytes}`,
      );
    }
    const decoded = memory.allocate(byteLength);
    const shuffledEnd = byteLength - (byteLength % groupBytes);
    const scratch =
      isFramed && cname !== "zstd" ? memory.allocate(Math.min(blockBytes, shuffledEnd)) : undefined;
    let from = isFramed ? HEADER_BYTES : 0;
    for (let to = 0; to < shuffledEnd; ) {
      const target = decoded.subarray(to, Math.min(to + blockBytes, shuffledEnd));
      const block = isFramed
        ? framedBlock("hdf5-bitshuffle", bytes, from)
        : bytes.subarray(from, from + target.length);
      const shuffled = !isFramed
        ? block
        : scratch !== undefined
          ? decodeLz4(block, scratch.subarray(0, target.length), from)
          : await decodeZstd(block, target.length, memory);
      currentKernel().unshuffleBits(shuffled, target, itemSize);
      from += (isFramed ? LENGTH_BYTES : 0) + block.length;
      to += target.length;
    }
    const rest = bytes.subarray(from);
    if (rest.length !== byteLength - shuffledEnd) {
      throw corrupt(
        `hdf5-bitshuffle: expected ${byteLength - shuffledEnd} bytes behind the blocks, received ${rest.length}`,
      );
    }
    decoded.set(rest, shuffledEnd);
    return decoded;
  },
};

/** Returns the items of an uncompressed block (`bshuf_default_block_size`). */
function blockItems(blockSize: number, itemSize: number): number {
  if (blockSize > 0) return blockSize;
  const whole = Math.floor(DEFAULT_BLOCK_BYTES / itemSize / ITEM_MULTIPLE) * ITEM_MULTIPLE;
  return Math.max(whole, MIN_DEFAULT_ITEMS);
}

function decodeLz4(block: Uint8Array, target: Uint8Array, at: number): Uint8Array {
  if (currentKernel().decodeLz4(block, target)) return target;
  throw corrupt(`hdf5-bitshuffle: the block at byte ${at} does not decode to ${target.length} bytes`);
}

async function decodeZstd(block: Uint8Array, byteLength: number, memory: KernelMemory): Promise<Uint8Array> {
  const step = {
    codec: { id: "zstd" },
    decodedByteLength: byteLength,
    maxDecodedByteLength: byteLength,
    itemSize: 1,
  };
  const decoded = await zstd.decode(block, step, memory);
  checkDecodedLength("hdf5-bitshuffle", decoded.length, step);
  return decoded;
}
