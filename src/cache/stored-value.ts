import { crc32 } from "node:zlib";
import { CACHE_KEY_BYTES } from "./cache-key.js";

/**
 * Layout of a value on disk, little-endian: magic with format number (4), payload length (4), CRC-32 of the payload
 * (4), the key (20), a random number that tells this put from others (4), zeros (4), payload. 40 bytes keep the payload
 * aligned for any item size.
 */
export const STORED_HEADER_BYTES = 40;

const PUT_NUMBER_OFFSET = 32;

/** Goes up with every change to what is written, here or in `entry-record`. */
export const STORED_FORMAT = 3;

/** What a stored value begins with: "zpc" and the format. */
export const MAGIC = 0x7a706300 | STORED_FORMAT;

/**
 * A value ready to be written: header and a copy of `bytes`.
 * @returns Memory of its own, not from Buffer's pool: it is read by another thread.
 */
export function packStoredValue(key: Uint8Array, bytes: Uint8Array): Buffer {
  const stored = Buffer.allocUnsafeSlow(STORED_HEADER_BYTES + bytes.length);
  stored.set(bytes, STORED_HEADER_BYTES);
  writeHeader(stored, key, crc32(bytes));
  return stored;
}

/**
 * The same without a copy, where the memory before `bytes`, {@link STORED_HEADER_BYTES} of it, is free for the header.
 * @param checksum CRC-32 of `bytes`, where it is known.
 * @returns A view of the memory of `bytes`.
 */
export function packInPlace(key: Uint8Array, bytes: Uint8Array, checksum = crc32(bytes)): Buffer {
  const start = bytes.byteOffset - STORED_HEADER_BYTES;
  if (start < 0)
    throw new Error(`expected ${STORED_HEADER_BYTES} bytes before the chunk, received ${bytes.byteOffset}`);
  const stored = Buffer.from(bytes.buffer as ArrayBuffer, start, STORED_HEADER_BYTES + bytes.length);
  writeHeader(stored, key, checksum);
  return stored;
}

function writeHeader(stored: Buffer, key: Uint8Array, checksum: number): void {
  stored.writeUInt32LE(MAGIC, 0);
  stored.writeUInt32LE(stored.length - STORED_HEADER_BYTES, 4);
  stored.writeUInt32LE(checksum, 8);
  stored.set(key, 12);
  stored.writeUInt32LE(Math.floor(Math.random() * 2 ** 32), PUT_NUMBER_OFFSET);
  stored.writeUInt32LE(0, PUT_NUMBER_OFFSET + 4);
}

/** The payload of a stored value: a view into `stored`. */
export function payloadOf(stored: Uint8Array): Uint8Array {
  return new Uint8Array(
    stored.buffer,
    stored.byteOffset + STORED_HEADER_BYTES,
    stored.length - STORED_HEADER_BYTES,
  );
}

/** The number that tells a stored value from others of its key. */
export function putNumberOf(stored: Uint8Array): number {
  return uint32At(stored, PUT_NUMBER_OFFSET);
}

/** Whether a stored value is the one that was written under `key`: reads all of it (4.4 GB/s measured). */
export function isIntact(key: Uint8Array, stored: Uint8Array): boolean {
  const byteLength = stored.length - STORED_HEADER_BYTES;
  if (byteLength < 0 || uint32At(stored, 0) !== MAGIC || uint32At(stored, 4) !== byteLength) return false;
  for (let i = 0; i < CACHE_KEY_BYTES; i++) {
    if (stored[12 + i] !== key[i]) return false;
  }
  return crc32(payloadOf(stored)) === uint32At(stored, 8);
}

function uint32At(bytes: Uint8Array, offset: number): number {
  return (
    (bytes[offset]! | (bytes[offset + 1]! << 8) | (bytes[offset + 2]! << 16) | (bytes[offset + 3]! << 24)) >>>
    0
  );
}
