import type { JsonValue } from "../model/json-value.js";
import { stringifyJson } from "../model/stringify-json.js";
import type { CodecSpec } from "./codec-spec.js";
import {
  ASK_OTHER_FILTERS,
  deltaDecodeProblem,
  deltaEncodeProblem,
  filterTypes,
  fixedScaleOffsetProblem,
  quantizeProblem,
} from "./numeric-filter-rules.js";
import { parseNumericType } from "./numeric-type.js";
import { plainValue } from "./plain-value.js";

/**
 * What is known about codecs without running them: options and their defaults as in numcodecs, and what can be decoded
 * or encoded here. The implementations are in `codec/`; a test keeps both tables in step.
 */
export interface CodecRule {
  /** Checked where an operator asks for the codec; the defaults fill what a document leaves out. */
  readonly options: Readonly<Record<string, OptionRule>>;
  /**
   * Options that decoding does not depend on and that older clients refuse as unknown (numcodecs before 0.13 has no
   * `checksum` of zstd, before 0.16 no `typesize` of Blosc): never served.
   */
  readonly omitted?: readonly string[];
  /** As what an operator may ask for it; undefined: only ever as stored. */
  readonly askedAs?: "compressor" | "filter";
  /** Why a configuration cannot be decoded; undefined: it can. Absent: always can. */
  readonly decodeProblem?: (codec: CodecSpec) => string | undefined;
  /** Why a configuration cannot be encoded; undefined: it can. Absent: always can. */
  readonly encodeProblem?: (codec: CodecSpec) => string | undefined;
  /** Null where it depends on the bytes. */
  readonly encodedByteLength: (codec: CodecSpec, decodedByteLength: number) => number | null;
  /** Item size on the encoded side; 1 where bytes have no items any more. */
  readonly encodedItemSize?: (codec: CodecSpec, itemSize: number) => number;
}

/** What one option of a codec may be. */
export interface OptionRule {
  /** Undefined: the option is required. */
  readonly fallback?: JsonValue;
  /** What is expected, in words. */
  readonly expected: string;
  readonly accepts: (value: JsonValue) => boolean;
}

const UNKNOWN_LENGTH = (): null => null;
const SAME_LENGTH = (_codec: CodecSpec, decodedByteLength: number): number => decodedByteLength;
const FOUR_MORE = (_codec: CodecSpec, decodedByteLength: number): number => decodedByteLength + 4;

const BLOSC_OPTIONS: Readonly<Record<string, OptionRule>> = {
  cname: oneOf("lz4", ["lz4", "lz4hc", "blosclz", "zstd", "zlib"]),
  clevel: integer(5, 0, 9),
  shuffle: integer(1, -1, 2),
  blocksize: integer(0, 0, 2 ** 31 - 1),
};

/** What GDAL writes for Blosc's shuffle, by the number that it means. */
export const BLOSC_SHUFFLE_NAMES: readonly string[] = Object.freeze(["NONE", "BYTE", "BIT"]);

/** As documents may have them. */
const STORED_BLOSC_OPTIONS: Readonly<Record<string, OptionRule>> = {
  ...BLOSC_OPTIONS,
  shuffle: {
    fallback: 1,
    expected: `an integer from -1 to 2, or one of ${BLOSC_SHUFFLE_NAMES.join(", ")}`,
    accepts: (value) =>
      BLOSC_OPTIONS.shuffle?.accepts(value) === true || BLOSC_SHUFFLE_NAMES.includes(value as string),
  },
};

/** numcodecs takes any, and what is beyond the limits for them. */
const ANY_INTEGER = integer(1, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
const DEFLATE_LEVEL = integer(1, -1, 9);

const RULES: Readonly<Record<string, CodecRule>> = {
  blosc: {
    askedAs: "compressor",
    options: BLOSC_OPTIONS,
    omitted: ["typesize"],
    encodeProblem: (codec) => optionProblem(codec, STORED_BLOSC_OPTIONS),
    encodedByteLength: UNKNOWN_LENGTH,
  },
  zstd: {
    askedAs: "compressor",
    options: { level: integer(1, -131072, 22) },
    omitted: ["checksum"],
    encodeProblem: (codec) => optionProblem(codec, { level: ANY_INTEGER }),
    encodedByteLength: UNKNOWN_LENGTH,
  },
  gzip: {
    askedAs: "compressor",
    options: { level: integer(1, 0, 9) },
    encodeProblem: (codec) => optionProblem(codec, { level: DEFLATE_LEVEL }),
    encodedByteLength: UNKNOWN_LENGTH,
  },
  zlib: {
    askedAs: "compressor",
    options: { level: integer(1, 0, 9) },
    encodeProblem: (codec) => optionProblem(codec, { level: DEFLATE_LEVEL }),
    encodedByteLength: UNKNOWN_LENGTH,
  },
  lz4: {
    askedAs: "compressor",
    options: { acceleration: integer(1, 1, 2 ** 31 - 1) },
    encodeProblem: (codec) => optionProblem(codec, { acceleration: ANY_INTEGER }),
    encodedByteLength: UNKNOWN_LENGTH,
  },
  shuffle: {
    askedAs: "filter",
    options: { elementsize: integer(4, 1, 2 ** 31 - 1) },
    encodedByteLength: SAME_LENGTH,
  },
  delta: {
    askedAs: "filter",
    options: { dtype: numericType(), astype: numericType() },
    decodeProblem: deltaDecodeProblem,
    encodeProblem: deltaEncodeProblem,
    encodedByteLength: (codec, decodedByteLength) => {
      const { dtype, astype } = filterTypes(codec);
      return (decodedByteLength / dtype.itemSize) * astype.itemSize;
    },
    encodedItemSize: (codec) => filterTypes(codec).astype.itemSize,
  },
  // Both only drop bits, so what was decoded needs nothing done to it to be encoded again.
  bitround: {
    options: {},
    encodedByteLength: SAME_LENGTH,
    encodedItemSize: (_codec, itemSize) => itemSize,
  },
  quantize: {
    options: {},
    decodeProblem: quantizeProblem,
    encodeProblem: quantizeProblem,
    encodedByteLength: SAME_LENGTH,
    encodedItemSize: (_codec, itemSize) => itemSize,
  },
  fixedscaleoffset: {
    options: {},
    decodeProblem: fixedScaleOffsetProblem,
    encodeProblem: () => `fixedscaleoffset rounds, so it is decoded but not encoded; ${ASK_OTHER_FILTERS}`,
    encodedByteLength: (codec, decodedByteLength) => {
      const { dtype, astype } = filterTypes(codec);
      return (decodedByteLength / dtype.itemSize) * astype.itemSize;
    },
    encodedItemSize: (codec) => filterTypes(codec).astype.itemSize,
  },
  crc32: {
    options: {},
    decodeProblem: (codec) => checksumProblem(codec, "start"),
    encodedByteLength: FOUR_MORE,
  },
  adler32: {
    options: {},
    decodeProblem: (codec) => checksumProblem(codec, "start"),
    encodedByteLength: FOUR_MORE,
  },
  crc32c: {
    options: {},
    decodeProblem: (codec) => checksumProblem(codec, "end"),
    encodeProblem: () => "crc32c is known to Zarr v3 only",
    encodedByteLength: FOUR_MORE,
  },
};

/** Ids of all codecs with a rule, for the test that keeps the implementations in step. */
export const RULED_CODEC_IDS: readonly string[] = Object.freeze(Object.keys(RULES));

/** Codecs that a v2 `.zarray` cannot say to the clients at large: decoded, and left out of what is served. */
export function isV3Only(codec: CodecSpec): boolean {
  return codec.id === "crc32c";
}

/** The codec as a served document says it. */
export function servedCodec(codec: CodecSpec): CodecSpec {
  const omitted = codecRule(codec.id)?.omitted;
  if (omitted === undefined || !omitted.some((key) => Object.hasOwn(codec, key))) return codec;
  return Object.fromEntries(Object.entries(codec).filter(([key]) => !omitted.includes(key))) as CodecSpec;
}

/** The codec with every option said and every number plain: what implementations get, and what is compared. */
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

/** Whether two codecs are the same one with the same options, whether or not they say the defaults. */
export function sameCodec(a: CodecSpec, b: CodecSpec): boolean {
  return comparisonText(a) === comparisonText(b);
}

/** Why a codec cannot be decoded; undefined: it can. */
export function decodeProblem(codec: CodecSpec): string | undefined {
  const rule = codecRule(codec.id);
  return rule === undefined ? `codec ${codec.id} is unknown here` : rule.decodeProblem?.(codec);
}

/** Why a codec cannot be encoded; undefined: it can. */
export function encodeProblem(codec: CodecSpec): string | undefined {
  const rule = codecRule(codec.id);
  return rule === undefined ? `codec ${codec.id} is unknown here` : rule.encodeProblem?.(codec);
}

/**
 * Byte length after encoding; null where it is not known beforehand. Not an integer where items do not fit the bytes.
 * @param codec With its options complete, and decodable.
 */
export function encodedByteLength(codec: CodecSpec, decodedByteLength: number): number | null {
  return codecRule(codec.id)?.encodedByteLength(codec, decodedByteLength) ?? null;
}

/** Item size after encoding; 1 where there are no items any more. */
export function encodedItemSize(codec: CodecSpec, itemSize: number): number {
  return codecRule(codec.id)?.encodedItemSize?.(codec, itemSize) ?? 1;
}

/** What is known of a codec; undefined where nothing is. */
export function codecRule(id: string): CodecRule | undefined {
  return Object.hasOwn(RULES, id) ? RULES[id] : undefined;
}

/** What a stored document says is as it is: options are looked at only where they are to be written with. Absent: the default. */
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
  // A type by another of its names is the same type: "<u1" is "|u1".
  const named = entries.map(([key, value]): [string, JsonValue] =>
    key === "dtype" || key === "astype" ? [key, parseNumericType(value)?.name ?? value] : [key, value],
  );
  return stringifyJson(Object.fromEntries(named.sort(([a], [b]) => (a < b ? -1 : 1))));
}

function integer(fallback: number, min: number, max: number): OptionRule {
  return {
    fallback,
    expected: `an integer from ${min} to ${max}`,
    accepts: (value) => typeof value === "number" && Number.isInteger(value) && value >= min && value <= max,
  };
}

function oneOf(fallback: string, values: readonly string[]): OptionRule {
  return {
    fallback,
    expected: `one of ${values.join(", ")}`,
    accepts: (value) => typeof value === "string" && values.includes(value),
  };
}

function numericType(): OptionRule {
  return {
    expected: `a numeric type such as "<i4"`,
    accepts: (value) => parseNumericType(value) !== undefined,
  };
}
