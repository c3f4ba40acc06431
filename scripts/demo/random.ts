/** Numbers from 0 to 1 that look random and are the same every time (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Noise that remembers: each call moves a little from the last, with the given spread around zero. */
export function createDrift(seed: number, memory: number, spread: number): () => number {
  const random = createRandom(seed);
  const step = spread * Math.sqrt(1 - memory ** 2) * Math.sqrt(3);
  let value = 0;
  return () => {
    value = memory * value + step * (2 * random() - 1);
    return value;
  };
}

/** `length` numbers from `first` in steps of `step`. */
export function range(length: number, first: number, step: number): number[] {
  return Array.from({ length }, (_, index) => first + index * step);
}
