import { copyMatch } from "./copy-match.js";

/** Copies of fewer bytes are faster in a loop than by a call into the engine. */
const SHORT_COPY = 64;

/**
 * Decodes one LZ4 block.
 * @returns Whether the block was whole and filled the target exactly.
 */
export function decodeLz4Block(source: Uint8Array, target: Uint8Array): boolean {
  const sourceEnd = source.length;
  const targetEnd = target.length;
  let from = 0;
  let to = 0;
  while (from < sourceEnd) {
    const token = source[from++]!;

    let literals = token >>> 4;
    if (literals === 15) {
      let more: number;
      do {
        if (from >= sourceEnd) return false;
        more = source[from++]!;
        literals += more;
      } while (more === 255);
    }
    if (from + literals > sourceEnd || to + literals > targetEnd) return false;
    if (literals > SHORT_COPY) {
      target.set(source.subarray(from, from + literals), to);
      from += literals;
      to += literals;
    } else {
      for (const end = from + literals; from < end; ) target[to++] = source[from++]!;
    }
    // The last sequence has literals only.
    if (from === sourceEnd) return to === targetEnd;

    if (from + 2 > sourceEnd) return false;
    const distance = source[from]! | (source[from + 1]! << 8);
    from += 2;
    let length = token & 15;
    if (length === 15) {
      let more: number;
      do {
        if (from >= sourceEnd) return false;
        more = source[from++]!;
        length += more;
      } while (more === 255);
    }
    length += 4;
    if (distance === 0 || distance > to || to + length > targetEnd) return false;
    copyMatch(target, to, distance, length);
    to += length;
  }
  return to === targetEnd;
}
