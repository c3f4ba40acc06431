/** Below this many bytes a loop is quicker than a call into the engine. */
const SHORT_COPY = 32;

/**
 * Copies `length` bytes to `to` from `distance` bytes before it, as LZ77 means it: where the two overlap, what was
 * just written repeats. The caller has checked both bounds.
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
