import nodeZlib from "node:zlib";
import { adler32Of } from "./adler32.js";
import { type Codec, corrupt } from "./codec.js";
import { crc32c } from "./crc32c.js";
import { OWN_MEMORY } from "./kernel/kernel-memory.js";

const CHECKSUM_BYTES = 4;

/** `crc32` of numcodecs: the checksum in front. */
export const crc32: Codec = withChecksum("crc32", "start", (bytes) => nodeZlib.crc32(bytes));

/** `adler32` of numcodecs: the checksum in front. */
export const adler32: Codec = withChecksum("adler32", "start", adler32Of);

/** `crc32c` of Zarr v3: the checksum behind. */
export const crc32cTrailer: Codec = withChecksum("crc32c", "end", crc32c);

function withChecksum(id: string, place: "start" | "end", checksumOf: (bytes: Uint8Array) => number): Codec {
  return {
    decode(bytes) {
      if (bytes.length < CHECKSUM_BYTES) {
        throw corrupt(`${id}: expected at least ${CHECKSUM_BYTES} bytes, received ${bytes.length}`);
      }
      const split = place === "start" ? 0 : bytes.length - CHECKSUM_BYTES;
      const expected = new DataView(bytes.buffer, bytes.byteOffset).getUint32(split, true);
      const content = place === "start" ? bytes.subarray(CHECKSUM_BYTES) : bytes.subarray(0, split);
      const received = checksumOf(content) >>> 0;
      if (received !== expected) {
        throw corrupt(`${id}: expected checksum ${hex(expected)}, received ${hex(received)}`);
      }
      return content;
    },
    encode(bytes, _step, memory = OWN_MEMORY) {
      const encoded = memory.allocate(bytes.length + CHECKSUM_BYTES);
      encoded.set(bytes, place === "start" ? CHECKSUM_BYTES : 0);
      const position = place === "start" ? 0 : bytes.length;
      new DataView(encoded.buffer, encoded.byteOffset).setUint32(position, checksumOf(bytes) >>> 0, true);
      return encoded;
    },
  };
}

function hex(checksum: number): string {
  return checksum.toString(16).padStart(8, "0");
}
