import { copyMatch } from "./copy-match.js";

const MAX_SHORT_DISTANCE = 8191;

/**
 * Decodes one BloscLZ stream (a descendant of FastLZ).
 * @returns Whether the stream was whole and filled the target exactly.
 */
export function decodeBlosclzBlock(source: Uint8Array, target: Uint8Array): boolean {
  const sourceEnd = source.length;
  const targetEnd = target.length;
  let from = 0;
  let to = 0;
  if (from >= sourceEnd) return to === targetEnd;
  // The top bits of the first byte are the format's level, not a match.
  let control = source[from++]! & 31;
  for (;;) {
    if (control < 32) {
      const literals = control + 1;
      if (from + literals > sourceEnd || to + literals > targetEnd) return false;
      for (const end = from + literals; from < end; ) target[to++] = source[from++]!;
    } else {
      let length = (control >>> 5) + 2;
      let distance = (control & 31) << 8;
      if (length === 9) {
        let more: number;
        do {
          if (from >= sourceEnd) return false;
          more = source[from++]!;
          length += more;
        } while (more === 255);
      }
      if (from >= sourceEnd) return false;
      const low = source[from++]!;
      if (low === 255 && distance === 31 << 8) {
        if (from + 2 > sourceEnd) return false;
        distance = ((source[from]! << 8) | source[from + 1]!) + MAX_SHORT_DISTANCE;
        from += 2;
      } else distance += low;
      distance++;
      if (distance > to || to + length > targetEnd) return false;
      copyMatch(target, to, distance, length);
      to += length;
    }
    if (from >= sourceEnd) return to === targetEnd;
    control = source[from++]!;
  }
}
