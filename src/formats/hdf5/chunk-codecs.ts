import type { CodecSpec } from "../../zarr/codec-step.js";
import { areKnownToClients, filterCodecs } from "./filter-codecs.js";
import type { Hdf5Filter, Hdf5Type } from "./hdf5-model.js";
import type { Hdf5Chunks } from "./read-chunk-index.js";

/** Codecs of all chunks of a dataset, in the form that `FileArray` and `ListedChunks` have. */
export interface ChunkCodecs {
  /** Codecs of most chunks. */
  readonly codecs: readonly CodecSpec[];
  readonly compressorCount: 0 | 1;
  /** Codecs of the other chunks. */
  readonly variants?: readonly (readonly CodecSpec[])[];
  /** Variant of each chunk of the list; undefined if all are 0. */
  readonly chunkVariants?: Uint8Array;
  /** Stored length of each chunk, without what belongs to no codec. */
  readonly byteLengths: Uint32Array;
  /** True if clients of Zarr know `codecs`, so that most chunks can be passed through. */
  readonly areKnownToClients: boolean;
}

/** Chunks with the same codecs. */
interface Kind {
  readonly codecs: readonly CodecSpec[];
  readonly compressorCount: 0 | 1;
  readonly masks: number[];
  count: number;
}

/** Most kinds: variants are numbered by bytes. */
const MAX_KINDS = 256;

/**
 * Finds the codecs of the chunks of a dataset; a reason if nothing here decodes some of them.
 * @param filters The pipeline, in the order in which it was applied.
 * @param chunkByteLength Bytes of a whole chunk before it is filtered.
 */
export function chunkCodecs(
  filters: readonly Hdf5Filter[],
  type: Hdf5Type,
  chunkByteLength: number,
  chunks: Hdf5Chunks,
): ChunkCodecs | { readonly reason: string } {
  const bits = bitsCodecs(type);
  if (typeof bits === "string") return { reason: bits };
  const kinds = new Map<string, Kind>();
  const trimmed = new Map<number, number>();
  for (const [mask, count] of countMasks(chunks)) {
    const found = filterCodecs(filters, chunkByteLength, mask);
    if ("reason" in found) return found;
    const { codecs, compressorCount, trimmedBytes } = found;
    if (trimmedBytes > 0) trimmed.set(mask, trimmedBytes);
    const key = JSON.stringify(codecs);
    const kind = kinds.get(key) ?? { codecs: [...bits, ...codecs], compressorCount, masks: [], count: 0 };
    kind.count += count;
    kind.masks.push(mask);
    kinds.set(key, kind);
    if (kinds.size > MAX_KINDS) return { reason: `chunks skip filters in more than ${MAX_KINDS} ways` };
  }
  const [main, ...others] = [...kinds.values()].sort((a, b) => b.count - a.count) as [Kind, ...Kind[]];
  return {
    codecs: main.codecs,
    compressorCount: main.compressorCount,
    ...(others.length === 0
      ? {}
      : { variants: others.map(({ codecs }) => codecs), chunkVariants: variantsOf(chunks, others) }),
    byteLengths: trimmedLengths(chunks, trimmed),
    areKnownToClients: areKnownToClients(main.codecs),
  };
}

/** Counts the chunks per filter mask. A dataset without chunks has one mask, as if it had a chunk with all filters. */
function countMasks({ offsets, filterMasks }: Hdf5Chunks): Map<number, number> {
  if (filterMasks === undefined) return new Map([[0, offsets.length]]);
  const counts = new Map<number, number>();
  for (const [i, mask] of filterMasks.entries()) {
    if (offsets[i] !== -1) counts.set(mask, (counts.get(mask) ?? 0) + 1);
  }
  return counts;
}

function variantsOf({ offsets, filterMasks }: Hdf5Chunks, others: readonly Kind[]): Uint8Array {
  const variants = new Uint8Array(offsets.length);
  const variantOf = new Map(others.flatMap(({ masks }, i) => masks.map((mask) => [mask, i + 1])));
  for (const [i, mask] of (filterMasks ?? []).entries()) {
    if (offsets[i] !== -1) variants[i] = variantOf.get(mask) ?? 0;
  }
  return variants;
}

/** Takes away what follows the codecs' bytes. A shorter chunk becomes one of no bytes, which cannot be decoded. */
function trimmedLengths(
  { byteLengths, filterMasks }: Hdf5Chunks,
  trimmed: ReadonlyMap<number, number>,
): Uint32Array {
  if (trimmed.size === 0) return byteLengths;
  return byteLengths.map((length, i) => length - Math.min(length, trimmed.get(filterMasks?.[i] ?? 0) ?? 0));
}

/** Returns the codec of integers of which some bits do not count; a reason if nothing here reads them. */
function bitsCodecs(type: Hdf5Type): readonly CodecSpec[] | string {
  if (type.kind === "enum") return bitsCodecs(type.base);
  if (type.kind !== "integer") return [];
  const { size, precision, bitOffset, isSigned, byteOrder } = type;
  if (precision === 8 * size && bitOffset === 0) return [];
  if (![1, 2, 4, 8].includes(size) || precision < 1 || bitOffset + precision > 8 * size) {
    return `integers of ${precision} bits from bit ${bitOffset} on in ${size} bytes are not decoded`;
  }
  const endian = byteOrder === "<" ? "little" : "big";
  return [{ id: "hdf5-bits", size, precision, offset: bitOffset, signed: isSigned, endian }];
}
