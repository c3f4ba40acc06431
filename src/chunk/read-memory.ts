import { CHUNK_HEADROOM_BYTES } from "../codec/made-chunk.js";

/** Memory that reads use one after the other, instead of having the system clear new pages for each. */
export interface ReadMemory {
  /**
   * As much as asked for, behind {@link CHUNK_HEADROOM_BYTES} that are free; of whoever took it until it is given back.
   */
  take(byteLength: number): Uint8Array<ArrayBuffer>;
  /** Whether bytes are what `take` gave, and not given back. */
  isTaken(bytes: Uint8Array): boolean;
  /**
   * What `take` gave, once nobody looks at it any more. Not giving it back costs its
   * reuse only, and giving it back again is no harm.
   */
  giveBack(bytes: Uint8Array): void;
}

/** Pieces are multiples of this, so that chunks of about one size share them. */
const PIECE_BYTES = 16 * 1024;

/** @param maxBytes Of memory kept for later; more is left to the garbage collector. */
export function createReadMemory(maxBytes: number): ReadMemory {
  const free: ArrayBuffer[] = [];
  const taken = new WeakSet<Uint8Array>();
  let freeBytes = 0;

  function takeFree(byteLength: number): ArrayBuffer | undefined {
    // The latest first: what was used last is in the processor's cache.
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
    take(byteLength) {
      const needed = CHUNK_HEADROOM_BYTES + byteLength;
      const roundedUp = Math.ceil(needed / PIECE_BYTES) * PIECE_BYTES;
      const buffer = takeFree(needed) ?? (Buffer.allocUnsafeSlow(roundedUp).buffer as ArrayBuffer);
      const bytes = new Uint8Array(buffer, CHUNK_HEADROOM_BYTES, byteLength);
      taken.add(bytes);
      return bytes;
    },
    isTaken: (bytes) => taken.has(bytes),
    giveBack(bytes) {
      if (!taken.delete(bytes)) return;
      const buffer = bytes.buffer as ArrayBuffer;
      if (buffer.byteLength > maxBytes) return;
      // Of another size than what is asked for now, it would be in the way for ever.
      while (freeBytes + buffer.byteLength > maxBytes) freeBytes -= (free.shift() as ArrayBuffer).byteLength;
      free.push(buffer);
      freeBytes += buffer.byteLength;
    },
  };
}
