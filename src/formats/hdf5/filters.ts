import { hasH5wasm } from "../../codec/file-formats/h5wasm-filters.js";
import { ZpublishError } from "../../errors.js";
import { type CodecSpec, DEFAULT_COMPRESSOR } from "../../zarr/codec-step.js";
import type { FileArray } from "../file-index.js";
import type { Hdf5Chunks } from "./chunk-list.js";
import type { MappedType } from "./datatypes.js";
import type { Hdf5Filter, Hdf5Type } from "./hdf5-model.js";

/** Codecs of stored chunks, and those that clients get in their place if they know them not. */
type StoredCodecs = Pick<
  FileArray,
  "codecs" | "compressorCount" | "variants" | "servedFilters" | "servedCompressor"
> & {
  /** Stored length of each chunk, without what belongs to no codec. */
  readonly byteLengths: Uint32Array;
  /** Variant of each chunk; undefined if all are 0. */
  readonly chunkVariants?: Uint8Array;
};

const NO_STORED_CHUNKS: Hdf5Chunks = { offsets: new Float64Array(0), byteLengths: new Uint32Array(0) };

/** Codecs of a dataset's items alone, without filters. @throws as {@link storedCodecs} */
export function itemCodecs(type: Hdf5Type, mapped: MappedType): StoredCodecs {
  return storedCodecs([], type, mapped, mapped.storedSize, NO_STORED_CHUNKS);
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
 * Finds the codecs of the chunks of a dataset.
 * @param filters The pipeline, in the order in which it was applied.
 * @param chunkByteLength Bytes of a whole chunk before it is filtered.
 * @throws ZpublishError `unsupported` if nothing here decodes some of them
 */
export function storedCodecs(
  filters: readonly Hdf5Filter[],
  type: Hdf5Type,
  mapped: MappedType,
  chunkByteLength: number,
  chunks: Hdf5Chunks,
): StoredCodecs {
  const ofItems = [...mapped.codecs, ...bitsCodecs(type)];
  const kinds = new Map<string, Kind>();
  const trimmed = new Map<number, number>();
  for (const [mask, count] of countMasks(chunks)) {
    const { codecs, compressorCount, trimmedBytes } = filterCodecs(filters, chunkByteLength, mask);
    if (trimmedBytes > 0) trimmed.set(mask, trimmedBytes);
    const key = JSON.stringify(codecs);
    const kind = kinds.get(key) ?? { codecs: [...ofItems, ...codecs], compressorCount, masks: [], count: 0 };
    kind.count += count;
    kind.masks.push(mask);
    kinds.set(key, kind);
    if (kinds.size > MAX_KINDS) throw undecoded(`chunks skip filters in more than ${MAX_KINDS} ways`);
  }
  const [main, ...others] = [...kinds.values()].sort((a, b) => b.count - a.count) as [Kind, ...Kind[]];
  const isKnown = mapped.codecs.length === 0 && areKnownToClients(main.codecs);
  const servedCompressor = filters.length === 0 ? null : DEFAULT_COMPRESSOR;
  return {
    codecs: main.codecs,
    compressorCount: main.compressorCount,
    ...(others.length > 0 && {
      variants: others.map(({ codecs }) => codecs),
      chunkVariants: variantsOf(chunks, others),
    }),
    byteLengths: trimmedLengths(chunks, trimmed),
    ...(!isKnown && { servedFilters: [], servedCompressor }),
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

/** Returns the codec of integers of which some bits do not count. */
function bitsCodecs(type: Hdf5Type): readonly CodecSpec[] {
  if (type.kind === "enum" || type.kind === "array") return bitsCodecs(type.base);
  if (type.kind !== "integer") return [];
  const { size, precision, bitOffset, isSigned, byteOrder } = type;
  if (precision === 8 * size && bitOffset === 0) return [];
  const endian = byteOrder === "<" ? "little" : "big";
  return [{ id: "hdf5-bits", size, precision, offset: bitOffset, signed: isSigned, endian }];
}

const SHUFFLE = 2;
const FLETCHER32 = 3;
const CHECKSUM_BYTES = 4;

/** Filters that only HDF5 decodes. */
const HDF5_ONLY: Readonly<Record<number, string>> = { 4: "szip", 5: "n-bit", 6: "scale-offset" };
/** `SZ_MAX_PIXELS_PER_SCANLINE` */
const MAX_SCANLINE = 4096;
/** Highest id of the filters that are part of HDF5. */
const LAST_OF_HDF5 = 6;

/** Filters that round values when they are written, and do nothing when they are read: BitGroom and Granular BitRound. */
const ROUNDING: ReadonlySet<number> = new Set([32022, 32023]);

const BLOSC_NAMES = ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"];
const BITSHUFFLE_NAMES: Readonly<Record<number, string | null>> = { 0: null, 2: "lz4", 3: "zstd" };

const COMPRESSORS = /^(blosc|bz2|hdf5-bitshuffle|hdf5-filters|hdf5-lz4|lzf|zlib|zstd)$/;

/** Tells if clients of Zarr know all codecs. Those that they know not begin with a prefix, but for `lzf`. */
function areKnownToClients(codecs: readonly CodecSpec[]): boolean {
  return codecs.every(({ id }) => id !== "lzf" && !id.startsWith("hdf5-"));
}

/**
 * Finds the codecs of chunks with one filter mask, whose bit i is set if the i-th filter was skipped.
 * @returns `compressorCount` codecs at the end form a compressor. `trimmedBytes` at the end of a stored chunk belong to no codec: a
 * checksum behind all that Zarr knows.
 * @throws as {@link storedCodecs}
 */
export function filterCodecs(
  filters: readonly Hdf5Filter[],
  chunkByteLength: number,
  filterMask: number,
): { codecs: readonly CodecSpec[]; compressorCount: 0 | 1; trimmedBytes: 0 | 4 } {
  const active = filters.filter(({ id }, i) => ((filterMask >>> i) & 1) === 0 && !ROUNDING.has(id));
  const first = active.findIndex(isHdf5Only);
  const last = active.findLastIndex(isHdf5Only);
  const codecs: CodecSpec[] = [];
  /** True as long as chunks have their own length, in whole items. */
  let isWhole = true;
  let isLengthKnown = true;
  for (let i = 0; i < active.length; i++) {
    const filter = active[i]!;
    if (i === first) {
      const part = active.slice(first, last + 1);
      assertUndoneByHdf5(part, isLengthKnown, chunkByteLength);
      codecs.push({
        id: "hdf5-filters",
        filters: part.map(({ id, values }) => ({ id, values: [...values] })),
      });
      i = last;
      isLengthKnown = isWhole = false;
      continue;
    }
    const codec = codecOf(filter, isWhole ? chunkByteLength : undefined);
    if (codec !== undefined) codecs.push(codec);
    if (filter.id !== SHUFFLE) isWhole = false;
    if (filter.id !== SHUFFLE && filter.id !== FLETCHER32) isLengthKnown = false;
  }
  // A checksum behind everything else does not keep clients from decoding what is before it.
  const isTrimmed = active.at(-1)?.id === FLETCHER32 && areKnownToClients(codecs.slice(0, -1));
  if (isTrimmed) codecs.pop();
  return {
    codecs,
    compressorCount: COMPRESSORS.test(codecs.at(-1)?.id ?? "") ? 1 : 0,
    trimmedBytes: isTrimmed ? CHECKSUM_BYTES : 0,
  };
}

function isHdf5Only({ id }: Hdf5Filter): boolean {
  return Object.hasOwn(HDF5_ONLY, id);
}

/** Asserts that HDF5 can be asked to undo a part of a pipeline. */
function assertUndoneByHdf5(part: readonly Hdf5Filter[], isLengthKnown: boolean, chunkByteLength: number) {
  const { id } = part[0]!;
  const name = HDF5_ONLY[id]!;
  const foreign = part.find((filter) => filter.id > LAST_OF_HDF5);
  if (foreign !== undefined)
    throw undecoded(`filter ${named(foreign)} is not decoded between others such as ${name}`);
  if (!isLengthKnown) throw undecoded(`filter ${id} (${name}) is not decoded behind a compressor`);
  if (!part.every((filter) => hasSaneValues(filter, chunkByteLength)))
    throw undecoded(`filter ${id} (${name}) has other client data than HDF5 writes`);
  if (!hasH5wasm()) throw undecoded(`filter ${id} (${name}) needs h5wasm; install h5wasm`);
}

/** Tells if client data do not make HDF5 allocate more memory than a chunk needs. */
function hasSaneValues({ id, values }: Hdf5Filter, chunkByteLength: number): boolean {
  const [, second = 0, third = 0, fourth = 0, fifth = 0] = values;
  // Pixels per block, bits per pixel, pixels per scan line.
  if (id === 4) return second <= 32 && third <= 64 && fourth <= MAX_SCANLINE;
  // N-bit and scale-offset have the number of items and their size.
  return id < 4 || third * fifth <= chunkByteLength;
}

/**
 * Returns the codec of one filter; undefined if it does nothing.
 * @param byteLength Bytes that it is applied to; undefined if they may be no whole items.
 */
function codecOf(filter: Hdf5Filter, byteLength: number | undefined): CodecSpec | undefined {
  const { id, values } = filter;
  switch (id) {
    case 1:
      return { id: "zlib", level: Math.min(values[0] ?? 6, 9) };
    case SHUFFLE:
      return shuffleCodec(filter, byteLength);
    case FLETCHER32:
      return { id: "hdf5-fletcher32" };
    case 307:
      return { id: "bz2", level: Math.min(Math.max(values[0] ?? 9, 1), 9) };
    case 32000:
      return { id: "lzf" };
    case 32001:
      return {
        id: "blosc",
        cname: BLOSC_NAMES[values[6] ?? 0] ?? "blosclz",
        clevel: Math.min(values[4] ?? 5, 9),
        shuffle: Math.min(values[5] ?? 1, 2),
        blocksize: 0,
      };
    case 32004:
      return { id: "hdf5-lz4" };
    case 32008:
      return bitshuffleCodec(filter);
    case 32015:
      return { id: "zstd", level: Math.min((values[0] ?? 3) | 0, 22) };
    default:
      throw undecoded(`filter ${named(filter)} is not decoded`);
  }
}

/** HDF5 leaves a last part of an item as it is, which clients of Zarr refuse. */
function shuffleCodec(filter: Hdf5Filter, byteLength: number | undefined): CodecSpec | undefined {
  const elementsize = filter.values[0] ?? 0;
  if (elementsize < 1) throw undecoded(`filter ${named(filter)} has items of no bytes`);
  if (elementsize === 1) return undefined;
  const isWhole = byteLength !== undefined && byteLength % elementsize === 0;
  return { id: isWhole ? "shuffle" : "hdf5-shuffle", elementsize };
}

function bitshuffleCodec(filter: Hdf5Filter): CodecSpec {
  const [, , elementsize = 0, blocksize = 0, compression = 0] = filter.values;
  const cname = BITSHUFFLE_NAMES[compression];
  if (elementsize < 1) throw undecoded(`filter ${named(filter)} has items of no bytes`);
  if (cname === undefined)
    throw undecoded(`filter ${named(filter)} has an unknown compressor ${compression}`);
  return { id: "hdf5-bitshuffle", elementsize, blocksize, cname };
}

/** Returns id and name of a filter for messages, the name cut to a sane length. */
function named({ id, name }: Hdf5Filter): string {
  return name === "" ? `${id}` : `${id} (${name.slice(0, 80)})`;
}

function undecoded(reason: string): ZpublishError {
  return new ZpublishError("unsupported", reason);
}
