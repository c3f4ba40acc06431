/**
 * Memory that a chunk passes through on its way, used again for the next one. What it gives is not zeroed. A stack: what
 * was allocated after a mark is given back by going back to it.
 */
export interface KernelMemory {
  /** A view of so many bytes, at a multiple of 64; memory of their own where the kernel's has no room for them. */
  allocate(byteLength: number): Uint8Array<ArrayBuffer>;
  /** What is allocated now. */
  mark(): number;
  /** Gives back what was allocated since: nobody may look at it any more. */
  rewind(mark: number): void;
  /** Bytes that stay what they are: a copy of those that lie here, others as they are. */
  keep(bytes: Uint8Array): Uint8Array;
}

/** Memory for one task that may wait in between. */
export interface MemoryLease extends KernelMemory {
  /** Gives everything back. */
  end(): void;
}

/** Memory of the garbage collector's: nothing is used again, nothing to give back. */
export const OWN_MEMORY: MemoryLease = Object.freeze({
  allocate: (byteLength: number) => new Uint8Array(byteLength),
  mark: () => 0,
  rewind: () => undefined,
  keep: (bytes: Uint8Array) => bytes,
  end: () => undefined,
});
