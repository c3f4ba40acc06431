import nodeZlib from "node:zlib";
import { type Codec, corrupt } from "./codec.js";
import { OWN_MEMORY } from "./kernel/kernel-memory.js";

const BASE = 65521;
/** Bytes whose sums stay below 2^32 (zlib's `NMAX`). */
const BYTES_AT_ONCE = 5552;

/** Adler-32 (RFC 1950, section 8.2) of `bytes`, as an unsigned 32-bit integer. */
export function adler32Of(bytes: Uint8Array): number {
  let low = 1;
  let high = 0;
  for (let at = 0; at < bytes.length; ) {
    for (const end = Math.min(at + BYTES_AT_ONCE, bytes.length); at < end; at++) {
      low += bytes[at]!;
      high += low;
    }
    low %= BASE;
    high %= BASE;
  }
  return ((high << 16) | low) >>> 0;
}

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
    const previous = all[k - 1]!;
    all.push(previous.map((crc) => (crc >>> 8) ^ first[crc & 0xff]!));
  }
  return all;
}

const CHECKSUM_BYTES = 4;

/** `crc32` of numcodecs: the checksum in front. */
export const crc32: Codec = withChecksum("crc32", "start", (bytes) => nodeZlib.crc32(bytes));

/** `adler32` of numcodecs: the checksum in front. */
export const adler32: Codec = withChecksum("adler32", "start", adler32Of);

/** `crc32c` of Zarr v3: the checksum behind. */
export const crc32cTrailer: Codec = withChecksum("crc32c", "end", crc32c);

/** Words whose sums stay below 2^32 without being reduced. */
const WORDS_AT_ONCE = 360;

/** Fletcher-32 of HDF5, decoding only: the checksum behind. */
export const hdf5Fletcher32: Codec = {
  // HDF5 before 1.6.3 wrote the bytes of each half in the other order; HDF5 accepts both.
  decode: withChecksum(
    "fletcher32",
    "end",
    fletcher32,
    (checksum) => (((checksum & 0x00ff00ff) << 8) | ((checksum >>> 8) & 0x00ff00ff)) >>> 0,
  ).decode,
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

/** @param alsoOf Returns another checksum that is accepted in place of the right one. */
function withChecksum(
  id: string,
  place: "start" | "end",
  checksumOf: (bytes: Uint8Array) => number,
  alsoOf = (checksum: number) => checksum,
): Codec {
  return {
    decode(bytes) {
      if (bytes.length < CHECKSUM_BYTES) {
        throw corrupt(`${id}: expected at least ${CHECKSUM_BYTES} bytes, received ${bytes.length}`);
      }
      const split = place === "start" ? 0 : bytes.length - CHECKSUM_BYTES;
      const expected = new DataView(bytes.buffer, bytes.byteOffset).getUint32(split, true);
      const content = place === "start" ? bytes.subarray(CHECKSUM_BYTES) : bytes.subarray(0, split);
      const received = checksumOf(content) >>> 0;
      if (received !== expected && alsoOf(received) !== expected) {
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
