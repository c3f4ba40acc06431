/**
 * Fills a buffer with one item over and over.
 * @param item One item; null: zero bytes. The buffer's length is a multiple of its length.
 */
export function fillBuffer(target: Uint8Array, item: Uint8Array | null): void {
  if (isZero(item) || item === null) {
    target.fill(0);
    return;
  }
  if (target.length === 0 || item.length === 0) return;
  target.set(item.subarray(0, target.length));
  // Every copy doubles the filled part.
  for (let filled = item.length; filled < target.length; filled *= 2) {
    target.copyWithin(filled, 0, Math.min(filled, target.length - filled));
  }
}

/** Whether a fill item is all zeros, as fresh memory is. */
export function isZero(item: Uint8Array | null): boolean {
  return item === null || item.every((byte) => byte === 0);
}
