/** Memory for chunks to come, instead of having the system clear new pages for each. */
export interface SpareMemory {
  take(): ArrayBuffer | undefined;
  /** Of whoever takes it next. */
  give(buffer: ArrayBuffer): void;
  clear(): void;
}

/** Pieces that are kept, besides one for each worker. */
const SPARE_BUFFERS = 8;
/** Larger pieces are not kept. */
const MAX_SPARE_BYTES = 8 * 1024 * 1024;

/** @param threads Workers that use it. */
export function createSpareMemory(threads: number): SpareMemory {
  const spare: ArrayBuffer[] = [];
  return {
    take: () => spare.pop(),
    give(buffer) {
      if (buffer.byteLength <= MAX_SPARE_BYTES && spare.length < threads + SPARE_BUFFERS) spare.push(buffer);
    },
    clear() {
      spare.length = 0;
    },
  };
}
