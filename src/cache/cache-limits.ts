/** Limits that follow from the bound of the operator, in bytes. */
export interface CacheLimits {
  readonly maxBytes: number;
  /** Larger values are not cached. */
  readonly valueBytes: number;
  /** Size from which a chunk is only cached if its score is higher than another's. */
  readonly fullBytes: number;
  /** Bound of one transaction: its freed pages are not reused before the next but one, so they must not pile up. */
  readonly batchBytes: number;
  /** If the file is larger, each write waits until it is on the disk, so that freed pages can be reused. */
  readonly fileBytesFlushed: number;
  /** If the file is larger, more is evicted: see {@link usedBytesWhenTight}. */
  readonly fileBytesTight: number;
  readonly usedBytesWhenTight: number;
  /** If the file is larger, the cache starts over. */
  readonly fileBytesMax: number;
  /** Cells per row of the access sketch: about two per entry with chunks of 32 KiB. The sketch takes 32 KiB to 8 MiB. */
  readonly sketchWidth: number;
}

/** Pages that every environment has, which count if the bound is small. */
const FILE_SLACK_BYTES = 1024 ** 2;

/** Computes the limits of a cache of `maxBytes`. */
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
 * Estimates the entries of the full cache from their average size so far, and at first from chunks of usual size. The entries of
 * a cache that still fills are few: by them, the clock would advance so fast that a second request counts as a first one.
 */
export function entriesWhenFull(
  { maxBytes, sketchWidth }: CacheLimits,
  { entries, usedBytes }: { readonly entries: number; readonly usedBytes: number },
): number {
  if (entries < MIN_ENTRIES_FOR_AVERAGE) return sketchWidth / 2;
  return Math.max(entries, Math.min(entries * (maxBytes / usedBytes), sketchWidth));
}

/**
 * Returns the size of the pages of a new store. For chunks, 16 KiB was 1.6 times faster than 4 KiB. With a small bound, half empty pages
 * would take too much of it.
 */
export function pageSizeOf(maxBytes: number): number {
  return maxBytes >= 64 * 1024 ** 2 ? 16_384 : 4_096;
}

/** Estimates the bytes on disk of a value. */
export function bytesOnDisk(byteLength: number, pageSize: number): number {
  // Small values share pages, about two thirds full.
  return byteLength < pageSize / 4 ? byteLength * 1.5 : Math.ceil((byteLength + 24) / pageSize) * pageSize;
}
