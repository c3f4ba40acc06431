import { copyForward, copyMatch, OVERRUN } from "./copy";

const MAX_SHORT_DISTANCE: usize = 8191;

/**
 * Decodes one BloscLZ stream (a descendant of FastLZ) and never reads or writes outside the bounds.
 * @returns Whether the stream was whole and filled the target exactly.
 */
export function decodeBlosclz(source: usize, sourceEnd: usize, target: usize, targetEnd: usize): bool {
  let from = source;
  let to = target;
  if (from >= sourceEnd) return to == targetEnd;
  // The top bits of the first byte are the format's level, not a match.
  let control = <usize>load<u8>(from++) & 31;
  while (true) {
    if (control < 32) {
      const literals = control + 1;
      if (literals > sourceEnd - from || literals > targetEnd - to) return false;
      if (sourceEnd - from >= OVERRUN && targetEnd - to >= OVERRUN) copyForward(from, to, literals);
      else memory.copy(to, from, literals);
      from += literals;
      to += literals;
    } else {
      let length = (control >> 5) + 2;
      let distance = (control & 31) << 8;
      if (length == 9) {
        let more: usize;
        do {
          if (from >= sourceEnd) return false;
          more = <usize>load<u8>(from++);
          length += more;
          // Checked here, so that the sum cannot wrap around.
          if (length > targetEnd - to) return false;
        } while (more == 255);
      }
      if (from >= sourceEnd) return false;
      const low = <usize>load<u8>(from++);
      if (low == 255 && distance == 31 << 8) {
        if (sourceEnd - from < 2) return false;
        distance = ((<usize>load<u8>(from) << 8) | <usize>load<u8>(from, 1)) + MAX_SHORT_DISTANCE;
        from += 2;
      } else distance += low;
      distance++;
      if (distance > to - target || length > targetEnd - to) return false;
      copyMatch(to, distance, length, targetEnd - to);
      to += length;
    }
    if (from >= sourceEnd) return to == targetEnd;
    control = <usize>load<u8>(from++);
  }
}
