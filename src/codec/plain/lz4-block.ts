import { copyMatch } from "./copy-match.js";

/** Below this many bytes a loop is quicker than a call into the engine. */
const SHORT_COPY = 64;

/**
 * Decodes one LZ4 block between the given bounds, and never reads or writes outside them.
 *
 * Not numcodecs.js: its Blosc and LZ4 decoders do not check their input. Corrupt bytes come out as garbage of the right
 * length, or overwrite the WebAssembly heap, after which every later chunk of the thread fails or is wrong.
 * @returns Whether the block was whole and filled the destination exactly.
 */
export function decodeLz4Block(
  source: Uint8Array,
  sourceBegin: number,
  sourceEnd: number,
  target: Uint8Array,
  targetBegin: number,
  targetEnd: number,
): boolean {
  let from = sourceBegin;
  let to = targetBegin;
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
    if (distance === 0 || to - distance < targetBegin || to + length > targetEnd) return false;
    copyMatch(target, to, distance, length);
    to += length;
  }
  return to === targetEnd;
}
