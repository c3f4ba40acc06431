/** Copies of fewer bytes are faster in a loop than by a call into the engine. */
const SHORT_COPY = 32;

/**
 * Copies `length` bytes to `to` from `distance` bytes before it, as in LZ77: if both overlap, the pattern
 * repeats. The caller has checked the bounds.
 */
export function copyMatch(target: Uint8Array, to: number, distance: number, length: number): void {
  if (length <= SHORT_COPY) {
    for (let from = to - distance, end = to + length; to < end; ) target[to++] = target[from++]!;
    return;
  }
  if (distance === 1) {
    target.fill(target[to - 1]!, to, to + length);
    return;
  }
  // The repeating part doubles with every copy.
  const begin = to - distance;
  const end = to + length;
  let known = distance;
  while (to < end) {
    const some = Math.min(known, end - to);
    target.copyWithin(to, begin, begin + some);
    to += some;
    known += some;
  }
}
