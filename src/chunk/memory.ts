import { CHUNK_HEADROOM_BYTES } from "../codec/make-chunk.js";

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
      const buffer = free[i]!;
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
      while (freeBytes + buffer.byteLength > maxBytes) freeBytes -= free.shift()!.byteLength;
      free.push(buffer);
      freeBytes += buffer.byteLength;
    },
  };
}

/**
 * Shared memory in which workers get stored chunks without a copy. V8 does not count it when it decides about garbage collections, so
 * gigabytes would stay: it is used again, and its sum is bounded.
 */
interface SharedMemory {
  /** Begins a task, which gets memory until it ends. */
  lease(): SharedMemoryLease;
  /** Bytes that are leased or free. */
  readonly byteLength: number;
}

/** The memory of one task. */
export interface SharedMemoryLease {
  /** Allocates memory: not shared if none is left, or after `end`. */
  allocate(byteLength: number): Uint8Array<ArrayBuffer>;
  /** Returns the bytes in memory of this lease: themselves, or a copy of them. */
  place(bytes: Uint8Array): Uint8Array;
  /** Takes back all memory. @param isUnused False if a worker may still read it: then it is left to the garbage collector. */
  end(isUnused: boolean): void;
}

/** Smallest piece. Lengths are powers of two, so that chunks of different lengths use the same pieces. */
const MIN_PIECE_BYTES = 16 * 1024;
/** Longer bytes are not shared but moved: the pieces would stay. */
const MAX_PIECE_BYTES = 32 * 2 ** 20;

/** Creates memory without any pieces. @param maxBytes Bound of the pieces, leased and free. */
export function createSharedMemory(maxBytes: number): SharedMemory {
  /** By length. */
  const free = new Map<number, SharedArrayBuffer[]>();
  let total = 0;

  function acquire(byteLength: number): SharedArrayBuffer | undefined {
    const length = 2 ** Math.ceil(Math.log2(Math.max(byteLength, MIN_PIECE_BYTES)));
    const found = free.get(length)?.pop();
    if (found !== undefined) return found;
    if (length > MAX_PIECE_BYTES || total + length > maxBytes) return undefined;
    total += length;
    return new SharedArrayBuffer(length);
  }

  function release(piece: SharedArrayBuffer): void {
    const others = free.get(piece.byteLength);
    if (others === undefined) free.set(piece.byteLength, [piece]);
    else others.push(piece);
  }

  function lease(): SharedMemoryLease {
    const own = new Set<ArrayBufferLike>();
    let isOver = false;

    function allocate(byteLength: number): Uint8Array<ArrayBuffer> {
      const piece = isOver ? undefined : acquire(byteLength);
      const buffer = (piece ?? new ArrayBuffer(byteLength)) as ArrayBuffer;
      own.add(buffer);
      return new Uint8Array(buffer, 0, byteLength);
    }

    return {
      allocate,
      place(bytes) {
        if (own.has(bytes.buffer)) return bytes;
        const placed = allocate(bytes.length);
        placed.set(bytes);
        return placed;
      },
      end(isUnused) {
        isOver = true;
        for (const buffer of own) {
          if (!(buffer instanceof SharedArrayBuffer)) continue;
          if (isUnused) release(buffer);
          else total -= buffer.byteLength;
        }
        own.clear();
      },
    };
  }

  return {
    lease,
    get byteLength() {
      return total;
    },
  };
}
