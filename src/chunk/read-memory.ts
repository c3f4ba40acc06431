import { CHUNK_HEADROOM_BYTES } from "../codec/made-chunk.js";

/** Memory that reads use one after the other, so that the system need not clear new pages for each. */
export interface ReadMemory {
  /** Returns memory behind {@link CHUNK_HEADROOM_BYTES} free bytes. The caller owns it until `release`. */
  acquire(byteLength: number): Uint8Array<ArrayBuffer>;
  /** Tells if `acquire` returned these bytes, and they are not released. */
  isAcquired(bytes: Uint8Array): boolean;
  /** Takes back memory that is no longer read. Without that it is not reused; a second release of it does nothing. */
  release(bytes: Uint8Array): void;
}

/** Unit of the lengths of pieces, so that chunks of about one size share them. */
const PIECE_BYTES = 16 * 1024;

/** Creates memory without any pieces. @param maxBytes Bound of free memory; the garbage collector gets the rest. */
export function createReadMemory(maxBytes: number): ReadMemory {
  const free: ArrayBuffer[] = [];
  const acquired = new WeakSet<Uint8Array>();
  let freeBytes = 0;

  function takeFree(byteLength: number): ArrayBuffer | undefined {
    // The latest first: it is in the processor's cache.
    for (let i = free.length - 1; i >= 0; i--) {
      const buffer = free[i] as ArrayBuffer;
      if (buffer.byteLength < byteLength || buffer.byteLength > 2 * byteLength + PIECE_BYTES) continue;
      free.splice(i, 1);
      freeBytes -= buffer.byteLength;
      return buffer;
    }
    return undefined;
  }

  return {
    acquire(byteLength) {
      const needed = CHUNK_HEADROOM_BYTES + byteLength;
      const roundedUp = Math.ceil(needed / PIECE_BYTES) * PIECE_BYTES;
      const buffer = takeFree(needed) ?? (Buffer.allocUnsafeSlow(roundedUp).buffer as ArrayBuffer);
      const bytes = new Uint8Array(buffer, CHUNK_HEADROOM_BYTES, byteLength);
      acquired.add(bytes);
      return bytes;
    },
    isAcquired: (bytes) => acquired.has(bytes),
    release(bytes) {
      if (!acquired.delete(bytes)) return;
      const buffer = bytes.buffer as ArrayBuffer;
      if (buffer.byteLength > maxBytes) return;
      // The oldest go: of a size that is no longer requested, they would stay for ever.
      while (freeBytes + buffer.byteLength > maxBytes) freeBytes -= (free.shift() as ArrayBuffer).byteLength;
      free.push(buffer);
      freeBytes += buffer.byteLength;
    },
  };
}
