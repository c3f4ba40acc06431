import { type Codec, checkDecodedLength, checkEncodable, corrupt } from "./codec.js";
import { currentKernel } from "./kernel/kernel.js";
import { OWN_MEMORY } from "./kernel/kernel-memory.js";

const HEADER_BYTES = 4;
/** `LZ4_ACCELERATION_MAX` */
const MAX_ACCELERATION = 65_537;

/** `lz4` of numcodecs: the decoded length (uint32, little-endian), then one LZ4 block. */
export const lz4: Codec = {
  decode(bytes, step, memory = OWN_MEMORY) {
    if (bytes.length < HEADER_BYTES) {
      throw corrupt(`lz4: expected a header of ${HEADER_BYTES} bytes, received ${bytes.length}`);
    }
    const byteLength = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
    checkDecodedLength("lz4", byteLength, step);
    const decoded = memory.allocate(byteLength);
    // A block of no bytes is a single token of zero.
    const isEmpty = byteLength === 0 && bytes.length <= HEADER_BYTES + 1;
    if (!isEmpty && !currentKernel().decodeLz4(bytes.subarray(HEADER_BYTES), decoded)) {
      throw corrupt(`lz4: the block does not decode to the ${byteLength} bytes its header announces`);
    }
    return decoded;
  },
  encode(bytes, { codec }, memory = OWN_MEMORY) {
    checkEncodable("lz4", bytes);
    // As in LZ4: too small a value is 1, too large a value the largest.
    const acceleration = Math.min(Math.max(1, codec.acceleration as number), MAX_ACCELERATION);
    const target = memory.allocate(HEADER_BYTES + compressBound(bytes.length));
    new DataView(target.buffer, target.byteOffset).setUint32(0, bytes.length, true);
    const length = currentKernel().encodeLz4(bytes, target.subarray(HEADER_BYTES), acceleration);
    return target.subarray(0, HEADER_BYTES + length);
  },
};

/** Upper bound of a block (LZ4 block format: 255 literals cost one byte, and some room). */
function compressBound(byteLength: number): number {
  return byteLength + Math.floor(byteLength / 255) + 16;
}
