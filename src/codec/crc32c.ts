/** Slicing by eight: table k advances the checksum of a byte by k further zero bytes. */
const tables = makeTables();
const [t0, t1, t2, t3, t4, t5, t6, t7] = tables as [
  Uint32Array,
  Uint32Array,
  Uint32Array,
  Uint32Array,
  Uint32Array,
  Uint32Array,
  Uint32Array,
  Uint32Array,
];

/** CRC-32C (Castagnoli, RFC 3720) of `bytes`, as an unsigned 32-bit integer. */
export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  let i = 0;
  const wholeWords = bytes.length - (bytes.length % 8);
  for (; i < wholeWords; i += 8) {
    const low = crc ^ (bytes[i]! | (bytes[i + 1]! << 8) | (bytes[i + 2]! << 16) | (bytes[i + 3]! << 24));
    crc =
      t7[low & 0xff]! ^
      t6[(low >>> 8) & 0xff]! ^
      t5[(low >>> 16) & 0xff]! ^
      t4[low >>> 24]! ^
      t3[bytes[i + 4]!]! ^
      t2[bytes[i + 5]!]! ^
      t1[bytes[i + 6]!]! ^
      t0[bytes[i + 7]!]!;
  }
  for (; i < bytes.length; i++) crc = (crc >>> 8) ^ t0[(crc ^ bytes[i]!) & 0xff]!;
  return (crc ^ 0xffffffff) >>> 0;
}

function makeTables(): Uint32Array[] {
  const first = new Uint32Array(256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    // 0x82f63b78 is the Castagnoli polynomial, bits reversed.
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
    first[byte] = crc;
  }
  const all = [first];
  for (let k = 1; k < 8; k++) {
    const previous = all[k - 1] as Uint32Array;
    all.push(previous.map((crc) => (crc >>> 8) ^ first[crc & 0xff]!));
  }
  return all;
}
