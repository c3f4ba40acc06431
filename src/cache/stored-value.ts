import { randomFillSync } from "node:crypto";
import { crc32 } from "node:zlib";
import { CACHE_KEY_BYTES } from "./cache-key.js";

/**
 * Layout of a value on disk, little-endian: magic with format number (4), payload length (4), CRC-32 of the payload
 * (4), the key (20), a number that no other put has (8), payload. 40 bytes keep the payload aligned for any item size.
 */
export const STORED_HEADER_BYTES = 40;

const PUT_ID_OFFSET = 32;
/** Bytes of a {@link putIdOf}. */
export const PUT_ID_BYTES = 8;

/** Goes up with every change to what is written, here or in `entry-record`. */
export const STORED_FORMAT = 2;

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
  randomFillSync(stored, PUT_ID_OFFSET, PUT_ID_BYTES);
}

/**
 * The payload of a stored value, without looking at every byte of it.
 * @returns A view into `stored`, or undefined where header, length or key are not what they must be.
 */
export function payloadOf(key: Uint8Array, stored: Uint8Array): Uint8Array | undefined {
  const byteLength = stored.length - STORED_HEADER_BYTES;
  if (byteLength < 0 || uint32At(stored, 0) !== MAGIC || uint32At(stored, 4) !== byteLength) return undefined;
  for (let i = 0; i < CACHE_KEY_BYTES; i++) {
    if (stored[12 + i] !== key[i]) return undefined;
  }
  return new Uint8Array(stored.buffer, stored.byteOffset + STORED_HEADER_BYTES, byteLength);
}

/** What tells a stored value from any other, also of the same key: a view into `stored`. */
export function putIdOf(stored: Uint8Array): Uint8Array {
  return stored.subarray(PUT_ID_OFFSET, PUT_ID_OFFSET + PUT_ID_BYTES);
}

/** Whether the first bytes of `putId` are that of `stored`, at least {@link STORED_HEADER_BYTES} long. */
export function hasPutId(stored: Uint8Array, putId: Uint8Array): boolean {
  for (let i = 0; i < PUT_ID_BYTES; i++) if (stored[PUT_ID_OFFSET + i] !== putId[i]) return false;
  return true;
}

/** Whether the payload is the one that was written: reads all of it (4.4 GB/s measured). */
export function isIntact(stored: Uint8Array, payload: Uint8Array): boolean {
  return crc32(payload) === uint32At(stored, 8);
}

function uint32At(bytes: Uint8Array, offset: number): number {
  return (
    (bytes[offset]! | (bytes[offset + 1]! << 8) | (bytes[offset + 2]! << 16) | (bytes[offset + 3]! << 24)) >>>
    0
  );
}
