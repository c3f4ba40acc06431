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
