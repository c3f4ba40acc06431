import { ZpublishError } from "../errors.js";
import type { StoredArray } from "../source/source.js";
import { askedCodec } from "./asked-codec.js";
import { completeCodec, encodedByteLength, isV3Only, sameCodec, servedCodec } from "./codec-rules.js";
import type { CodecSpec } from "./codec-spec.js";

/** Codecs asked for; what is undefined stays as stored. */
export interface AskedCodecs {
  readonly compressor?: CodecSpec | null | undefined;
  readonly filters?: readonly CodecSpec[] | null | undefined;
}

/** The codecs of a served document. */
export interface ServedCodecs {
  readonly filters: readonly CodecSpec[];
  readonly compressor: CodecSpec | null;
}

/**
 * What is asked, else what is stored as far as Zarr v2 can say it.
 * @throws ZpublishError `unsupported` or `invalid-config`, naming the array.
 */
export function servedCodecs(stored: StoredArray, asked: AskedCodecs): ServedCodecs {
  const said = stored.codecs.filter((codec) => !isV3Only(codec)).map(servedCodec);
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
      ? storedFilters
      : (asked.filters ?? []).map((filter, index) =>
          resolveAsked(stored, filter, "filter", storedFilters[index] ?? null),
        );
  if (stored.dataType.kind === "O" && !sameChain(filters, storedFilters)) {
    throw new ZpublishError(
      "unsupported",
      `array '${stored.path}': items of ${stored.dataType.numpyName} exist only through their filters, which must stay`,
    );
  }
  return { filters, compressor };
}

/** A compressor that v2 calls so, or the outermost codec of a v3 array once what v2 cannot say is gone. */
function canCompress(codec: CodecSpec, stored: StoredArray): boolean {
  if (stored.compressorCount === 1 && stored.codecs.at(-1)?.id === codec.id) return true;
  return encodedByteLength(completeCodec(codec), 0) === null;
}

/** What is asked and already stored is as it is, even where nobody could ask for it otherwise. */
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

/** How many codecs, innermost first, two chains have in common: nothing has to be done to those. */
export function commonLength(a: readonly CodecSpec[], b: readonly CodecSpec[]): number {
  let count = 0;
  while (count < a.length && count < b.length && sameCodec(a[count]!, b[count]!)) count++;
  return count;
}
