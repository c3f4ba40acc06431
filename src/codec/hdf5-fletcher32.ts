import { type Codec, corrupt } from "./codec.js";

const CHECKSUM_BYTES = 4;
/** Words whose sums stay below 2^32 without being reduced. */
const WORDS_AT_ONCE = 360;

/** Fletcher-32 of HDF5: the checksum behind the bytes. */
export const hdf5Fletcher32: Codec = {
  decode(bytes) {
    const end = bytes.length - CHECKSUM_BYTES;
    if (end < 0) {
      throw corrupt(`fletcher32: expected at least ${CHECKSUM_BYTES} bytes, received ${bytes.length}`);
    }
    const content = bytes.subarray(0, end);
    const expected = new DataView(bytes.buffer, bytes.byteOffset).getUint32(end, true);
    const received = fletcher32(content);
    // HDF5 before 1.6.3 wrote the bytes of each half in the other order; HDF5 accepts both.
    const swapped = (((received & 0x00ff00ff) << 8) | ((received >>> 8) & 0x00ff00ff)) >>> 0;
    if (received !== expected && swapped !== expected) {
      throw corrupt(`fletcher32: expected checksum ${hex(expected)}, received ${hex(received)}`);
    }
    return content;
  },
};

/** Returns the checksum of bytes (`H5_checksum_fletcher32`): sums of big-endian words of 16 bits, the last one padded. */
export function fletcher32(bytes: Uint8Array): number {
  let low = 0;
  let high = 0;
  const wholeEnd = bytes.length - (bytes.length % 2);
  for (let at = 0; at < wholeEnd; ) {
    for (const end = Math.min(wholeEnd, at + 2 * WORDS_AT_ONCE); at < end; at += 2) {
      low += (bytes[at]! << 8) | bytes[at + 1]!;
      high += low;
    }
    low = reduced(low);
    high = reduced(high);
  }
  if (wholeEnd < bytes.length) {
    low += bytes[wholeEnd]! << 8;
    high = reduced(high + low);
    low = reduced(low);
  }
  return ((reduced(high) << 16) | reduced(low)) >>> 0;
}

function reduced(sum: number): number {
  return (sum & 0xffff) + (sum >>> 16);
}

function hex(value: number): string {
  return value.toString(16).padStart(8, "0");
}
