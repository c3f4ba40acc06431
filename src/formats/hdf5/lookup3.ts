import { invalidFile } from "./byte-cursor.js";

/**
 * Checks the checksum that follows a structure of a file: Jenkins' lookup3, `hashlittle` with 0 as initial value (HDF5 File Format
 * Specification, III).
 * @param bytes The structure, with the checksum in its last four bytes.
 * @throws ZpublishError `invalid-metadata` if it is another one
 */
export function checkChecksum(bytes: Uint8Array, structure: string): void {
  const end = bytes.length - 4;
  if (end < 0) throw invalidFile(`${structure}: expected a checksum, received ${bytes.length} bytes`);
  const stored = word(bytes, end) >>> 0;
  const computed = lookup3(bytes, end);
  if (stored === computed) return;
  const [expected, received] = [stored, computed].map((sum) => `0x${sum.toString(16).padStart(8, "0")}`);
  throw invalidFile(`${structure}: expected the checksum ${expected}, received ${received}`);
}

/** Returns the checksum of the first bytes, by default of all. */
export function lookup3(bytes: Uint8Array, byteLength = bytes.length): number {
  let a = (0xdeadbeef + byteLength) | 0;
  let b = a;
  let c = a;
  let at = 0;
  for (; byteLength - at > 12; at += 12) {
    a = (a + word(bytes, at)) | 0;
    b = (b + word(bytes, at + 4)) | 0;
    c = (c + word(bytes, at + 8)) | 0;
    a = (a - c) ^ rotate(c, 4);
    c = (c + b) | 0;
    b = (b - a) ^ rotate(a, 6);
    a = (a + c) | 0;
    c = (c - b) ^ rotate(b, 8);
    b = (b + a) | 0;
    a = (a - c) ^ rotate(c, 16);
    c = (c + b) | 0;
    b = (b - a) ^ rotate(a, 19);
    a = (a + c) | 0;
    c = (c - b) ^ rotate(b, 4);
    b = (b + a) | 0;
  }
  if (at === byteLength) return c >>> 0;
  a = (a + partWord(bytes, at, byteLength)) | 0;
  b = (b + partWord(bytes, at + 4, byteLength)) | 0;
  c = (c + partWord(bytes, at + 8, byteLength)) | 0;
  c = ((c ^ b) - rotate(b, 14)) | 0;
  a = ((a ^ c) - rotate(c, 11)) | 0;
  b = ((b ^ a) - rotate(a, 25)) | 0;
  c = ((c ^ b) - rotate(b, 16)) | 0;
  a = ((a ^ c) - rotate(c, 4)) | 0;
  b = ((b ^ a) - rotate(a, 14)) | 0;
  c = ((c ^ b) - rotate(b, 24)) | 0;
  return c >>> 0;
}

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

function word(bytes: Uint8Array, at: number): number {
  const low = (bytes[at] as number) | ((bytes[at + 1] as number) << 8);
  return low | ((bytes[at + 2] as number) << 16) | ((bytes[at + 3] as number) << 24);
}

function partWord(bytes: Uint8Array, at: number, end: number): number {
  let value = 0;
  for (let i = at; i < end && i < at + 4; i++) value |= (bytes[i] as number) << (8 * (i - at));
  return value;
}
