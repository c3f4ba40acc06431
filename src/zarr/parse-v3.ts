import { elementCount } from "../model/chunk-grid.js";
import { isJsonObject, type JsonObject, type JsonValue, toBigInt } from "../model/json-value.js";
import type { ChunkKeyEncoding, ChunkSource } from "../source/chunk-source.js";
import type { ArrayPlace, ParsedArray } from "./array-place.js";
import { dimensionsAttribute, parseDimensionNames, withoutDimensions } from "./dimension-names.js";
import {
  describeValue,
  invalidField,
  requireArray,
  requireIntegers,
  requireObject,
} from "./metadata-fields.js";
import { type CodecChain, parseCodecChain, parseIndexCodecs } from "./v3-codecs.js";
import { parseV3DataType } from "./v3-data-type.js";
import { parseExtension, refuseUnknownKeys, unsupported, v3Document } from "./v3-extension.js";
import { serveV3Fill } from "./v3-fill-value.js";

const arrayKeys = new Set([
  "zarr_format",
  "node_type",
  "shape",
  "data_type",
  "chunk_grid",
  "chunk_key_encoding",
  "fill_value",
  "codecs",
  "attributes",
  "dimension_names",
  "storage_transformers",
]);
/** Bounds a shard's index, read whole, to a gibibyte. */
const maxChunksPerShard = 2 ** 26;
const groupKeys = new Set(["zarr_format", "node_type", "attributes", "consolidated_metadata"]);

/**
 * Whether a `zarr.json` describes an array or a group.
 * @throws ZpublishError `invalid-metadata` where it is neither, or of another format version.
 */
export function v3NodeType(document: JsonValue): "array" | "group" {
  const { zarr_format: format, node_type: type } = requireObject(document, v3Document, "the document");
  if (toBigInt(format) !== 3n) throw invalidField(v3Document, "zarr_format to be 3", format);
  if (type !== "array" && type !== "group") {
    throw invalidField(v3Document, 'node_type to be "array" or "group"', type);
  }
  return type;
}

/**
 * The attributes of a v3 group.
 * @throws ZpublishError `invalid-metadata`, `unsupported`
 */
export function parseV3Group(document: JsonValue): JsonObject {
  const group = requireObject(document, v3Document, "the document");
  refuseUnknownKeys(group, groupKeys);
  return attributesOf(group);
}

/**
 * An array from its `zarr.json`, in the terms of v2.
 * @throws ZpublishError `invalid-metadata`, `unsupported`; the message begins with the document's name.
 */
export function parseV3Array(place: ArrayPlace, value: JsonValue): ParsedArray {
  const document = requireObject(value, v3Document, "the document");
  refuseUnknownKeys(document, arrayKeys);
  refuseTransformers(document.storage_transformers);
  const warnings: string[] = [];
  const shape = requireIntegers(document.shape, v3Document, "shape", 0);
  const rank = shape.length;
  const gridChunk = parseGrid(document.chunk_grid, rank);
  const keyEncoding = parseKeyEncoding(document.chunk_key_encoding);
  const itemType = parseV3DataType(document.data_type, "<").dataType.zarr;
  const outer = parseCodecChain(document.codecs, rank, itemType);
  const stored = storedChunks(place, outer, gridChunk, keyEncoding, itemType);
  const type = parseV3DataType(document.data_type, stored.chain.byteOrder ?? "<");
  const { dataType } = type;
  checkSerializer(stored.chain, dataType.byteOrder, type.objectCodec);
  const attrs = attributesOf(document);
  const names = document.dimension_names ?? undefined;
  const dimNames = parseDimensionNames(names, rank, "dimension_names", warnings);
  const isNamed = dimNames?.every((name) => name !== null) ?? false;
  const served = serveV3Fill(document.fill_value, type, withoutDimensions(attrs), isNamed, warnings);
  return {
    array: {
      name: place.name,
      path: place.path,
      shape,
      chunkShape: stored.chunkShape,
      dataType,
      axisOrder: stored.chain.axisOrder,
      codecs: stored.chain.codecs,
      compressorCount: stored.chain.compressorCount,
      fill: served.fill,
      dimNames:
        dimNames ?? parseDimensionNames(attrs[dimensionsAttribute], rank, dimensionsAttribute, warnings),
      attrs: served.attrs,
      chunks: stored.chunks,
    },
    warnings,
  };
}

interface StoredChunks {
  readonly chunkShape: readonly number[];
  readonly chain: CodecChain;
  readonly chunks: ChunkSource;
}

function storedChunks(
  place: ArrayPlace,
  outer: CodecChain,
  gridChunk: readonly number[],
  keyEncoding: ChunkKeyEncoding,
  itemType: JsonValue,
): StoredChunks {
  if (outer.serializer !== "sharding_indexed") {
    return {
      chunkShape: gridChunk,
      chain: outer,
      chunks: { kind: "files", ...place.files, keyEncoding },
    };
  }
  const rank = gridChunk.length;
  if (outer.codecs.length > 0 || !outer.axisOrder.every((axis, i) => axis === i)) {
    const name = outer.codecs[0]?.id ?? "transpose";
    throw unsupported("no codec beside sharding_indexed", JSON.stringify(name));
  }
  const { chunk_shape, codecs, index_codecs, index_location = "end" } = outer.sharding;
  const chunkShape = requireIntegers(chunk_shape, v3Document, "chunk_shape of sharding_indexed", 1, rank);
  if (!chunkShape.every((length, axis) => (gridChunk[axis] as number) % length === 0)) {
    throw invalidField(
      v3Document,
      `chunk_shape of sharding_indexed to divide the shard's ${describeValue(gridChunk)}`,
      chunk_shape,
    );
  }
  if (index_location !== "start" && index_location !== "end") {
    throw invalidField(v3Document, 'index_location to be "start" or "end"', index_location);
  }
  const chunksPerShard = gridChunk.map((length, axis) => length / (chunkShape[axis] as number));
  if (elementCount(chunksPerShard) > maxChunksPerShard) {
    throw unsupported(`at most ${maxChunksPerShard} chunks per shard`, describeValue(chunksPerShard));
  }
  const chain = parseCodecChain(codecs, rank, itemType);
  if (chain.serializer === "sharding_indexed") {
    throw unsupported("one level of sharding", "sharding_indexed inside of sharding_indexed");
  }
  return {
    chunkShape,
    chain,
    chunks: {
      kind: "shards",
      ...place.files,
      keyEncoding,
      chunksPerShard: Object.freeze(chunksPerShard),
      indexLocation: index_location,
      ...parseIndexCodecs(index_codecs),
    },
  };
}

/** The codec that makes bytes must be one for the type: `bytes` for fixed sizes, with an endian where there is one. */
function checkSerializer(chain: CodecChain, byteOrder: string, objectCodec: string | null): void {
  const expected = objectCodec ?? "bytes";
  if (chain.serializer !== expected) {
    throw unsupported(`the codec ${expected} for this data_type`, chain.serializer);
  }
  if (byteOrder !== "|" && chain.byteOrder === undefined) {
    throw invalidField(v3Document, "the codec bytes to name an endian", undefined);
  }
}

function parseGrid(value: JsonValue | undefined, rank: number): readonly number[] {
  const grid = parseExtension(value, "chunk_grid");
  if (grid.name !== "regular") throw unsupported("a regular chunk_grid", JSON.stringify(grid.name));
  return requireIntegers(grid.configuration.chunk_shape, v3Document, "chunk_shape", 1, rank);
}

function parseKeyEncoding(value: JsonValue | undefined): ChunkKeyEncoding {
  const { name, configuration } = parseExtension(value, "chunk_key_encoding");
  if (name !== "default" && name !== "v2") {
    throw unsupported("chunk_key_encoding default or v2", JSON.stringify(name));
  }
  const separator = configuration.separator ?? (name === "default" ? "/" : ".");
  if (separator !== "." && separator !== "/") {
    throw invalidField(v3Document, 'separator of chunk_key_encoding to be "." or "/"', separator);
  }
  return Object.freeze({ name, separator });
}

function refuseTransformers(value: JsonValue | undefined): void {
  if (value === undefined || value === null) return;
  const [first] = requireArray(value, v3Document, "storage_transformers");
  if (first === undefined) return;
  const { name } = parseExtension(first, "every storage transformer");
  throw unsupported("no storage_transformers", JSON.stringify(name));
}

function attributesOf(document: JsonObject): JsonObject {
  const { attributes = {} } = document;
  if (!isJsonObject(attributes)) throw invalidField(v3Document, "attributes to be an object", attributes);
  return attributes;
}
