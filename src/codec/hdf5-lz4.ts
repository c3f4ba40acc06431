import { type Codec, checkDecodedLength, corrupt } from "./codec.js";
import { currentKernel } from "./kernel/kernel.js";
import { OWN_MEMORY } from "./kernel/kernel-memory.js";

/** Decoded length (uint64) and block size (uint32), big-endian. */
const HEADER_BYTES = 12;
const LENGTH_BYTES = 4;

/** LZ4 as HDF5's filter 32004 frames it: blocks with their lengths before them; those that did not get shorter are copies. */
export const hdf5Lz4: Codec = {
  decode(bytes, step, memory = OWN_MEMORY) {
    const { byteLength, blockBytes } = framedHeader("hdf5-lz4", bytes);
    checkDecodedLength("hdf5-lz4", byteLength, step);
    if (blockBytes === 0 && byteLength > 0)
      throw corrupt("hdf5-lz4: expected blocks of some bytes, received 0");
    const decoded = memory.allocate(byteLength);
    const kernel = currentKernel();
    let from = HEADER_BYTES;
    for (let to = 0; to < byteLength; ) {
      const block = framedBlock("hdf5-lz4", bytes, from);
      const target = decoded.subarray(to, Math.min(to + blockBytes, byteLength));
      if (block.length === target.length) target.set(block);
      else if (!kernel.decodeLz4(block, target)) {
        throw corrupt(`hdf5-lz4: the block at byte ${from} does not decode to ${target.length} bytes`);
      }
      from += LENGTH_BYTES + block.length;
      to += target.length;
    }
    return decoded;
  },
};

/** Reads the header that both LZ4 and bitshuffle have in HDF5. @throws ZpublishError `corrupt-chunk` if it is cut off. */
export function framedHeader(
  id: string,
  bytes: Uint8Array,
): { readonly byteLength: number; readonly blockBytes: number } {
  if (bytes.length < HEADER_BYTES) {
    throw corrupt(`${id}: expected a header of ${HEADER_BYTES} bytes, received ${bytes.length}`);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  return { byteLength: view.getUint32(0) * 2 ** 32 + view.getUint32(4), blockBytes: view.getUint32(8) };
}

/** Returns a block that has its length (uint32, big-endian) before it. @throws ZpublishError `corrupt-chunk` if it is cut off. */
export function framedBlock(id: string, bytes: Uint8Array, at: number): Uint8Array {
  const begin = at + LENGTH_BYTES;
  const length =
    begin <= bytes.length
      ? new DataView(bytes.buffer, bytes.byteOffset).getUint32(at)
      : Number.POSITIVE_INFINITY;
  if (begin + length > bytes.length) {
    throw corrupt(`${id}: expected a whole block at byte ${at}, received a chunk of ${bytes.length} bytes`);
  }
  return bytes.subarray(begin, begin + length);
}
