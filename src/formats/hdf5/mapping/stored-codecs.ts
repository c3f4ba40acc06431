import { ZpublishError } from "../../../errors.js";
import { DEFAULT_COMPRESSOR } from "../../../zarr/codec-step.js";
import type { FileArray } from "../../file-index.js";
import { chunkCodecs } from "../chunk-codecs.js";
import type { Hdf5Filter, Hdf5Type } from "../hdf5-model.js";
import type { Hdf5Chunks } from "../read-chunk-index.js";
import type { MappedType } from "./map-type.js";

/** Codecs of stored chunks, and those that clients get in their place if they know them not. */
export type StoredCodecs = Pick<
  FileArray,
  "codecs" | "compressorCount" | "variants" | "servedFilters" | "servedCompressor"
> & {
  readonly byteLengths: Uint32Array;
  /** Variant of each chunk; undefined if all are 0. */
  readonly chunkVariants?: Uint8Array;
};

const NO_CHUNKS: Hdf5Chunks = { offsets: new Float64Array(0), byteLengths: new Uint32Array(0) };

/**
 * Finds the codecs of the chunks of a dataset.
 * @throws ZpublishError `unsupported` if nothing here decodes them
 */
export function storedCodecs(
  filters: readonly Hdf5Filter[],
  type: Hdf5Type,
  mapped: MappedType,
  chunkByteLength: number,
  chunks: Hdf5Chunks,
): StoredCodecs {
  const found = chunkCodecs(filters, withoutArrays(type), chunkByteLength, chunks);
  if ("reason" in found) throw new ZpublishError("unsupported", found.reason);
  const { areKnownToClients, variants, codecs, ...places } = found;
  const isKnown = areKnownToClients && mapped.codecs.length === 0;
  return {
    ...places,
    codecs: [...mapped.codecs, ...codecs],
    ...(variants && { variants: variants.map((variant) => [...mapped.codecs, ...variant]) }),
    ...(!isKnown && {
      servedFilters: [],
      servedCompressor: filters.length === 0 ? null : DEFAULT_COMPRESSOR,
    }),
  };
}

/** Codecs of a dataset's items alone, without filters. @throws as {@link storedCodecs} */
export function itemCodecs(type: Hdf5Type, mapped: MappedType): StoredCodecs {
  return storedCodecs([], type, mapped, mapped.storedSize, NO_CHUNKS);
}

function withoutArrays(type: Hdf5Type): Hdf5Type {
  return type.kind === "array" ? withoutArrays(type.base) : type;
}
