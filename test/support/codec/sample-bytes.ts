import { createRandom } from "../../../bench/random.js";

/** What bytes are like, by name. Each is made for items of a size and from a seed, of any length. */
const SAMPLES = {
  smooth,
  counting,
  noise: (byteLength, _itemSize, seed) => noise(byteLength, seed),
  repeating: (byteLength) => new Uint8Array(byteLength).map((_, index) => index % 7),
  zeros: (byteLength) => new Uint8Array(byteLength),
  constant: constantItems,
  words,
  farMatches,
  nearMatches,
} as const satisfies Record<string, (byteLength: number, itemSize: number, seed: number) => Uint8Array>;

/** One character of bytes that {@link sampleOf} makes. */
export type SampleKind = keyof typeof SAMPLES;

/** All characters there are. */
export const SAMPLE_KINDS = Object.keys(SAMPLES) as readonly SampleKind[];

/**
 * Bytes of one character: smooth floats, counting integers, noise, a short pattern, zeros, one item again and again,
 * words, matches farther away than LZ4 reaches, matches that overlap themselves.
 * @param itemSize Size of the items that the bytes look like; default 4.
 * @param seed Of what is random in them: the same gives the same bytes.
 */
export function sampleOf(kind: SampleKind, byteLength: number, itemSize = 4, seed = 1): Uint8Array {
  return SAMPLES[kind](byteLength, itemSize, seed);
}

/** Bytes of every character, of one length. */
export function sampleBytes(byteLength: number): Record<SampleKind, Uint8Array> {
  const entries = SAMPLE_KINDS.map((kind) => [kind, sampleOf(kind, byteLength)]);
  return Object.fromEntries(entries) as Record<SampleKind, Uint8Array>;
}

type NumbersConstructor = new (length: number) => Uint8Array | Int16Array | Float32Array | Float64Array;

/** Numbers of the widest type that whole items are made of. */
function smooth(byteLength: number, itemSize: number): Uint8Array {
  const width = [8, 4, 2].find((bytes) => itemSize % bytes === 0) ?? 1;
  const Constructor = { 8: Float64Array, 4: Float32Array, 2: Int16Array, 1: Uint8Array }[width];
  const items = new (Constructor as NumbersConstructor)(Math.ceil(byteLength / width));
  for (let index = 0; index < items.length; index++) items[index] = Math.sin(index / 50) * 100;
  return new Uint8Array(items.buffer as ArrayBuffer, 0, byteLength);
}

/** Little-endian integers of any width. */
function counting(byteLength: number, itemSize: number): Uint8Array {
  const bytes = new Uint8Array(byteLength);
  const width = Math.min(itemSize, 4);
  for (let at = 0, value = 0; at < byteLength; at += itemSize, value += 3) {
    for (let byte = 0; byte < width; byte++) bytes[at + byte] = value >>> (8 * byte);
  }
  return bytes;
}

function noise(byteLength: number, seed: number): Uint8Array {
  const bytes = new Uint8Array(byteLength);
  let state = (seed * 2 + 1) >>> 0;
  for (let index = 0; index < byteLength; index++) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    bytes[index] = state >>> 24;
  }
  return bytes;
}

function constantItems(byteLength: number, itemSize: number, seed: number): Uint8Array {
  const item = noise(itemSize, seed);
  return new Uint8Array(byteLength).map((_, index) => item[index % itemSize]!);
}

const WORDS = "the of temperature and at 2 m above ground in kelvin pressure wind-speed, 0.1 0.25; lon lat\n"
  .split(" ")
  .map((word) => Buffer.from(`${word} `));

function words(byteLength: number, _itemSize: number, seed: number): Uint8Array {
  const random = createRandom(seed);
  const bytes = new Uint8Array(byteLength);
  for (let at = 0; at < byteLength; ) {
    for (const letter of WORDS[Math.floor(random() * WORDS.length)]!) bytes[at++] = letter;
  }
  return bytes;
}

/** LZ4 reaches 65,535 bytes back. */
const FAR_DISTANCES = [65_535, 65_536, 65_537, 70_001, 131_071];

/** Noise, a quarter of which was there before: as far away as LZ4 just reaches, and farther. */
function farMatches(byteLength: number, _itemSize: number, seed: number): Uint8Array {
  const random = createRandom(seed);
  const bytes = noise(byteLength, seed);
  for (let at = 0; at < byteLength; at += 1 + Math.floor(random() * 4000)) {
    const distance = FAR_DISTANCES[Math.floor(random() * FAR_DISTANCES.length)]!;
    const end = Math.min(at + 4 + Math.floor(random() * 1000), byteLength);
    if (distance > at) continue;
    while (at < end) {
      bytes[at] = bytes[at - distance]!;
      at++;
    }
  }
  return bytes;
}

const MAX_NEAR_DISTANCE = 32;

/** Short noise, and then the last 1 to 32 bytes again and again. */
function nearMatches(byteLength: number, _itemSize: number, seed: number): Uint8Array {
  const random = createRandom(seed);
  const bytes = noise(byteLength, seed);
  for (let at = MAX_NEAR_DISTANCE; at < byteLength; at += 1 + Math.floor(random() * 20)) {
    const distance = 1 + Math.floor(random() * MAX_NEAR_DISTANCE);
    const end = Math.min(at + 4 + Math.floor(random() ** 3 * 600), byteLength);
    while (at < end) {
      bytes[at] = bytes[at - distance]!;
      at++;
    }
  }
  return bytes;
}
