import { createHash } from "node:crypto";
import { createBoundedMap } from "../collections/bounded-map.js";
import { stringifyJson } from "../json/stringify-json.js";
import type { CodecSpec } from "../zarr/codec-step.js";
import { codecRule, completeCodec } from "../zarr/plan/codec-rules.js";
import type { InnerCodec } from "./blosc/blosc-frame.js";
import { innerCodecSpec } from "./blosc/inner-encoders.js";
import { deflate } from "./deflate.js";
import { encodeZstd } from "./zstd.js";

/**
 * Creates bytes that show how an encoder works: its hashes and tables, how deep it searches, how far back it reaches, and at which places
 * it cuts blocks. They are noise of few and of many values, and copies of earlier bytes from near and from the end of deflate's window.
 * Computed with integers only, so that every machine makes the same.
 * @returns 160 KiB, five windows of deflate.
 */
export function createEncoderSample(): Uint8Array {
  const sample = new Uint8Array(160 * 1024);
  let state = 0x9e3779b9;
  // A xorshift of 32 bits (Marsaglia).
  const random = (bound: number): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % bound;
  };
  for (let at = 0; at < sample.length; ) {
    const end = Math.min(at + 1 + random(1 + random(at < 20_480 ? 40 : 300)), sample.length);
    const reach =
      at === 0 || random(4) === 0 ? 0 : Math.min(at, random(3) === 0 ? 33_000 : 1 + random(33_000));
    const distance = reach === 0 ? 0 : 1 + random(reach);
    // Another kind of noise every 16 KiB.
    const values = [2, 6, 26, 256][(at >>> 14) & 3]!;
    for (; at < end; at++) sample[at] = distance === 0 ? random(values) : sample[at - distance]!;
  }
  return sample;
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
    const { library: libraryOf, encode } = traits[codec.id]!;
    const plain = knownOptions(codec);
    const library = libraryOf(plain);
    if (encode === undefined) return library;
    const key = `${library}\n${stringifyJson(plain)}`;
    let revision = known.get(key);
    if (revision === undefined) {
      const written = createHash("sha256").update(encode(createEncoderSample(), plain)).digest("hex");
      revision = `${library} ${written.slice(0, 16)}`;
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
  gzip: { library: () => NODE_ZLIB, encode: (bytes, { level }) => deflate("gzip", bytes, Number(level)) },
  zlib: { library: () => NODE_ZLIB, encode: (bytes, { level }) => deflate("zlib", bytes, Number(level)) },
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
