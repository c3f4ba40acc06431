import { isJsonArray, type JsonObject, type JsonValue, toBigInt } from "../../json/json-value.js";
import { describeJson } from "../../json/stringify-json.js";
import { elementCount } from "../../model/data-tree.js";
import { parseDataType } from "../../model/data-type.js";
import type { ShardLevel } from "../chunk-reader.js";
import type { CodecSpec } from "../codec-step.js";
import { invalidField, parseArray, parseIntegers } from "../metadata-fields.js";
import { type Extension, parseExtension, unsupported, v3Document } from "./v3-extension.js";
import { parsePackbits, VALUE_CODECS } from "./value-codecs.js";

/** A chain of v3 codecs in the terms of v2. */
export interface CodecChain {
  /** The codec that makes bytes of an array. */
  readonly serializer: "bytes" | "packbits" | "vlen-utf8" | "vlen-bytes" | "sharding_indexed";
  /** Little-endian v2 dtype of the items that it makes bytes of. */
  readonly itemType: JsonValue;
  /** Configuration of `sharding_indexed`; empty for other serializers. */
  readonly sharding: JsonObject;
  /** Byte order that the codec `bytes` names; undefined if it names none (one-byte types). */
  readonly byteOrder: "<" | ">" | undefined;
  /** Axes from slowest to fastest varying, after all transposes. */
  readonly axisOrder: readonly number[];
  /** Filters and compressor, without those that type and axis order express. */
  readonly codecs: readonly CodecSpec[];
  readonly compressorCount: 0 | 1;
}

/** Codecs of numcodecs that change an array, and need its item type. */
export const ARRAY_FILTERS: ReadonlySet<string> = new Set([
  "delta",
  "fixedscaleoffset",
  "quantize",
  "astype",
  "bitround",
  "packbits",
]);
const typedFilters = new Set(["delta", "fixedscaleoffset", "quantize"]);
/** Codecs of numcodecs that change bytes: the compressors of v2, and filters. */
const byteCompressors = new Set(["blosc", "lz4", "zstd", "zlib", "gzip", "bz2", "lzma"]);
const byteFilters = new Set(["shuffle", "crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3"]);

/** Codecs of numcodecs from bytes to bytes. */
export const BYTE_CODECS: ReadonlySet<string> = new Set([...byteCompressors, ...byteFilters]);

/** Names of Blosc's shuffles in v3, by their number in numcodecs. */
export const BLOSC_SHUFFLE_NAMES: readonly string[] = ["noshuffle", "shuffle", "bitshuffle"];

/** Core codecs from bytes to bytes, as numcodecs configures them. */
const coreByteCodecs: Readonly<Record<string, (configuration: JsonObject) => CodecSpec>> = {
  gzip: ({ level = 5 }) => ({ id: "gzip", level }),
  // A frame says itself whether it has a checksum, and numcodecs before 0.13 knows no such key.
  zstd: ({ level = 0 }) => ({ id: "zstd", level }),
  blosc: (configuration) => ({
    id: "blosc",
    cname: configuration.cname ?? "lz4",
    clevel: configuration.clevel ?? 5,
    shuffle: bloscShuffle(configuration.shuffle),
    blocksize: configuration.blocksize ?? 0,
  }),
  crc32c: () => ({ id: "crc32c" }),
};

/**
 * Codecs of the registry (https://github.com/zarr-developers/zarr-extensions) that are not read, and why. All others are: those
 * above, `VALUE_CODECS`, and in `readCodec` those that make bytes. `bitround` has nothing to decode.
 */
const REFUSED_CODECS: Readonly<Record<string, string>> = {
  conditional: "each of its chunks says which codecs it has",
  n5_default: "its chunks begin with a header of N5",
  reshape: "its chunks have other axes than the array",
  zfp: "only libzfp decodes it",
};

/** State of parsing a chain: codecs of arrays first, then one serializer, then codecs of bytes. */
interface Reading {
  readonly rank: number;
  itemType: JsonValue;
  serializer: CodecChain["serializer"] | undefined;
  sharding: JsonObject;
  byteOrder: "<" | ">" | undefined;
  axisOrder: readonly number[];
  isTransposed: boolean;
  readonly filters: CodecSpec[];
  readonly codecs: CodecSpec[];
}

/**
 * Parses `codecs`.
 * @param itemType The array's little-endian v2 dtype, for filters that do not name theirs.
 * @throws ZpublishError `invalid-metadata`, `unsupported`
 */
export function parseCodecChain(value: JsonValue | undefined, rank: number, itemType: JsonValue): CodecChain {
  const reading: Reading = {
    rank,
    itemType,
    serializer: undefined,
    sharding: {},
    byteOrder: undefined,
    axisOrder: Object.freeze(Array.from({ length: rank }, (_, axis) => axis)),
    isTransposed: false,
    filters: [],
    codecs: [],
  };
  for (const codec of parseArray(value, v3Document, "codecs")) {
    readCodec(parseExtension(codec, "every codec"), reading);
  }
  const { serializer } = reading;
  if (serializer === undefined) {
    throw invalidField(v3Document, "codecs to have one that makes bytes of an array, such as bytes", value);
  }
  const numcodec = reading.filters.find(({ id }) => ARRAY_FILTERS.has(id));
  const beside = reading.filters.find(({ id }) => Object.hasOwn(VALUE_CODECS, id))?.id;
  if (numcodec !== undefined && (reading.isTransposed || reading.byteOrder === ">" || beside !== undefined)) {
    // Such a filter runs on values before they are transposed or swapped; in v2 it runs on the bytes that are stored.
    const cause = reading.isTransposed ? "transpose" : (beside ?? "big-endian bytes");
    throw unsupported(`no ${cause} beside a filter on values`, JSON.stringify(numcodec.id));
  }
  const innermost = reading.filters.at(-1);
  if (innermost !== undefined && reading.byteOrder === ">") {
    reading.filters.splice(-1, 1, { ...innermost, astype: String(reading.itemType).replace("<", ">") });
  }
  const last = reading.codecs.at(-1);
  return {
    serializer,
    itemType: reading.itemType,
    sharding: reading.sharding,
    byteOrder: reading.byteOrder,
    axisOrder: reading.axisOrder,
    codecs: Object.freeze([...reading.filters, ...reading.codecs]),
    compressorCount: last !== undefined && byteCompressors.has(last.id) ? 1 : 0,
  };
}

function readCodec(codec: Extension, reading: Reading): void {
  const { name } = codec;
  if (name === "transpose") {
    assertStage(name, reading.serializer === undefined);
    reading.axisOrder = transposed(codec, reading);
    reading.isTransposed = true;
  } else if (name === "bytes") {
    assertStage(name, reading.serializer === undefined);
    reading.serializer = name;
    reading.byteOrder = parseEndian(codec);
  } else if (Object.hasOwn(VALUE_CODECS, name)) {
    assertStage(name, reading.serializer === undefined);
    const spec = (VALUE_CODECS[name] as (typeof VALUE_CODECS)[string])(codec.configuration, reading.itemType);
    reading.filters.push(spec);
    reading.itemType = spec.astype as JsonValue;
  } else if (name === "packbits") {
    assertStage(name, reading.serializer === undefined);
    reading.serializer = name;
    reading.codecs.push(parsePackbits(codec.configuration, reading.itemType));
  } else if (name === "vlen-utf8" || name === "vlen-bytes" || name === "sharding_indexed") {
    assertStage(name, reading.serializer === undefined);
    reading.serializer = name;
    if (name === "sharding_indexed") reading.sharding = codec.configuration;
    else reading.codecs.push({ id: name });
  } else if (Object.hasOwn(coreByteCodecs, name)) {
    assertStage(name, reading.serializer !== undefined);
    reading.codecs.push((coreByteCodecs[name] as (typeof coreByteCodecs)[string])(codec.configuration));
  } else if (name.startsWith("numcodecs.")) {
    readNumcodec(codec, name.slice("numcodecs.".length), reading);
  } else if (codec.mustUnderstand) {
    const reason = Object.hasOwn(REFUSED_CODECS, name) ? `, which is not read: ${REFUSED_CODECS[name]}` : "";
    throw unsupported("a codec known here", JSON.stringify(name) + reason);
  }
}

function readNumcodec(codec: Extension, id: string, reading: Reading): void {
  if (byteCompressors.has(id) || byteFilters.has(id)) {
    assertStage(codec.name, reading.serializer !== undefined);
    reading.codecs.push({ ...codec.configuration, id });
  } else if (ARRAY_FILTERS.has(id)) {
    assertStage(codec.name, reading.serializer === undefined);
    reading.filters.push({ ...filterTypes(codec.configuration, id, reading.itemType), id });
  } else if (codec.mustUnderstand) {
    throw unsupported("a codec known here", JSON.stringify(codec.name));
  }
}

/** v3 writes item types by name (`"float32"`) or not at all, numcodecs in v2 as type strings (`"<f4"`). */
function filterTypes(configuration: JsonObject, id: string, itemType: JsonValue): JsonObject {
  const types: Record<string, JsonValue> = {};
  if (typedFilters.has(id) && configuration.dtype === undefined) types.dtype = itemType;
  if (id === "astype" && configuration.decode_dtype === undefined) types.decode_dtype = itemType;
  for (const key of ["dtype", "astype", "encode_dtype", "decode_dtype"]) {
    const type = configuration[key];
    if (type !== undefined && type !== null) types[key] = parseDataType(type).zarr;
  }
  return { ...configuration, ...types };
}

function assertStage(name: string, isRight: boolean): void {
  if (isRight) return;
  throw unsupported(
    "codecs for arrays, then one that makes bytes, then codecs for bytes",
    `${name} elsewhere`,
  );
}

/** Composes a transpose: axis i of its output is axis `order[i]` of its input. */
function transposed(codec: Extension, reading: Reading): readonly number[] {
  const { order } = codec.configuration;
  const { rank, axisOrder } = reading;
  if (order === "C") return axisOrder;
  // Early writers of v3 write "F" for all axes reversed.
  if (order === "F") return Object.freeze([...axisOrder].reverse());
  const axes = isJsonArray(order) ? order.map((axis) => Number(toBigInt(axis) ?? -1)) : [];
  const isPermutation =
    isJsonArray(order) &&
    axes.length === rank &&
    [...axes].sort((a, b) => a - b).every((axis, i) => axis === i);
  if (!isPermutation) {
    throw invalidField(v3Document, `order of transpose to be a permutation of ${rank} axes`, order);
  }
  return Object.freeze(axes.map((axis) => axisOrder[axis]!));
}

/**
 * Reads the byte order that a `bytes` codec names; undefined if it names none.
 * @throws ZpublishError `invalid-metadata`
 */
function parseEndian(codec: Extension): "<" | ">" | undefined {
  const { endian } = codec.configuration;
  if (endian === undefined || endian === null) return undefined;
  if (endian === "little") return "<";
  if (endian === "big") return ">";
  throw invalidField(v3Document, 'endian of bytes to be "little" or "big"', endian);
}

function bloscShuffle(shuffle: JsonValue | undefined): JsonValue {
  const number = BLOSC_SHUFFLE_NAMES.indexOf(shuffle as string);
  if (number >= 0) return number;
  throw invalidField(v3Document, `shuffle of blosc to be one of ${BLOSC_SHUFFLE_NAMES.join(", ")}`, shuffle);
}

/** Largest number of chunks in a shard: its index, which is read whole, has a gibibyte then. */
const maxChunksPerShard = 2 ** 26;

/** The innermost chunks of shards, and the levels around them. */
interface ShardedChunks {
  readonly chunkShape: readonly number[];
  /** The codecs of one chunk. */
  readonly chain: CodecChain;
  /** Outermost first; empty if chunks are not sharded. */
  readonly levels: readonly ShardLevel[];
}

/**
 * Parses `sharding_indexed`, level by level, down to the chunks that are no shards.
 * @param outer The array's codecs.
 * @param gridChunk `chunk_shape` of the array's grid.
 * @param itemType As for {@link parseCodecChain}.
 * @throws ZpublishError `invalid-metadata`, `unsupported`
 */
export function parseSharding(
  outer: CodecChain,
  gridChunk: readonly number[],
  itemType: JsonValue,
): ShardedChunks {
  const levels: ShardLevel[] = [];
  let chain = outer;
  let chunkShape = gridChunk;
  while (chain.serializer === "sharding_indexed") {
    assertNoOtherCodecs(chain);
    const shardShape = chunkShape;
    chunkShape = parseInnerShape(chain, shardShape);
    levels.push(parseLevel(chain, shardShape, chunkShape));
    chain = parseCodecChain(chain.sharding.codecs, gridChunk.length, itemType);
  }
  return { chunkShape, chain, levels: Object.freeze(levels) };
}

/** Asserts that no other codec surrounds a shard: it would hide the index. */
function assertNoOtherCodecs({ codecs, axisOrder }: CodecChain): void {
  if (codecs.length === 0 && axisOrder.every((axis, position) => axis === position)) return;
  throw unsupported("no codec beside sharding_indexed", JSON.stringify(codecs[0]?.id ?? "transpose"));
}

function parseInnerShape({ sharding }: CodecChain, shardShape: readonly number[]): readonly number[] {
  const { chunk_shape } = sharding;
  const what = "chunk_shape of sharding_indexed";
  const chunkShape = parseIntegers(chunk_shape, v3Document, what, 1, shardShape.length);
  if (chunkShape.every((length, axis) => shardShape[axis]! % length === 0)) return chunkShape;
  throw invalidField(v3Document, `${what} to divide the shard's ${describeJson(shardShape)}`, chunk_shape);
}

function parseLevel(
  { sharding }: CodecChain,
  shardShape: readonly number[],
  chunkShape: readonly number[],
): ShardLevel {
  const { index_codecs, index_location: indexLocation = "end" } = sharding;
  if (indexLocation !== "start" && indexLocation !== "end") {
    throw invalidField(v3Document, 'index_location to be "start" or "end"', indexLocation);
  }
  const chunksPerShard = shardShape.map((length, axis) => length / chunkShape[axis]!);
  if (elementCount(chunksPerShard) > maxChunksPerShard) {
    throw unsupported(`at most ${maxChunksPerShard} chunks per shard`, describeJson(chunksPerShard));
  }
  return Object.freeze({
    chunksPerShard: Object.freeze(chunksPerShard),
    indexLocation,
    ...parseIndexCodecs(index_codecs),
  });
}

/** Parses `index_codecs`: `bytes`, optionally followed by `crc32c`. */
function parseIndexCodecs(
  value: JsonValue | undefined,
): Pick<ShardLevel, "indexByteOrder" | "indexChecksum"> {
  const codecs = parseArray(value, v3Document, "index_codecs").map((codec) =>
    parseExtension(codec, "every index codec"),
  );
  const [bytes, checksum] = codecs;
  const isKnown =
    bytes?.name === "bytes" && codecs.length <= 2 && (checksum === undefined || checksum.name === "crc32c");
  if (!isKnown) throw unsupported("index_codecs to be bytes, or bytes and crc32c", describeJson(value));
  const indexByteOrder = parseEndian(bytes);
  if (indexByteOrder === undefined)
    throw invalidField(v3Document, "bytes of index_codecs to name an endian", value);
  return { indexByteOrder, indexChecksum: checksum !== undefined };
}
