/**
 * Undoes the byte shuffle: byte `b` of item `i` lies at `b * count + i` in the source. Bytes behind the last
 * whole item are the same in both.
 */
export function unshuffleBytes(source: Uint8Array, target: Uint8Array, itemSize: number): void {
  const count = Math.floor(source.length / itemSize);
  const whole = count * itemSize;
  if (itemSize === 4) unshuffleWords(source, target, count, 1);
  else if (itemSize === 8) unshuffleWords(source, target, count, 2);
  else if (itemSize === 2) {
    for (let i = 0, to = 0; i < count; i++, to += 2) {
      target[to] = source[i]!;
      target[to + 1] = source[count + i]!;
    }
  } else {
    for (let byte = 0; byte < itemSize; byte++) {
      let from = byte * count;
      for (let to = byte; to < whole; to += itemSize) target[to] = source[from++]!;
    }
  }
  target.set(source.subarray(whole), whole);
}

/** Undoes the shuffle of items of whole 32-bit words, with one store per word instead of four. */
function unshuffleWords(source: Uint8Array, target: Uint8Array, count: number, wordsPerItem: number): void {
  const isAligned = target.byteOffset % 4 === 0 && IS_LITTLE_ENDIAN;
  const byteCount = count * wordsPerItem * 4;
  const words = isAligned
    ? new Uint32Array(target.buffer, target.byteOffset, count * wordsPerItem)
    : new Uint32Array(count * wordsPerItem);
  for (let word = 0; word < wordsPerItem; word++) {
    const a = word * 4 * count;
    const b = a + count;
    const c = b + count;
    const d = c + count;
    for (let i = 0, to = word; i < count; i++, to += wordsPerItem) {
      words[to] = source[a + i]! | (source[b + i]! << 8) | (source[c + i]! << 16) | (source[d + i]! << 24);
    }
  }
  if (isAligned) return;
  for (let to = 0; to < byteCount; to++) target[to] = (words[to >>> 2]! >>> ((to & 3) * 8)) & 255;
}

const IS_LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/**
 * Undoes Blosc's bit shuffle: row `8 * b + k` of the source holds bit `k` of byte `b` of every item, eight items to a
 * byte. If the number of items is not a multiple of eight, Blosc leaves the bytes as they are.
 */
export function unshuffleBits(source: Uint8Array, target: Uint8Array, itemSize: number): void {
  const count = Math.floor(source.length / itemSize);
  if (count % 8 !== 0) {
    target.set(source);
    return;
  }
  const rowLength = count / 8;
  for (let byte = 0; byte < itemSize; byte++) {
    const rows = byte * 8 * rowLength;
    for (let group = 0; group < rowLength; group++) {
      let from = rows + group;
      let low = source[from]!;
      from += rowLength;
      low |= source[from]! << 8;
      from += rowLength;
      low |= source[from]! << 16;
      from += rowLength;
      low |= source[from]! << 24;
      from += rowLength;
      let high = source[from]!;
      from += rowLength;
      high |= source[from]! << 8;
      from += rowLength;
      high |= source[from]! << 16;
      from += rowLength;
      high |= source[from]! << 24;

      // Transposes eight by eight bits (Hacker's Delight, 7-3): bytes become items.
      let swap = (low ^ (low >>> 7)) & 0x00aa00aa;
      low ^= swap ^ (swap << 7);
      swap = (low ^ (low >>> 14)) & 0x0000cccc;
      low ^= swap ^ (swap << 14);
      swap = (high ^ (high >>> 7)) & 0x00aa00aa;
      high ^= swap ^ (swap << 7);
      swap = (high ^ (high >>> 14)) & 0x0000cccc;
      high ^= swap ^ (swap << 14);
      const first = (low & 0x0f0f0f0f) | ((high & 0x0f0f0f0f) << 4);
      const second = ((low >>> 4) & 0x0f0f0f0f) | (high & 0xf0f0f0f0);

      let to = group * 8 * itemSize + byte;
      for (let shift = 0; shift < 32; shift += 8) {
        target[to] = (first >>> shift) & 255;
        to += itemSize;
      }
      for (let shift = 0; shift < 32; shift += 8) {
        target[to] = (second >>> shift) & 255;
        to += itemSize;
      }
    }
  }
  target.set(source.subarray(count * itemSize), count * itemSize);
}
