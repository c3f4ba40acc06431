import type { JsonValue } from "../../json/json-value.js";
import { stringifyJson } from "../../json/stringify-json.js";
import type { CodecSpec } from "../codec-spec.js";
import { BLOSC_OPTIONS, ENCODED_BLOSC_OPTIONS } from "./blosc-rules.js";
import type { CodecRule } from "./codec-rule.js";
import { INTERNAL_RULES } from "./internal-codec-rules.js";
import {
  ASK_OTHER_FILTERS,
  deltaDecodeProblem,
  deltaEncodeProblem,
  filterTypes,
  fixedScaleOffsetProblem,
  quantizeProblem,
} from "./numeric-filter-rules.js";
import { parseNumericType } from "./numeric-type.js";
import { integer, numericType, type OptionRule } from "./option-rules.js";
import { plainValue } from "./plain-value.js";

const UNKNOWN_LENGTH = (): null => null;
const SAME_LENGTH = (_codec: CodecSpec, decodedByteLength: number): number => decodedByteLength;
const FOUR_MORE = (_codec: CodecSpec, decodedByteLength: number): number => decodedByteLength + 4;

/** numcodecs accepts any integer, and clamps it. */
const ANY_INTEGER = integer(1, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
const DEFLATE_LEVEL = integer(1, -1, 9);

const RULES: Readonly<Record<string, CodecRule>> = {
  blosc: {
    askedAs: "compressor",
    options: BLOSC_OPTIONS,
    omitted: ["typesize"],
    encodeProblem: (codec) => optionProblem(codec, ENCODED_BLOSC_OPTIONS),
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
  // Both only drop bits, so decoded bytes are encoded again without a change.
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
    // Most clients of v2 do not know it.
    isInternal: true,
    encodeProblem: () => "crc32c is known to Zarr v3 only",
    encodedByteLength: FOUR_MORE,
  },
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
  return comparisonText(a) === comparisonText(b);
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
  return codecRule(codec.id)?.encodedByteLength(codec, decodedByteLength) ?? null;
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
