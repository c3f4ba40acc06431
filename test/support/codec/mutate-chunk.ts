/** What was done to a chunk, and what came of it. */
export interface Mutation {
  /** One of `MUTATION_KINDS`. */
  readonly kind: string;
  /** In memory of their own, which whoever takes them may keep. */
  readonly bytes: Uint8Array;
}

/** Bytes at the front in which every known format keeps its header. */
const HEAD_BYTES = 64;
/** Longest run that is inserted, removed or overwritten. */
const MAX_RUN = 600;
/** Longest noise that is no longer than the chunk it stands for. */
const MAX_NOISE = 4096;

/** Values at which comparisons, signs and sums turn over; those of a length are added to them. */
const EXTREMES = [
  ...[0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 0x7f, 0x80, 0xfe, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x10000],
  ...[0xffffff, 0x7fffffef, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff],
];

type Draw = (below: number) => number;
type Mutate = (encoded: Uint8Array, other: Uint8Array, draw: Draw) => Uint8Array;

const MUTATIONS: Readonly<Record<string, Mutate>> = {
  "bits flipped": (encoded, _, draw) => flipBits(encoded, encoded.length, draw),
  "bits of the head flipped": (encoded, _, draw) => flipBits(encoded, HEAD_BYTES, draw),
  "bytes replaced": (encoded, _, draw) => {
    const bytes = copyOf(encoded);
    for (let i = draw(16); i >= 0 && bytes.length > 0; i--) bytes[draw(bytes.length)] = draw(256);
    return bytes;
  },
  "an extreme in the head": (encoded, _, draw) => {
    const bytes = copyOf(encoded);
    setExtreme(bytes, draw(Math.min(bytes.length, HEAD_BYTES)), draw);
    return bytes;
  },
  "an extreme where the head points": (encoded, _, draw) => {
    const bytes = copyOf(encoded);
    setExtreme(bytes, placeInHead(bytes, draw), draw);
    return bytes;
  },
  "an extreme anywhere": (encoded, _, draw) => {
    const bytes = copyOf(encoded);
    setExtreme(bytes, draw(bytes.length), draw);
    return bytes;
  },
  "cut short": (encoded, _, draw) => copyOf(encoded.subarray(0, draw(encoded.length))),
  // What compares lengths first would never be asked for more than that comparison.
  "cut short, with its length": (encoded, _, draw) =>
    withLengthOf(encoded, copyOf(encoded.subarray(0, draw(encoded.length)))),
  "made longer": (encoded, _, draw) => joined(encoded, noise(1 + draw(MAX_RUN), draw)),
  "made longer, with its length": (encoded, _, draw) =>
    withLengthOf(encoded, joined(encoded, noise(1 + draw(MAX_RUN), draw))),
  "a run removed": (encoded, _, draw) => {
    const begin = draw(encoded.length);
    const end = begin + 1 + draw(MAX_RUN);
    return withLengthOf(encoded, joined(encoded.subarray(0, begin), encoded.subarray(end)));
  },
  "a run put in": (encoded, _, draw) => {
    const begin = draw(encoded.length);
    const run = draw(2) === 0 ? noise(1 + draw(MAX_RUN), draw) : constant(draw);
    return withLengthOf(encoded, joined(encoded.subarray(0, begin), run, encoded.subarray(begin)));
  },
  // 255s are lengths without an end in LZ4, zeros are offsets that no match may have.
  "a run of one byte": (encoded, _, draw) => {
    const bytes = copyOf(encoded);
    const run = constant(draw);
    const begin = draw(bytes.length);
    bytes.set(run.subarray(0, bytes.length - begin), begin);
    return bytes;
  },
  "a run copied": (encoded, _, draw) => {
    const bytes = copyOf(encoded);
    const from = draw(bytes.length);
    bytes.copyWithin(draw(bytes.length), from, from + 1 + draw(MAX_RUN));
    return bytes;
  },
  "two chunks joined at one place": (encoded, other, draw) => {
    const place = draw(Math.min(encoded.length, other.length));
    return joined(encoded.subarray(0, place), other.subarray(place));
  },
  "two chunks joined, with their length": (encoded, other, draw) =>
    withLengthOf(
      encoded,
      joined(encoded.subarray(0, draw(encoded.length)), other.subarray(draw(other.length))),
    ),
  "the head of another chunk": (encoded, other, draw) => {
    const place = draw(HEAD_BYTES);
    return joined(other.subarray(0, place), encoded.subarray(place));
  },
  "noise behind the head": (encoded, _, draw) => {
    const bytes = copyOf(encoded);
    const place = draw(HEAD_BYTES);
    if (place < bytes.length) bytes.set(noise(bytes.length - place, draw), place);
    return bytes;
  },
  noise: (_encoded, _, draw) => noise(draw(MAX_NOISE), draw),
};

/** Beside those of the table. */
const SEVERAL = "several of these";

/** Names of everything that is done to chunks. */
export const MUTATION_KINDS: readonly string[] = Object.freeze([...Object.keys(MUTATIONS), SEVERAL]);

/**
 * Damaged copies of a chunk without end, each kind in its turn: flipped bits, extremes in header fields and in the
 * places they point to, cuts, runs, splices with other chunks, noise. Knows no format; what it takes for a field is any
 * number in the first bytes. A copy may by chance be the chunk itself.
 * @param encoded A good chunk, which is not changed.
 * @param others Chunks to splice it with, of the same codec or not; none for the chunk itself.
 * @param random Numbers in [0, 1): the same ones give the same copies.
 */
export function* mutations(
  encoded: Uint8Array,
  others: readonly Uint8Array[],
  random: () => number,
): Generator<Mutation, never, void> {
  const draw: Draw = (below) => Math.floor(random() * below);
  const all = Object.entries(MUTATIONS);
  const mutated = (bytes: Uint8Array, mutate: Mutate) =>
    mutate(bytes, others[draw(others.length)] ?? encoded, draw);
  for (;;) {
    for (const [kind, mutate] of all) yield { kind, bytes: mutated(encoded, mutate) };
    let bytes = encoded;
    for (let i = draw(3); i >= -1; i--) bytes = mutated(bytes, all[draw(all.length)]![1]);
    yield { kind: SEVERAL, bytes };
  }
}

/** Not `slice`, which of a Buffer is a view. */
function copyOf(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes);
}

function flipBits(encoded: Uint8Array, within: number, draw: Draw): Uint8Array {
  const bytes = copyOf(encoded);
  const end = Math.min(within, bytes.length);
  for (let i = draw(8); i >= 0 && end > 0; i--) bytes[draw(end)]! ^= 1 << draw(8);
  return bytes;
}

/** Writes an extreme in 1, 2, 4 or 8 bytes, of either byte order, as far as there is room. */
function setExtreme(bytes: Uint8Array, place: number, draw: Draw): void {
  const near = [bytes.length, bytes.length - 1, bytes.length + 1, bytes.length - place];
  const choices = [...EXTREMES, ...near];
  const value = BigInt(choices[draw(choices.length)]! >>> 0);
  const width = 1 << draw(4);
  const isBigEndian = draw(4) === 0;
  const isSignExtended = width === 8 && draw(2) === 0;
  for (let i = 0; i < width && place + i < bytes.length; i++) {
    const weight = isBigEndian ? width - 1 - i : i;
    bytes[place + i] = isSignExtended && weight >= 4 ? 0xff : Number((value >> BigInt(8 * weight)) & 0xffn);
  }
}

/** A place that a little-endian number in the head is the offset of, such as the length of a block's stream. */
function placeInHead(bytes: Uint8Array, draw: Draw): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const places: number[] = [];
  for (let at = 0; at + 4 <= Math.min(bytes.length, HEAD_BYTES); at += 4) {
    const place = view.getUint32(at, true);
    if (place >= 4 && place < bytes.length) places.push(place);
  }
  return places[draw(places.length)] ?? draw(bytes.length);
}

/** Where a number in the first 16 bytes is the old length, it becomes the new one. */
function withLengthOf(old: Uint8Array, bytes: Uint8Array): Uint8Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at + 4 <= Math.min(bytes.length, 16); at += 4) {
    if (view.getUint32(at, true) === old.length) view.setUint32(at, bytes.length, true);
  }
  return bytes;
}

function joined(...parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let to = 0;
  for (const part of parts) {
    bytes.set(part, to);
    to += part.length;
  }
  return bytes;
}

function noise(byteLength: number, draw: Draw): Uint8Array {
  const bytes = new Uint8Array(byteLength);
  for (let i = 0; i < byteLength; i++) bytes[i] = draw(256);
  return bytes;
}

function constant(draw: Draw): Uint8Array {
  return new Uint8Array(1 + draw(MAX_RUN)).fill([0, 0xff, 0xf0, 0x0f, 0x10, draw(256)][draw(6)]!);
}
