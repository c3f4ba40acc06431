import { type Codec, checkDecodedLength, corrupt } from "./codec.js";
import { decodeLz4Block } from "./lz4-block.js";
import { checkEncodable, runNumcodecs } from "./numcodecs-module.js";

const HEADER_BYTES = 4;

/** `lz4` of numcodecs: the decoded length (uint32, little-endian), then one LZ4 block. */
export const lz4: Codec = {
  decode(bytes, step) {
    if (bytes.length < HEADER_BYTES) {
      throw corrupt(`lz4: expected a header of ${HEADER_BYTES} bytes, received ${bytes.length}`);
    }
    const byteLength = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
    checkDecodedLength("lz4", byteLength, step);
    const decoded = new Uint8Array(byteLength);
    // The block of no bytes is one token of zero.
    const isEmpty = byteLength === 0 && bytes.length <= HEADER_BYTES + 1;
    if (!isEmpty && !decodeLz4Block(bytes, HEADER_BYTES, bytes.length, decoded, 0, byteLength)) {
      throw corrupt(`lz4: the block does not decode to the ${byteLength} bytes its header announces`);
    }
    return decoded;
  },
  encode(bytes, { codec }) {
    checkEncodable("lz4", bytes);
    return runNumcodecs("lz4", "encode", { acceleration: codec.acceleration }, bytes);
  },
};
