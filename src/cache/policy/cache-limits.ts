/** What follows from the one bound that the operator sets. Bytes. */
export interface CacheLimits {
  readonly maxBytes: number;
  /** A larger value is not kept. */
  readonly valueBytes: number;
  /** From here on a chunk must be more wanted than another to be kept. */
  readonly fullBytes: number;
  /** Of one transaction: pages it frees are not reused before the next but one, so they must not pile up. */
  readonly batchBytes: number;
  /** When the file is larger, each write waits until the disk has it, so that freed pages can be used. */
  readonly fileBytesFlushed: number;
  /** When the file is larger, more is evicted: {@link usedBytesWhenTight}. */
  readonly fileBytesTight: number;
  readonly usedBytesWhenTight: number;
  /** When the file is larger, the cache begins anew. */
  readonly fileBytesMax: number;
  /** Cells per row of the sketch of accesses: about two per entry, if chunks are of 32 KiB. 32 KiB to 8 MiB of memory. */
  readonly sketchWidth: number;
}

/** Pages that any environment has: they count with a small bound. */
const FILE_SLACK_BYTES = 1024 ** 2;

/** The limits of a cache of `maxBytes`. */
export function cacheLimitsOf(maxBytes: number): CacheLimits {
  return {
    maxBytes,
    valueBytes: maxBytes / 8,
    fullBytes: maxBytes * 0.95,
    batchBytes: Math.min(8 * 1024 ** 2, maxBytes / 16),
    fileBytesFlushed: maxBytes * 1.1,
    fileBytesTight: maxBytes * 1.25 + FILE_SLACK_BYTES,
    usedBytesWhenTight: maxBytes * 0.8,
    fileBytesMax: maxBytes * 1.5 + FILE_SLACK_BYTES,
    sketchWidth: 2 ** Math.min(18, Math.max(10, Math.ceil(Math.log2(maxBytes / 16_384)))),
  };
}

/** With fewer entries their average size says little. */
const MIN_ENTRIES_FOR_AVERAGE = 64;

/**
 * Estimates the entries of the full cache from the average size so far, and at first from usual chunks. By the entries of a
 * cache that still fills, the clock would run so fast that a chunk asked for twice counts as asked for once.
 */
export function entriesWhenFull(
  { maxBytes, sketchWidth }: CacheLimits,
  { entries, usedBytes }: { readonly entries: number; readonly usedBytes: number },
): number {
  if (entries < MIN_ENTRIES_FOR_AVERAGE) return sketchWidth / 2;
  return Math.max(entries, Math.min(entries * (maxBytes / usedBytes), sketchWidth));
}

/** Estimates the bytes on disk of a value. */
export function bytesOnDisk(byteLength: number, pageSize: number): number {
  // Small values share pages, about two thirds full.
  return byteLength < pageSize / 4 ? byteLength * 1.5 : Math.ceil((byteLength + 24) / pageSize) * pageSize;
}
