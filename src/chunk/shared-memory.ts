/**
 * Shared memory in which stored chunks are handed to workers, so that no message copies them. V8 does not count shared memory when it
 * decides about garbage collections, and threads that work in memory of their own have few: gigabytes would stay. So it is used
 * again, and its sum is bounded.
 */
export interface SharedMemory {
  /** Begins a task, which gets memory until it ends. */
  lease(): MemoryLease;
  /** Bytes that are leased or free. */
  readonly byteLength: number;
}

/** The memory of one task. */
export interface MemoryLease {
  /** Allocates memory: not shared if none is left, or after `end`. */
  allocate(byteLength: number): Uint8Array<ArrayBuffer>;
  /** Returns the bytes in memory of this lease: themselves, or a copy of them. */
  place(bytes: Uint8Array): Uint8Array;
  /** Takes back all memory. @param isUnused False if a worker may still read it: then it is left to the garbage collector. */
  end(isUnused: boolean): void;
}

/** Smallest piece. Lengths are powers of two, so that chunks of different lengths use the same pieces. */
const MIN_PIECE_BYTES = 16 * 1024;

/** Creates memory without any pieces. @param maxBytes Bound of the pieces, leased and free. */
export function createSharedMemory(maxBytes: number): SharedMemory {
  /** By length. */
  const free = new Map<number, SharedArrayBuffer[]>();
  let total = 0;

  function acquire(byteLength: number): SharedArrayBuffer | undefined {
    const length = 2 ** Math.ceil(Math.log2(Math.max(byteLength, MIN_PIECE_BYTES)));
    const found = free.get(length)?.pop();
    if (found !== undefined) return found;
    if (total + length > maxBytes) return undefined;
    total += length;
    return new SharedArrayBuffer(length);
  }

  function release(piece: SharedArrayBuffer): void {
    const others = free.get(piece.byteLength);
    if (others === undefined) free.set(piece.byteLength, [piece]);
    else others.push(piece);
  }

  function lease(): MemoryLease {
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
