import { ZpublishError } from "../../errors.js";
import type { JsonValue } from "../../json/json-value.js";
import { stringifyJson } from "../../json/stringify-json.js";
import { parseDataType } from "../../model/data-type.js";
import type { CodecSpec } from "../codec-step.js";
import { plainValue } from "./encoding-plan.js";

/** A number type of typed arrays, as filters name it. */
export interface NumericType {
  readonly kind: "i" | "u" | "f";
  readonly itemSize: 1 | 2 | 4 | 8;
  /** False for one-byte types. */
  readonly isBigEndian: boolean;
  /** Numpy's canonical name: `<i4`, `|u1`. */
  readonly name: string;
}

/**
 * Parses a filter's `dtype` or `astype`: `"<i4"`, `"|u1"`, or `"i4"`, which is little-endian. Undefined if it is another
 * type; typed arrays have no half floats.
 */
export function parseNumericType(text: JsonValue | undefined): NumericType | undefined {
  if (typeof text !== "string") return undefined;
  const match = /^([<>|=]?)([iuf])([1248])$/.exec(text);
  if (match === null) return undefined;
  const kind = match[2] as NumericType["kind"];
  const itemSize = Number(match[3]) as NumericType["itemSize"];
  if (kind === "f" && itemSize < 4) return undefined;
  if (match[1] === "|" && itemSize > 1) return undefined;
  const isBigEndian = match[1] === ">" && itemSize > 1;
  const order = itemSize === 1 ? "|" : isBigEndian ? ">" : "<";
  return { kind, itemSize, isBigEndian, name: `${order}${kind}${itemSize}` };
}

/** Rule for one option of a codec. */
interface OptionRule {
  /** Default; undefined if the option is required. */
  readonly fallback?: JsonValue;
  /** What is expected, in words of a message. */
  readonly expected: string;
  readonly accepts: (value: JsonValue) => boolean;
}

/** An integer within bounds, both included. */
function integer(fallback: number, min: number, max: number): OptionRule {
  return {
    fallback,
    expected: `an integer from ${min} to ${max}`,
    accepts: (value) => typeof value === "number" && Number.isInteger(value) && value >= min && value <= max,
  };
}

/** One of several texts. */
function oneOf(fallback: string, values: readonly string[]): OptionRule {
  return {
    fallback,
    expected: `one of ${values.join(", ")}`,
    accepts: (value) => typeof value === "string" && values.includes(value),
  };
}

/** A type string of integers or floats; required. */
function numericType(): OptionRule {
  return {
    expected: `a numeric type such as "<i4"`,
    accepts: (value) => parseNumericType(value) !== undefined,
  };
}

/** Options of Blosc, with numcodecs' defaults. */
const BLOSC_OPTIONS: Readonly<Record<string, OptionRule>> = {
  cname: oneOf("lz4", ["lz4", "lz4hc", "blosclz", "zstd", "zlib"]),
  clevel: integer(5, 0, 9),
  shuffle: integer(1, -1, 2),
  blocksize: integer(0, 0, 2 ** 31 - 1),
};

/** GDAL's names of Blosc's shuffles, by their number. */
const BLOSC_SHUFFLE_NAMES: readonly string[] = Object.freeze(["NONE", "BYTE", "BIT"]);
/** Blosc's shuffle that depends on the item size. */
const AUTO_SHUFFLE = -1;

/** Returns the number of Blosc's shuffle: none, byte, bit. Resolves "automatic" by item size, as numcodecs does. */
export function bloscShuffleOf(shuffle: unknown, itemSize: number): number {
  if (shuffle === AUTO_SHUFFLE) return itemSize === 1 ? 2 : 1;
  return typeof shuffle === "number" ? shuffle : BLOSC_SHUFFLE_NAMES.indexOf(shuffle as string);
}

/** Options of Blosc with which a chunk can be encoded. */
const ENCODED_BLOSC_OPTIONS: Readonly<Record<string, OptionRule>> = {
  ...BLOSC_OPTIONS,
  cname: oneOf("lz4", ["lz4", "zstd", "zlib"]),
  shuffle: {
    fallback: 1,
    expected: `an integer from -1 to 2, or one of ${BLOSC_SHUFFLE_NAMES.join(", ")}`,
    accepts: (value) =>
      BLOSC_OPTIONS.shuffle?.accepts(value) === true || BLOSC_SHUFFLE_NAMES.includes(value as string),
  },
};

/** The byte length after encoding is that before. */
const SAME_LENGTH = (_codec: CodecSpec, decodedByteLength: number): number => decodedByteLength;
const FOUR_MORE = (_codec: CodecSpec, decodedByteLength: number): number => decodedByteLength + 4;

/** Lengths of codecs that no client of v2 knows: of other files, and of Zarr v3. Those that compress say how long a chunk becomes in the chunk itself. */
const INTERNAL_LENGTHS: Readonly<Record<string, Pick<CodecRule, "encodedByteLength" | "encodedItemSize">>> = {
  /**
   * Zero bytes, which decoding appends up to the length of a whole chunk. `byteLength` is the stored length of the shorter chunk.
   */
  pad: { encodedByteLength: ({ byteLength }) => Number(byteLength) },
  /** A chunk of `byteLength` bytes, of texts of the fixed length that `dtype` says. They are decoded to what `filter` writes. */
  "fixed-text": { encodedByteLength: ({ byteLength }) => Number(byteLength) },
  "hdf5-bits": { encodedByteLength: SAME_LENGTH },
  "hdf5-bitshuffle": { encodedByteLength: ({ cname }, byteLength) => (cname === null ? byteLength : null) },
  "hdf5-filters": {},
  "hdf5-fletcher32": { encodedByteLength: FOUR_MORE },
  "hdf5-lz4": {},
  "hdf5-shuffle": { encodedByteLength: SAME_LENGTH },
  /** Strings of a fixed length, of `itemSize` bytes. With the `charset` `utf-8` they are decoded to four bytes per character. */
  "hdf5-text": {
    encodedByteLength: ({ charset }, byteLength) => (charset === "utf-8" ? byteLength / 4 : byteLength),
    encodedItemSize: (codec) => Number(codec.itemSize),
  },
  lzf: {},
  /**
   * JPEG of TIFF. `width` and `components` describe the chunk, `tables` is the stream of shared tables in Base64, or empty, `isYcbcr`
   * whether colours are converted from YCbCr to RGB.
   */
  jpeg: {},
  /** Deflate of a TIFF strip that may have bytes after its rows, up to `maxByteLength`, the length of a whole strip. */
  "tiff-deflate": {},
  /** LZW of TIFF. */
  "tiff-lzw": {},
  /** PackBits of TIFF. The `packbits` of numcodecs is another codec: it packs booleans. */
  "tiff-packbits": {},
  /**
   * Differences of TIFF. `predictor` is 2 for items and 3 for bytes of floats, `itemSize` the bytes of an item, `rowItems` the items of
   * a row with all its bands, `step` the number of interleaved bands, `isBigEndian` the byte order.
   */
  "tiff-predictor": { encodedByteLength: SAME_LENGTH },
  /** Items in another type, by the registry of Zarr v3: `zarr/v3/value-codecs.ts` has the fields. */
  cast_value: {
    encodedByteLength: ({ dtype, astype }, byteLength) => (byteLength / sizeOf(dtype)) * sizeOf(astype),
    encodedItemSize: ({ astype }) => sizeOf(astype),
  },
  /** Differences from `offset`, times `scale`; by the registry of Zarr v3. */
  scale_offset: { encodedByteLength: SAME_LENGTH, encodedItemSize: (_codec, itemSize) => itemSize },
  /** The `packbits` of Zarr v3's registry: some bits of each number. That of numcodecs packs booleans only. */
  "v3-packbits": {
    encodedByteLength: ({ bits, componentSize, padding }, byteLength) =>
      Math.ceil(((byteLength / Number(componentSize)) * Number(bits)) / 8) + (padding === "none" ? 0 : 1),
  },
  /**
   * Padding within items, which decoding takes out. `itemSize` is the length of an item with padding, `pieces` are the parts of it
   * that are kept, in order: offset, length, and the length of the numbers in it if their bytes are reversed, else 1.
   */
  repack: {
    encodedByteLength: (codec, byteLength) => (byteLength / packedSize(codec)) * Number(codec.itemSize),
    encodedItemSize: (codec) => Number(codec.itemSize),
  },
};

/**
 * Rules of codecs that files other than Zarr stores have, or few clients of Zarr know. They are decoded only; arrays are served
 * with other codecs in their place. Their options come from a reader of files or of v3, which has checked them.
 */
export const INTERNAL_RULES: Readonly<Record<string, CodecRule>> = Object.fromEntries(
  Object.entries(INTERNAL_LENGTHS).map(([id, lengths]): [string, CodecRule] => [
    id,
    { options: {}, isInternal: true, encodeProblem: () => `${id} is decoded only`, ...lengths },
  ]),
);

/** Returns the bytes of an item without its padding. */
function packedSize({ pieces }: CodecSpec): number {
  return (pieces as readonly (readonly number[])[]).reduce((sum, [, length = 0]) => sum + length, 0);
}

function sizeOf(dtype: JsonValue | undefined): number {
  return parseDataType(dtype as JsonValue).itemSize;
}

/** End of messages about filters that are never applied. */
const ASK_OTHER_FILTERS = `ask for other filters ("filters": null serves none)`;

/**
 * Parses `dtype` and `astype` of a codec: the types of its decoded and encoded side.
 * @throws ZpublishError `unsupported` if one is no numeric type.
 */
export function filterTypes(codec: CodecSpec): { readonly dtype: NumericType; readonly astype: NumericType } {
  const dtype = parseNumericType(codec.dtype);
  const astype = parseNumericType(codec.astype ?? codec.dtype);
  if (dtype === undefined || astype === undefined) {
    throw new ZpublishError(
      "unsupported",
      `${codec.id}: expected numeric types, received dtype ${stringifyJson(codec.dtype ?? null)} and astype ${stringifyJson(codec.astype ?? null)}`,
    );
  }
  return { dtype, astype };
}

/** Says why a `delta` cannot be decoded as numpy would; undefined if it can. */
function deltaDecodeProblem(codec: CodecSpec): string | undefined {
  const dtype = parseNumericType(codec.dtype);
  const astype = parseNumericType(codec.astype ?? codec.dtype);
  if (dtype === undefined || astype === undefined) {
    return `delta of ${stringifyJson(codec.dtype ?? null)} as ${stringifyJson(codec.astype ?? codec.dtype ?? null)} is not decoded here`;
  }
  const bothIntegers = dtype.kind !== "f" && astype.kind !== "f";
  const usesWideInteger = [dtype, astype].some((type) => type.kind !== "f" && type.itemSize === 8);
  if (!bothIntegers && usesWideInteger) {
    return `delta of ${String(codec.dtype)} as ${String(codec.astype)} mixes floats and 64-bit integers`;
  }
  if (dtype.name.endsWith("f4") && astype.itemSize > 2 && !astype.name.endsWith("f4")) {
    // numpy computes these in double precision.
    return `delta of ${String(codec.dtype)} as the wider ${String(codec.astype)} is not decoded here`;
  }
  if (dtype.itemSize === 8 && astype.itemSize === 8 && dtype.kind !== astype.kind) {
    // numpy has no integer type that holds both, and goes through floats.
    return `delta of ${String(codec.dtype)} as ${String(codec.astype)} mixes signed and unsigned 64-bit integers`;
  }
  return undefined;
}

/** Says why a `delta` is not applied; undefined if it decodes to the same items. */
export function deltaEncodeProblem(codec: CodecSpec): string | undefined {
  const problem = deltaDecodeProblem(codec);
  if (problem !== undefined) return problem;
  const { dtype, astype } = filterTypes(codec);
  if (dtype.kind === "f" || astype.kind === "f") {
    return `delta of floats would round values, so it is decoded but not encoded; ${ASK_OTHER_FILTERS}`;
  }
  if (astype.itemSize < dtype.itemSize) {
    return `delta of ${String(codec.dtype)} as the smaller ${String(codec.astype)} could lose values, so it is decoded but not encoded; ${ASK_OTHER_FILTERS}`;
  }
  return undefined;
}

/** Says why a `quantize` cannot be decoded; undefined if it stays within one type, so that there is nothing to decode. */
function quantizeProblem(codec: CodecSpec): string | undefined {
  const { dtype } = codec;
  return dtype !== undefined && (codec.astype ?? dtype) === dtype
    ? undefined
    : `quantize from ${stringifyJson(dtype ?? null)} to another type is not decoded here`;
}

/** Says why a `fixedscaleoffset` cannot be decoded as numpy would; undefined if it can. */
function fixedScaleOffsetProblem(codec: CodecSpec): string | undefined {
  const dtype = parseNumericType(codec.dtype);
  const astype = parseNumericType(codec.astype ?? codec.dtype);
  const { scale, offset } = codec;
  const isKnown =
    dtype?.kind === "f" &&
    astype !== undefined &&
    (astype.kind === "f" ? astype.itemSize === dtype.itemSize : astype.itemSize < 8) &&
    typeof scale === "number" &&
    typeof offset === "number";
  return isKnown
    ? undefined
    : `fixedscaleoffset of ${stringifyJson(codec.dtype ?? null)} as ${stringifyJson(codec.astype ?? null)} is not decoded here`;
}

/** numcodecs accepts any integer, and clamps it. */
const ANY_INTEGER = integer(1, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
const DEFLATE_LEVEL = integer(1, -1, 9);

/** The rule of a compressor that an operator may ask for. @param encoded Options with which a chunk can be encoded. */
function compressor(
  options: Readonly<Record<string, OptionRule>>,
  encoded: Readonly<Record<string, OptionRule>>,
  omitted: readonly string[] = [],
): CodecRule {
  const problemOf = (codec: CodecSpec) => optionProblem(codec, encoded);
  return { askedAs: "compressor", options, omitted, encodeProblem: problemOf };
}

/** The rule of a filter from items of `dtype` to items of `astype`. */
const RETYPING: CodecRule = {
  options: {},
  encodedByteLength: (codec, decodedByteLength) => {
    const { dtype, astype } = filterTypes(codec);
    return (decodedByteLength / dtype.itemSize) * astype.itemSize;
  },
  encodedItemSize: (codec) => filterTypes(codec).astype.itemSize,
};

/** The rule of a filter that only drops bits, so that decoded bytes are encoded again without a change. */
const DROPPING_BITS: CodecRule = {
  options: {},
  encodedByteLength: SAME_LENGTH,
  encodedItemSize: (_codec, itemSize) => itemSize,
};

/** The rule of a checksum at the start or the end of a chunk. */
function checksum(place: "start" | "end"): CodecRule {
  return {
    options: {},
    decodeProblem: (codec) => checksumProblem(codec, place),
    encodedByteLength: FOUR_MORE,
  };
}

const RULES: Readonly<Record<string, CodecRule>> = {
  blosc: compressor(BLOSC_OPTIONS, ENCODED_BLOSC_OPTIONS, ["typesize"]),
  zstd: compressor({ level: integer(1, -131072, 22) }, { level: ANY_INTEGER }, ["checksum"]),
  gzip: compressor({ level: integer(1, 0, 9) }, { level: DEFLATE_LEVEL }),
  zlib: compressor({ level: integer(1, 0, 9) }, { level: DEFLATE_LEVEL }),
  lz4: compressor({ acceleration: integer(1, 1, 2 ** 31 - 1) }, { acceleration: ANY_INTEGER }),
  shuffle: {
    askedAs: "filter",
    options: { elementsize: integer(4, 1, 2 ** 31 - 1) },
    encodedByteLength: SAME_LENGTH,
  },
  delta: {
    ...RETYPING,
    askedAs: "filter",
    options: { dtype: numericType(), astype: numericType() },
    decodeProblem: deltaDecodeProblem,
    encodeProblem: deltaEncodeProblem,
  },
  bitround: DROPPING_BITS,
  quantize: { ...DROPPING_BITS, decodeProblem: quantizeProblem, encodeProblem: quantizeProblem },
  fixedscaleoffset: {
    ...RETYPING,
    decodeProblem: fixedScaleOffsetProblem,
    encodeProblem: () => `fixedscaleoffset rounds, so it is decoded but not encoded; ${ASK_OTHER_FILTERS}`,
  },
  crc32: checksum("start"),
  adler32: checksum("start"),
  // Most clients of v2 do not know it.
  crc32c: { ...checksum("end"), isInternal: true, encodeProblem: () => "crc32c is known to Zarr v3 only" },
  ...INTERNAL_RULES,
};

/** Ids of all codecs with a rule, for the test that compares them with the implementations. */
export const RULED_CODEC_IDS: readonly string[] = Object.freeze(Object.keys(RULES));

/** Tells whether a codec is decoded, and left out of what is served, since clients do not know it. */
export function isInternal(codec: CodecSpec): boolean {
  return codecRule(codec.id)?.isInternal ?? false;
}

/** Returns a codec as a served document has it. */
export function servedCodec(codec: CodecSpec): CodecSpec {
  const omitted = codecRule(codec.id)?.omitted;
  if (omitted === undefined || !omitted.some((key) => Object.hasOwn(codec, key))) return codec;
  return Object.fromEntries(Object.entries(codec).filter(([key]) => !omitted.includes(key))) as CodecSpec;
}

/** Returns a codec with all options, as plain numbers: the form that implementations get, and that is compared. */
export function completeCodec(codec: CodecSpec): CodecSpec {
  const complete: Record<string, JsonValue> = { id: codec.id };
  for (const [key, value] of Object.entries(servedCodec(codec))) complete[key] = plainValue(value);
  for (const [key, { fallback }] of Object.entries(codecRule(codec.id)?.options ?? {})) {
    if ((complete[key] === undefined || complete[key] === null) && fallback !== undefined)
      complete[key] = fallback;
  }
  if (complete.dtype !== undefined && (complete.astype === undefined || complete.astype === null)) {
    complete.astype = complete.dtype;
  }
  return complete as unknown as CodecSpec;
}

/** Whether two codecs are the same one with the same options. An omitted option equals its default. */
export function sameCodec(a: CodecSpec, b: CodecSpec): boolean {
  return a === b || comparisonText(a) === comparisonText(b);
}

/** Says why a codec cannot be decoded; undefined if it can. */
export function decodeProblem(codec: CodecSpec): string | undefined {
  const rule = codecRule(codec.id);
  return rule === undefined ? `codec ${codec.id} is unknown here` : rule.decodeProblem?.(codec);
}

/** Says why a codec cannot be encoded; undefined if it can. */
export function encodeProblem(codec: CodecSpec): string | undefined {
  const rule = codecRule(codec.id);
  return rule === undefined ? `codec ${codec.id} is unknown here` : rule.encodeProblem?.(codec);
}

/**
 * Returns the byte length after encoding; null if it depends on the bytes. It is no integer if the bytes are not whole
 * items.
 * @param codec A codec that can be decoded, with all options.
 */
export function encodedByteLength(codec: CodecSpec, decodedByteLength: number): number | null {
  return codecRule(codec.id)?.encodedByteLength?.(codec, decodedByteLength) ?? null;
}

/** Returns the item size after encoding; 1 if encoded bytes have no items. */
export function encodedItemSize(codec: CodecSpec, itemSize: number): number {
  return codecRule(codec.id)?.encodedItemSize?.(codec, itemSize) ?? 1;
}

/** Looks up the rule of a codec; undefined if the codec is unknown. */
export function codecRule(id: string): CodecRule | undefined {
  return Object.hasOwn(RULES, id) ? RULES[id] : undefined;
}

/** Checks a stored codec's options, which matter only for encoding. A missing one means its default. */
function optionProblem(codec: CodecSpec, rules: Readonly<Record<string, OptionRule>>): string | undefined {
  for (const [key, rule] of Object.entries(rules)) {
    const value = codec[key];
    if (value === undefined || value === null || rule.accepts(plainValue(value))) continue;
    return `${codec.id} with ${key} ${stringifyJson(value)} can be decoded but not encoded; ask for another compressor`;
  }
  return undefined;
}

function checksumProblem(codec: CodecSpec, place: string): string | undefined {
  const { location } = codec;
  return location === undefined || location === null || location === place
    ? undefined
    : `${codec.id} at the ${stringifyJson(location)} of a chunk is not decoded here`;
}

function comparisonText(codec: CodecSpec): string {
  const entries = Object.entries(completeCodec(codec));
  // One type has several names: "<u1" is "|u1".
  const named = entries.map(([key, value]): [string, JsonValue] =>
    key === "dtype" || key === "astype" ? [key, parseNumericType(value)?.name ?? value] : [key, value],
  );
  return stringifyJson(Object.fromEntries(named.sort(([a], [b]) => (a < b ? -1 : 1))));
}

/**
 * Facts about a codec that need no implementation: options with numcodecs' defaults, and what can be decoded or encoded.
 * The implementations are in `codec/`; a test compares both tables.
 */
interface CodecRule {
  /** Options that an operator may ask for. Their defaults complete stored documents, too. */
  readonly options: Readonly<Record<string, OptionRule>>;
  /**
   * Options that are never served: decoding does not depend on them, and older clients reject them as unknown. numcodecs
   * before 0.13 has no `checksum` of zstd, before 0.16 no `typesize` of Blosc.
   */
  readonly omitted?: readonly string[];
  /** The role in which an operator may ask for the codec; undefined if only stored arrays have it. */
  readonly askedAs?: "compressor" | "filter";
  /** True if clients do not know the codec: it is decoded, and left out of what is served. Default false. */
  readonly isInternal?: boolean;
  /** Says why a configuration cannot be decoded; undefined if it can. Default: every one can. */
  readonly decodeProblem?: (codec: CodecSpec) => string | undefined;
  /** Says why a configuration cannot be encoded; undefined if it can. Default: every one can. */
  readonly encodeProblem?: (codec: CodecSpec) => string | undefined;
  /** Returns the byte length after encoding; null if it depends on the bytes, as by default. */
  readonly encodedByteLength?: (codec: CodecSpec, decodedByteLength: number) => number | null;
  /** Returns the item size on the encoded side. Default: 1, since encoded bytes have no items. */
  readonly encodedItemSize?: (codec: CodecSpec, itemSize: number) => number;
}
