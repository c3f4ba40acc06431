import type { CodecSpec } from "../../src/zarr/codec-step.js";
import { FIELD_TYPES, type FieldType, itemSizeOf } from "../data/typed-field.js";
import { OPERATIONS, type Operation } from "./codec-job.js";

/** One line of the table: a codec with its options, on the field as one type. */
export interface CodecCase {
  /** The codec with all but its level: `blosc lz4, byte shuffle`. */
  readonly name: string;
  /** Compression level, or acceleration of LZ4; undefined where there is none. */
  readonly level: number | undefined;
  readonly type: FieldType;
  readonly codec: CodecSpec;
  readonly operations: readonly Operation[];
  /** Whether it is in a small run, too. */
  readonly isSmall: boolean;
  /** Whether it is in the pictures. */
  readonly isPictured: boolean;
}

const LEVELS = [1, 5, 9] as const;
const TYPES = Object.keys(FIELD_TYPES) as FieldType[];
const SHUFFLES = ["no shuffle", "byte shuffle", "bit shuffle"] as const;
const CNAMES = ["lz4", "lz4hc", "blosclz", "zstd", "zlib"] as const;
/** Of Blosc, as numcodecs and xarray write it. */
const DEFAULT_LEVEL = 5;
const BYTE_SHUFFLE = 1;

function blosc(cname: string, shuffle: number, clevel: number, type: FieldType): CodecCase {
  const isPlain = clevel === DEFAULT_LEVEL && type === "<f4";
  return {
    name: `blosc ${cname}, ${SHUFFLES[shuffle]}`,
    level: clevel,
    type,
    codec: { id: "blosc", cname, clevel, shuffle, blocksize: 0 },
    operations: OPERATIONS,
    isSmall:
      (isPlain && (shuffle === BYTE_SHUFFLE || cname === "lz4")) ||
      (cname === "lz4" && shuffle === BYTE_SHUFFLE && clevel === DEFAULT_LEVEL),
    // Without a shuffle LZ4 leaves the field as it is.
    isPictured: isPlain && (shuffle === BYTE_SHUFFLE || (cname === "lz4" && shuffle > 0)),
  };
}

function compressor(id: string, option: string, level: number, type: FieldType): CodecCase {
  // Without a shuffle LZ4 leaves wider items as they are.
  const isPlain = level === 1 && type === (id === "lz4" ? "|u1" : "<f4");
  return {
    name: id,
    level,
    type,
    codec: { id, [option]: level },
    operations: OPERATIONS,
    isSmall: isPlain,
    isPictured: isPlain,
  };
}

function filter(codec: CodecSpec, type: FieldType, operations: readonly Operation[] = OPERATIONS): CodecCase {
  const isPlain = codec.id !== "shuffle" || type === "<f4";
  const isPictured = isPlain && operations.includes("encode");
  return { name: codec.id, level: undefined, type, codec, operations, isSmall: isPlain, isPictured };
}

/** What the goals are about: what zarr-python and xarray write by default, on the field as it is. */
export const GOAL_CASE: CodecCase = blosc("lz4", BYTE_SHUFFLE, DEFAULT_LEVEL, "<f4");

/**
 * The lines of the table. Not every combination: each option is varied while the others are what is common, and what the
 * kernel does itself (Blosc with LZ4) is there by level and type.
 */
export const CODEC_CASES: readonly CodecCase[] = withoutRepeats([
  GOAL_CASE,
  ...LEVELS.flatMap((level) => TYPES.map((type) => blosc("lz4", BYTE_SHUFFLE, level, type))),
  ...[2, 0].flatMap((shuffle) => TYPES.map((type) => blosc("lz4", shuffle, DEFAULT_LEVEL, type))),
  ...CNAMES.slice(1).flatMap((cname) => [
    ...LEVELS.map((level) => blosc(cname, BYTE_SHUFFLE, level, "<f4")),
    ...[2, 0].map((shuffle) => blosc(cname, shuffle, DEFAULT_LEVEL, "<f4")),
    blosc(cname, BYTE_SHUFFLE, DEFAULT_LEVEL, "<i2"),
  ]),
  ...TYPES.map((type) => compressor("lz4", "acceleration", 1, type)),
  ...[5, 9].map((acceleration) => compressor("lz4", "acceleration", acceleration, "|u1")),
  ...["gzip", "zlib", "zstd"].flatMap((id) => [
    ...LEVELS.map((level) => compressor(id, "level", level, "<f4")),
    compressor(id, "level", 1, "<i2"),
  ]),
  ...(["<i2", "<f4", "<f8"] as const).map((type) =>
    filter({ id: "shuffle", elementsize: itemSizeOf(type) }, type),
  ),
  ...(["|u1", "<i2"] as const).map((type) => filter({ id: "delta", dtype: type, astype: type }, type)),
  // Decoding it is no work, and encoding what was decoded from it is none, either.
  filter({ id: "bitround", keepbits: 12 }, "<f4", ["decode"]),
  filter({ id: "crc32" }, "<f4"),
  filter({ id: "crc32c" }, "<f4"),
]);

/** Tells cases apart. */
export function caseKey({ name, level, type }: CodecCase): string {
  return `${name}${level === undefined ? "" : ` ${level}`}, ${type}`;
}

function withoutRepeats(cases: readonly CodecCase[]): CodecCase[] {
  const keys = cases.map(caseKey);
  return cases.filter((_, i) => keys.indexOf(keys[i]!) === i);
}
