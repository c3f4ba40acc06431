/**
 * Memory for the steps of one chunk, used again for the next chunk and not zeroed. It is a stack: rewinding to a mark releases what
 * was allocated after it.
 */
export interface KernelMemory {
  /** Allocates bytes at a multiple of 64; outside of the kernel if it has no room. */
  allocate(byteLength: number): Uint8Array<ArrayBuffer>;
  /** The top of the stack. */
  mark(): number;
  /** Releases what was allocated since the mark; its views must not be used again. */
  rewind(mark: number): void;
  /** Returns bytes that outlive the stack: a copy if they lie in it, else the bytes themselves. */
  keep(bytes: Uint8Array): Uint8Array;
}

/** Memory of one task, which may wait between its steps. */
export interface KernelLease extends KernelMemory {
  /** Releases everything. */
  end(): void;
}

/** Memory of the garbage collector: nothing is used again, and nothing has to be released. */
export const OWN_MEMORY: KernelLease = Object.freeze({
  allocate: (byteLength: number) => new Uint8Array(byteLength),
  mark: () => 0,
  rewind: () => undefined,
  keep: (bytes: Uint8Array) => bytes,
  end: () => undefined,
});
