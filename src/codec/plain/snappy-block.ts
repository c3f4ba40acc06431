import { copyMatch } from "./copy-match.js";

/**
 * Decodes one raw Snappy stream.
 * @returns Whether the stream was whole and filled the target exactly.
 */
export function decodeSnappyBlock(source: Uint8Array, target: Uint8Array): boolean {
  const sourceEnd = source.length;
  const targetEnd = target.length;
  let from = 0;
  let announced = 0;
  for (let scale = 1; ; scale *= 128) {
    if (from >= sourceEnd || scale > 2 ** 28) return false;
    const byte = source[from++]!;
    announced += (byte & 127) * scale;
    if (byte < 128) break;
  }
  if (announced !== targetEnd) return false;

  let to = 0;
  while (from < sourceEnd) {
    const tag = source[from++]!;
    const kind = tag & 3;
    if (kind === 0) {
      let literals = tag >>> 2;
      if (literals >= 60) {
        const lengthBytes = literals - 59;
        if (from + lengthBytes > sourceEnd) return false;
        literals = 0;
        for (let index = 0; index < lengthBytes; index++) literals += source[from++]! * 256 ** index;
      }
      literals++;
      if (from + literals > sourceEnd || to + literals > targetEnd) return false;
      target.set(source.subarray(from, from + literals), to);
      from += literals;
      to += literals;
      continue;
    }
    const distanceBytes = kind === 3 ? 4 : kind;
    if (from + distanceBytes > sourceEnd) return false;
    let distance = kind === 1 ? ((tag >>> 5) << 8) | source[from]! : 0;
    if (kind !== 1) {
      for (let index = 0; index < distanceBytes; index++) distance += source[from + index]! * 256 ** index;
    }
    from += distanceBytes;
    const length = kind === 1 ? ((tag >>> 2) & 7) + 4 : (tag >>> 2) + 1;
    if (distance === 0 || distance > to || to + length > targetEnd) return false;
    copyMatch(target, to, distance, length);
    to += length;
  }
  return to === targetEnd;
}
