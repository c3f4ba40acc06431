import { createHash } from "node:crypto";
import { stringifyJson } from "../model/stringify-json.js";
import { createRecentMap } from "../recent-map.js";
import { codecRule, completeCodec } from "../zarr/codec-rules.js";
import type { CodecSpec } from "../zarr/codec-spec.js";
import type { InnerCodec } from "./blosc/blosc-blocks.js";
import { innerCodecSpec } from "./blosc/inner-encoders.js";
import { deflate } from "./deflate.js";
import { createEncoderSample } from "./encoder-sample.js";
import { isKernelUsed } from "./kernel/kernel-use.js";
import { encodeZstd } from "./zstd.js";

/** What a codec's bytes depend on besides the version of this package. */
export interface EncoderTraits {
  /** Implementation, version, machine: two that say the same are expected to write the same. Asked every time. */
  readonly library: (codec: CodecSpec) => string;
  /**
   * The encoder, where its library's word is not enough; absent: it is. Must not wait.
   * @param codec With all options of its rule, and no others.
   */
  readonly encode?: (bytes: Uint8Array, codec: CodecSpec) => Uint8Array;
}

/** Results that are kept. */
const MAX_KEPT = 256;

/**
 * Makes what tells encoders apart: for each codec with traits, what its library says of itself and a checksum of what it
 * really writes for a fixed sample with the very options. That takes some milliseconds, and is done once for each.
 * @param traits By codec id. Codecs without are the same wherever this package's version is.
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
 * Part of the id of every plan that encodes with a codec whose bytes are not the same everywhere, and so of its chunks'
 * ETags and keys in the cache: an ETag is known before its chunk is, so what could write another chunk must have another.
 * Instances that write the same bytes (one version of Node on one kind of machine) say the same.
 *
 * A version is not enough: Chromium's zlib, which Node has, hashes otherwise where the processor has CRC instructions, and
 * distributions build Node with a zlib of their own. A sample is not enough either, since it does not show everything.
 * @returns Empty where the version of this package says it all.
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
  lz4: { library: kernelRevision },
  blosc: {
    library({ cname, clevel }) {
      const inner = innerCodecSpec(cname as InnerCodec, Number(clevel));
      return `${kernelRevision()}${inner === undefined ? "" : encoderRevision(inner)}`;
    },
  },
});

/** The kernel writes the same wherever it runs. */
function kernelRevision(): string {
  return isKernelUsed() ? "" : "without kernel ";
}

function zstdTraits(encode: typeof encodeZstd): EncoderTraits {
  if (encode === undefined) return { library: () => "numcodecs.js" };
  return {
    library: () => `zstd ${process.versions.zstd} ${process.arch}`,
    encode: (bytes, { level }) => encode(bytes, Number(level)),
  };
}

/** Whatever else a stored document says is not told apart. */
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
