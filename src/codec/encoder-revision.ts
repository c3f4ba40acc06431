import { createHash } from "node:crypto";
import { createRecentMap } from "../collections/recent-map.js";
import { stringifyJson } from "../json/stringify-json.js";
import type { CodecSpec } from "../zarr/codec-step.js";
import { codecRule, completeCodec } from "../zarr/plan/codec-rules.js";
import type { InnerCodec } from "./blosc/blosc-blocks.js";
import { innerCodecSpec } from "./blosc/inner-encoders.js";
import { deflate } from "./deflate.js";
import { createEncoderSample } from "./encoder-sample.js";
import { encodeZstd } from "./zstd.js";

/** What the output of an encoder depends on besides the version of this package. */
export interface EncoderTraits {
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
  const known = createRecentMap<string>(MAX_KEPT);
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
