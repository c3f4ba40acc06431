const BASE = 65521;
/** Bytes at a time: sixteen words are as many as the sums below keep apart in 16 bits each. */
const BLOCK_BYTES = 64;

/**
 * Adler-32 (RFC 1950, section 8.2) of `bytes`, as an unsigned 32-bit integer.
 *
 * Bytes 0 and 2 of every word are added as the halves of one number, bytes 1 and 3 as those of another: two additions for
 * four bytes. The second checksum counts a byte once for itself and for every byte behind it in its block.
 */
export function adler32Of(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const whole = bytes.length - (bytes.length % BLOCK_BYTES);
  let low = 1;
  let high = 0;
  for (let begin = 0; begin < whole; begin += BLOCK_BYTES) {
    let even = 0;
    let odd = 0;
    let evenBefore = 0;
    let oddBefore = 0;
    for (let i = begin; i < begin + BLOCK_BYTES; i += 4) {
      const word = view.getInt32(i, true);
      evenBefore += even;
      oddBefore += odd;
      even += word & 0xff00ff;
      odd += (word >>> 8) & 0xff00ff;
    }
    const sums = [even & 0xffff, odd & 0xffff, even >>> 16, odd >>> 16] as const;
    const before = (evenBefore & 0xffff) + (evenBefore >>> 16) + (oddBefore & 0xffff) + (oddBefore >>> 16);
    high = (high + BLOCK_BYTES * low + 4 * before + 4 * sums[0] + 3 * sums[1] + 2 * sums[2] + sums[3]) % BASE;
    low = (low + sums[0] + sums[1] + sums[2] + sums[3]) % BASE;
  }
  for (let i = whole; i < bytes.length; i++) {
    low = (low + bytes[i]!) % BASE;
    high = (high + low) % BASE;
  }
  return ((high << 16) | low) >>> 0;
}
