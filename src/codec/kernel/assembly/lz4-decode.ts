import { copyForward, copyMatch, copyMatch32, OVERRUN } from "./copy";

/** Room for 14 literals and a match of 32 bytes. */
const SHORT_SEQUENCE: usize = 48;

/**
 * Decodes one LZ4 block (LZ4 block format description, "Compressed block format") and never reads or writes outside
 * the bounds: it copies byte by byte if there is no room for a copy that overruns.
 * @returns Whether the block was whole and filled the target exactly.
 */
export function decodeLz4(source: usize, sourceEnd: usize, target: usize, targetEnd: usize): bool {
  let from = source;
  let to = target;
  while (from < sourceEnd) {
    const token = <usize>load<u8>(from++);
    let literals = token >> 4;
    let length = token & 15;
    let distance: usize;

    if (literals < 15 && sourceEnd - from >= 19 && targetEnd - to >= SHORT_SEQUENCE) {
      v128.store(to, v128.load(from));
      from += literals;
      to += literals;
      distance = <usize>load<u16>(from);
      from += 2;
      const isLong = length == 15;
      const more = isLong ? <usize>load<u8>(from) : 0;
      const whole = length + 4 + more;
      if (whole <= 32 && distance - 1 < to - target) {
        copyMatch32(to, distance);
        from += isLong ? 1 : 0;
        to += whole;
        continue;
      }
    } else {
      if (literals == 15) {
        let more: usize;
        do {
          if (from >= sourceEnd) return false;
          more = <usize>load<u8>(from++);
          literals += more;
          // Checked here, so that the sum cannot wrap around.
          if (literals > targetEnd - to) return false;
        } while (more == 255);
      }
      if (literals > sourceEnd - from || literals > targetEnd - to) return false;
      if (sourceEnd - from >= literals + OVERRUN && targetEnd - to >= literals + OVERRUN) {
        copyForward(from, to, literals);
      } else memory.copy(to, from, literals);
      from += literals;
      to += literals;
      // The last sequence has literals only.
      if (from == sourceEnd) return to == targetEnd;
      if (sourceEnd - from < 2) return false;
      distance = <usize>load<u16>(from);
      from += 2;
    }

    if (length == 15) {
      let more: usize;
      do {
        if (from >= sourceEnd) return false;
        more = <usize>load<u8>(from++);
        length += more;
        if (length > targetEnd - to) return false;
      } while (more == 255);
    }
    length += 4;
    if (distance == 0 || distance > to - target || length > targetEnd - to) return false;
    copyMatch(to, distance, length, targetEnd - to);
    to += length;
  }
  return to == targetEnd;
}
