import { createHash } from "node:crypto";
import { createBoundedMap } from "../collections/bounded-map.js";
import { stringifyJson } from "../json/stringify-json.js";
import type { CodecSpec } from "../zarr/codec-step.js";
import { codecRule, completeCodec } from "../zarr/plan/codec-rules.js";
import type { InnerCodec } from "./blosc/blosc-frame.js";
import { innerCodecSpec } from "./blosc/inner-encoders.js";
import { deflate } from "./deflate.js";
import { encodeZstd } from "./zstd.js";

/** The window of deflate. Matches begin to be out of reach somewhat before its end. */
const WINDOW_BYTES = 32 * 1024;

/**
 * Creates bytes that show how an encoder works: its hashes and tables, how deep it searches, whether it takes matches of three
 * bytes, how far back it reaches, and at which places it cuts blocks. Computed with integers only, so that every machine makes
 * the same.
 * @returns 152 KiB, nearly five windows of deflate.
 */
export function createEncoderSample(): Uint8Array {
  const sample = new Uint8Array(152 * 1024);
  const random = createRandom();
  let end = 0;
  const next = (kibibytes: number) => {
    const begin = end;
    end += kibibytes * 1024;
    return sample.subarray(begin, end);
  };
  fillRecords(next(12), random);
  fillNumbers(next(24), random);
  fillPlanes(next(16), random);
  fillText(next(24), random);
  fillNoise(next(20), random);
  // 8 KiB stay zero, as in a chunk that is partly outside of its array.
  next(8);
  fillCopies(sample, end, random);
  return sample;
}

/** An integer below the bound. */
type Random = (bound: number) => number;

/** A xorshift of 32 bits (Marsaglia). */
function createRandom(): Random {
  let state = 0x9e3779b9;
  return (bound) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % bound;
  };
}

/** Records with the same beginning: only the highest level follows their chains to the end. */
function fillRecords(target: Uint8Array, random: Random): void {
  for (let i = 0; i < target.length; i++) {
    target[i] = i % 8 < 4 ? 0xa0 + (i % 8) : random(4);
  }
}

/** A slow curve of 32-bit integers with noise in its lowest bits, as measured values are. */
function fillNumbers(target: Uint8Array, random: Random): void {
  const view = new DataView(target.buffer, target.byteOffset, target.byteLength);
  for (let i = 0; i < target.length; i += 4) {
    const phase = (i >>> 2) & 1023;
    view.setInt32(i, phase * (1023 - phase) * 5 + random(8), true);
  }
}

/** Runs of slowly changing bytes, as a shuffle filter leaves them. */
function fillPlanes(target: Uint8Array, random: Random): void {
  let value = 0;
  for (let i = 0; i < target.length; i++) {
    if (random(24) === 0) value += random(3) - 1;
    target[i] = value;
  }
}

/** Words of two to nine letters, short ones more often: matches of three and four bytes near and far. */
function fillText(target: Uint8Array, random: Random): void {
  const words = Array.from({ length: 300 }, () =>
    Uint8Array.from({ length: 2 + random(1 + random(8)) }, () => 97 + random(1 + random(26))),
  );
  for (let i = 0; i < target.length; ) {
    for (const letter of words[random(1 + random(words.length))] as Uint8Array) target[i++] = letter;
    target[i++] = 32;
  }
}

/** Noise, more than fits into a block of deflate, so that one block is stored as it is. */
function fillNoise(target: Uint8Array, random: Random): void {
  for (let i = 0; i < target.length; i++) target[i] = random(256);
}

/** Copies of earlier bytes, from 1 byte to a little more than a window back, with a byte of noise between. */
function fillCopies(sample: Uint8Array, begin: number, random: Random): void {
  for (let i = begin; i < sample.length; ) {
    const distance =
      random(3) === 0 ? WINDOW_BYTES - 300 + random(320) : 1 + random(1 + random(WINDOW_BYTES));
    const end = Math.min(i + 3 + random(1 + random(300)), sample.length);
    for (; i < end; i++) sample[i] = sample[i - distance] as number;
    if (i < sample.length) sample[i++] = random(256);
  }
}

/** What the output of an encoder depends on besides the version of this package. */
interface EncoderTraits {
  /** Implementation, version and machine. Called each time. */
  readonly library: (codec: CodecSpec) => string;
  /**
   * The encoder, synchronous; absent if `library` is enough to tell its output apart.
   * @param codec With all options of its rule, and no others.
   */
  readonly encode?: (bytes: Uint8Array, codec: CodecSpec) => Uint8Array;
}

/** Maximum number of remembered results. */
const MAX_KEPT = 256;

/**
 * Creates the function that tells encoders apart: by their library and the checksum of a fixed sample that they encode with the
 * codec's options. Encoding the sample takes some milliseconds, once per codec and options.
 * @param traits By codec id. Other codecs write the same with every copy of this package's version.
 */
export function createEncoderRevision(
  traits: Readonly<Record<string, EncoderTraits>>,
): (codec: CodecSpec) => string {
  const known = createBoundedMap<string>({ maxEntries: MAX_KEPT });
  return (codec) => {
    if (!Object.hasOwn(traits, codec.id)) return "";
    const { library: libraryOf, encode } = traits[codec.id] as EncoderTraits;
    const plain = knownOptions(codec);
    const library = libraryOf(plain);
    if (encode === undefined) return library;
    const key = `${library}\n${stringifyJson(plain)}`;
    let revision = known.get(key);
    if (revision === undefined) {
      revision = `${library} ${checksumOf(encode(createEncoderSample(), plain))}`;
      known.set(key, revision);
    }
    return revision;
  };
}

const NODE_ZLIB = `zlib ${process.versions.zlib} ${process.arch}`;

/**
 * Revision of a codec's encoder, which becomes part of plan ids, ETags and cache keys: an ETag is known before its chunk, so an
 * encoder with other output must have another one. It is the same for one version of Node on one kind of machine.
 *
 * A version alone is not enough: Chromium's zlib, which Node has, hashes differently if the processor has CRC instructions, and
 * distributions build Node with a zlib of their own. A sample alone is not enough, since it does not show everything.
 * @returns Empty if the encoder's output depends on the version of this package only.
 */
export const encoderRevision: (codec: CodecSpec) => string = createEncoderRevision({
  gzip: {
    library: () => NODE_ZLIB,
    encode: (bytes, { level }) => deflate("gzip", bytes, Number(level)),
  },
  zlib: {
    library: () => NODE_ZLIB,
    encode: (bytes, { level }) => deflate("zlib", bytes, Number(level)),
  },
  zstd: zstdTraits(encodeZstd),
  blosc: {
    library({ cname, clevel }) {
      const inner = innerCodecSpec(cname as InnerCodec, Number(clevel));
      return inner === undefined ? "" : encoderRevision(inner);
    },
  },
});

function zstdTraits(encode: typeof encodeZstd): EncoderTraits {
  if (encode === undefined) return { library: () => "numcodecs.js" };
  return {
    library: () => `zstd ${process.versions.zstd} ${process.arch}`,
    encode: (bytes, { level }) => encode(bytes, Number(level)),
  };
}

/** The codec with the options of its rule, and no others. */
function knownOptions(codec: CodecSpec): CodecSpec {
  const complete = completeCodec(codec);
  const keys = Object.keys(codecRule(codec.id)?.options ?? {});
  return Object.fromEntries(
    ["id", ...keys].map((key) => [key, complete[key] ?? null]),
  ) as unknown as CodecSpec;
}

function checksumOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 16);
}
