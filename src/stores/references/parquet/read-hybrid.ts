/**
 * Reads Parquet's hybrid of runs and bit-packed integers, which holds levels and places in a dictionary.
 * @param width Bits of an integer, at most 32.
 * @throws Error if there are fewer than `count`.
 */
export function readHybrid(bytes: Uint8Array, width: number, count: number): Uint32Array {
  if (width > 32) throw new Error(`expected integers of at most 32 bits, received ${width}`);
  const values = new Uint32Array(count);
  const valueBytes = (width + 7) >> 3;
  let at = 0;
  let seen = 0;

  function byte(): number {
    const value = bytes[at++];
    if (value === undefined) throw new Error(`expected ${count} integers, received ${seen}`);
    return value;
  }

  function varint(): number {
    let value = 0;
    for (let scale = 1; scale <= 2 ** 28; scale *= 128) {
      const next = byte();
      value += (next & 127) * scale;
      if (next < 128) return value;
    }
    throw new Error("expected a length of at most 32 bits");
  }

  while (seen < count) {
    const head = varint();
    if (head % 2 === 0) {
      let value = 0;
      for (let index = 0; index < valueBytes; index++) value += byte() * 256 ** index;
      const end = Math.min(seen + head / 2, count);
      if (end === seen) throw new Error("expected a run of at least one integer");
      values.fill(value, seen, end);
      seen = end;
      continue;
    }
    const packed = Math.min(((head - 1) / 2) * 8, count - seen);
    if (packed === 0) throw new Error("expected at least one group of integers");
    let held = 0;
    let bits = 0;
    for (let index = 0; index < packed; index++) {
      for (; bits < width; bits += 8) held += byte() * 2 ** bits;
      values[seen++] = held % 2 ** width;
      held = Math.floor(held / 2 ** width);
      bits -= width;
    }
    // Groups are whole: the rest of the last one is padding.
    at += Math.floor((((head - 1) / 2) * 8 * width - (packed * width + bits)) / 8);
  }
  return values;
}
