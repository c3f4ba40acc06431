const TABLE_COUNT = 16;
/** Slicing by sixteen: table k advances the checksum of a byte by k further zero bytes. */
const tables = makeTables();
const [t0, t1, t2, t3, t4, t5, t6, t7] = tables as EightTables;
const [t8, t9, t10, t11, t12, t13, t14, t15] = tables.slice(8) as EightTables;

type Table = Int32Array;
type EightTables = [Table, Table, Table, Table, Table, Table, Table, Table];

/** CRC-32C (Castagnoli, RFC 3720) of `bytes`, as an unsigned 32-bit integer. */
export function crc32c(bytes: Uint8Array): number {
  // Reads words at any address as fast as an aligned array does.
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const whole = bytes.length - (bytes.length % TABLE_COUNT);
  let crc = -1;
  for (let i = 0; i < whole; i += TABLE_COUNT) {
    const a = view.getInt32(i, true) ^ crc;
    const b = view.getInt32(i + 4, true);
    const c = view.getInt32(i + 8, true);
    const d = view.getInt32(i + 12, true);
    crc =
      t15[a & 0xff]! ^
      t14[(a >>> 8) & 0xff]! ^
      t13[(a >>> 16) & 0xff]! ^
      t12[a >>> 24]! ^
      t11[b & 0xff]! ^
      t10[(b >>> 8) & 0xff]! ^
      t9[(b >>> 16) & 0xff]! ^
      t8[b >>> 24]! ^
      t7[c & 0xff]! ^
      t6[(c >>> 8) & 0xff]! ^
      t5[(c >>> 16) & 0xff]! ^
      t4[c >>> 24]! ^
      t3[d & 0xff]! ^
      t2[(d >>> 8) & 0xff]! ^
      t1[(d >>> 16) & 0xff]! ^
      t0[d >>> 24]!;
  }
  for (let i = whole; i < bytes.length; i++) crc = (crc >>> 8) ^ t0[(crc ^ bytes[i]!) & 0xff]!;
  return ~crc >>> 0;
}

function makeTables(): Table[] {
  const first = new Int32Array(256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    // 0x82f63b78 is the Castagnoli polynomial, bits reversed.
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
    first[byte] = crc;
  }
  const all = [first];
  for (let k = 1; k < TABLE_COUNT; k++) {
    const previous = all[k - 1] as Table;
    all.push(previous.map((crc) => (crc >>> 8) ^ first[crc & 0xff]!));
  }
  return all;
}
