/** Copies of fewer bytes are faster in a loop than by a call into the engine. */
const SHORT_MATCH = 32;

/**
 * Copies `length` bytes to `to` from `distance` bytes before it, as in LZ77: if both overlap, the pattern
 * repeats. The caller has checked the bounds.
 */
export function copyMatch(target: Uint8Array, to: number, distance: number, length: number): void {
  if (length <= SHORT_MATCH) {
    for (let from = to - distance, end = to + length; to < end; ) target[to++] = target[from++]!;
    return;
  }
  if (distance === 1) {
    target.fill(target[to - 1]!, to, to + length);
    return;
  }
  // The repeating part doubles with every copy.
  const begin = to - distance;
  const end = to + length;
  let known = distance;
  while (to < end) {
    const some = Math.min(known, end - to);
    target.copyWithin(to, begin, begin + some);
    to += some;
    known += some;
  }
}

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
