import { ZpublishError } from "../../errors.js";
import type { CodecSpec } from "../codec-spec.js";
import type { StoredArray } from "../stored-array.js";
import { askedCodec } from "./asked-codec.js";
import { completeCodec, encodedByteLength, isInternal, sameCodec, servedCodec } from "./codec-rules.js";

/** Codecs that an operator asks for; what is undefined stays as stored. */
export interface AskedCodecs {
  readonly compressor?: CodecSpec | null | undefined;
  readonly filters?: readonly CodecSpec[] | null | undefined;
}

/** The codecs of a served document. */
export interface ServedCodecs {
  readonly filters: readonly CodecSpec[];
  readonly compressor: CodecSpec | null;
  /** Inner codec of Blosc that is asked for, or stored, and served as lz4; undefined if there is none. */
  readonly replacedCname: string | undefined;
}

/** Inner codecs of Blosc that are decoded but not encoded. What would be encoded with them is encoded with lz4. */
const DECODED_CNAMES: readonly unknown[] = ["lz4hc", "blosclz"];

/**
 * Chooses the codecs of the served document: those that are asked for, else the stored ones as far as Zarr v2 has them.
 * @param isRechunk Whether every codec has to encode again, stored ones too.
 * @throws ZpublishError `unsupported` or `invalid-config`, naming the array.
 */
export function servedCodecs(stored: StoredArray, asked: AskedCodecs, isRechunk: boolean): ServedCodecs {
  const said = stored.codecs.filter((codec) => !isInternal(codec)).map(servedCodec);
  const isCompressor = stored.compressorCount === 1 || said.length < stored.codecs.length;
  const last = isCompressor ? said.at(-1) : undefined;
  const storedCompressor = last !== undefined && canCompress(last, stored) ? last : null;
  const storedFilters = storedCompressor === null ? said : said.slice(0, -1);

  const askedCompressor = asked.compressor === undefined ? stored.servedCompressor : asked.compressor;
  const compressor =
    askedCompressor === undefined
      ? storedCompressor
      : askedCompressor && resolveAsked(stored, askedCompressor, "compressor", storedCompressor);
  const filters =
    asked.filters === undefined
      ? (stored.servedFilters ?? storedFilters)
      : (asked.filters ?? []).map((filter, index) =>
          resolveAsked(stored, filter, "filter", storedFilters[index] ?? null),
        );
  if (stored.dataType.kind === "O" && !sameChain(filters, storedFilters)) {
    throw new ZpublishError(
      "unsupported",
      `array '${stored.path}': items of ${stored.dataType.numpyName} exist only through their filters, which must stay`,
    );
  }
  const chain = compressor === null ? filters : [...filters, compressor];
  const kept = isRechunk ? 0 : commonLength(stored.codecs, chain);
  const served = chain.map((codec, index) => (index < kept ? codec : encodedCodec(codec)));
  return {
    filters: served.slice(0, filters.length),
    compressor: served[filters.length] ?? null,
    replacedCname: chain.find((codec, index) => codec !== served[index])?.cname as string | undefined,
  };
}

/** Whether the outermost codec that is served is a compressor: v2 calls it so, or its output has no fixed length. */
function canCompress(codec: CodecSpec, stored: StoredArray): boolean {
  if (stored.compressorCount === 1 && stored.codecs.at(-1)?.id === codec.id) return true;
  return encodedByteLength(completeCodec(codec), 0) === null;
}

/** Resolves a codec that is asked for. One that is stored already needs no check: it stays as it is. */
function resolveAsked(
  stored: StoredArray,
  codec: CodecSpec,
  role: "compressor" | "filter",
  existing: CodecSpec | null,
): CodecSpec {
  if (existing !== null && sameCodec(codec, existing)) return existing;
  const resolved = askedCodec(codec, role, stored);
  return existing !== null && sameCodec(resolved, existing) ? existing : resolved;
}

function sameChain(a: readonly CodecSpec[], b: readonly CodecSpec[]): boolean {
  return a.length === b.length && commonLength(a, b) === a.length;
}

/** The codec that encodes what is stored with, or asked for as, this one. */
export function encodedCodec(codec: CodecSpec): CodecSpec {
  return codec.id === "blosc" && DECODED_CNAMES.includes(codec.cname) ? { ...codec, cname: "lz4" } : codec;
}

/** Counts the codecs that two chains have in common, innermost first. They need no work. */
export function commonLength(a: readonly CodecSpec[], b: readonly CodecSpec[]): number {
  let count = 0;
  while (count < a.length && count < b.length && sameCodec(a[count]!, b[count]!)) count++;
  return count;
}
