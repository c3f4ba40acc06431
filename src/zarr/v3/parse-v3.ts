import { isJsonObject, type JsonObject, type JsonValue, toBigInt } from "../../json/json-value.js";
import { lengthRangeOf, regularLengthOf } from "../../model/chunk-axis.js";
import { parseDataType } from "../../model/data-type.js";
import { fillItemToJson } from "../../model/fill-value.js";
import type { ChunkKeyEncoding, FileChunks } from "../chunk-reader.js";
import {
  dimensionsAttribute,
  invalidField,
  parseArray,
  parseDimensionNames,
  parseIntegers,
  parseObject,
  withoutDimensions,
} from "../metadata-fields.js";
import { MAX_STORED_CHUNKS } from "../plan/create-encoding-plan.js";
import type { ArrayPlace, ParsedArray } from "../stored-array.js";
import { parseChunkGrid } from "./chunk-grid.js";
import { peelValueCodecs } from "./peel-value-codecs.js";
import { type CodecChain, parseCodecChain, parseSharding } from "./v3-codecs.js";
import { parseV3DataType } from "./v3-data-type.js";
import { assertKnownKeys, parseExtension, unsupported, v3Document } from "./v3-extension.js";
import { serveV3Fill } from "./v3-fill-value.js";
import { VALUE_CODECS } from "./value-codecs.js";

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
const groupKeys = new Set(["zarr_format", "node_type", "attributes", "consolidated_metadata"]);

/**
 * Tells whether a `zarr.json` describes an array or a group.
 * @throws ZpublishError `invalid-metadata` if it is neither, or of another format version.
 */
export function v3NodeType(document: JsonValue): "array" | "group" {
  const { zarr_format: format, node_type: type } = parseObject(document, v3Document, "the document");
  if (toBigInt(format) !== 3n) throw invalidField(v3Document, "zarr_format to be 3", format);
  if (type !== "array" && type !== "group") {
    throw invalidField(v3Document, 'node_type to be "array" or "group"', type);
  }
  return type;
}

/** Parses a v3 group; returns its attributes. @throws ZpublishError `invalid-metadata`, `unsupported` */
export function parseV3Group(document: JsonValue): JsonObject {
  const group = parseObject(document, v3Document, "the document");
  assertKnownKeys(group, groupKeys);
  return attributesOf(group);
}

/**
 * Parses an array's `zarr.json` into the terms of v2. If it has `axes`, `chunks` are the stored ones, not those of the served grid.
 * @throws ZpublishError `invalid-metadata`, `unsupported`; the message begins with the document's name.
 */
export function parseV3Array(place: ArrayPlace, value: JsonValue): ParsedArray {
  const { document, isPacked, remark } = peelValueCodecs(parseObject(value, v3Document, "the document"));
  assertKnownKeys(document, arrayKeys);
  assertNoTransformers(document.storage_transformers);
  const warnings: string[] = [];
  const shape = parseIntegers(document.shape, v3Document, "shape", 0);
  const rank = shape.length;
  const keyEncoding = parseKeyEncoding(document.chunk_key_encoding);
  const { gridChunk, axes, chunkShape, chain, levels } = parseChunks(document, shape);
  const isDecoded = chain.codecs.some(({ id }) => Object.hasOwn(VALUE_CODECS, id));
  const type = parseV3DataType(document.data_type, isDecoded ? "<" : (chain.byteOrder ?? "<"));
  const { dataType } = type;
  assertSerializer(chain, type.objectCodec);
  const attrs = attributesOf(document);
  const names = document.dimension_names ?? undefined;
  const dimNames = parseDimensionNames(names, rank, "dimension_names", warnings);
  // Attributes of packed numbers mean something to xarray only.
  const isReadByXarray = rank === 0 || isPacked || (dimNames?.every((name) => name !== null) ?? false);
  const served = serveV3Fill(document.fill_value, type, withoutDimensions(attrs), isReadByXarray, warnings);
  const { item } = served.fill;
  // Not as hexadecimal digits, which zarr-python 3.0 does not read.
  const isFloat = dataType.kind === "f" || dataType.kind === "c";
  const files: FileChunks = { kind: "files", ...place.files, keyEncoding };
  return {
    array: {
      name: place.name,
      path: place.path,
      shape,
      chunkShape,
      dataType,
      axisOrder: chain.axisOrder,
      codecs: chain.codecs,
      compressorCount: chain.compressorCount,
      fill: served.fill,
      dimNames:
        dimNames ?? parseDimensionNames(attrs[dimensionsAttribute], rank, dimensionsAttribute, warnings),
      attrs: served.attrs,
      chunks: levels.length === 0 ? files : { kind: "shards", ...place.files, keyEncoding, levels },
      ...(remark !== undefined && { remark }),
      v3: {
        dataType: document.data_type as JsonValue,
        fillValue:
          isFloat && item !== null ? fillItemToJson(item, dataType) : (document.fill_value as JsonValue),
        attrs: withoutDimensions(attrs),
        codecs: isDecoded || chain.serializer === "packbits" ? null : (document.codecs as JsonValue),
        fileShape: gridChunk,
        files,
      },
      ...(axes && { axes }),
    },
    warnings,
  };
}

/** Asserts that the codec that makes bytes is one for the type: `bytes` for fixed sizes, with an endian unless items are bytes. */
function assertSerializer(chain: CodecChain, objectCodec: string | null): void {
  const expected = objectCodec ?? "bytes";
  if (chain.serializer === "packbits") return;
  if (chain.serializer !== expected) {
    throw unsupported(`the codec ${expected} for this data_type`, chain.serializer);
  }
  if (parseDataType(chain.itemType).byteOrder !== "|" && chain.byteOrder === undefined) {
    throw invalidField(v3Document, "the codec bytes to name an endian", undefined);
  }
}

/** Parses the grid of an array, and its codecs. If there are `axes`, `gridChunk` and `chunkShape` are of the regular grid that is served. */
function parseChunks(document: JsonObject, shape: readonly number[]) {
  const rank = shape.length;
  const grid = parseChunkGrid(document.chunk_grid, shape);
  const itemType = parseV3DataType(document.data_type, "<").dataType.zarr;
  const outer = parseCodecChain(document.codecs, rank, itemType);
  const sharding = (gridChunk: readonly number[]) => ({
    gridChunk,
    ...parseSharding(outer, gridChunk, itemType),
  });
  if ("chunkShape" in grid) return { axes: undefined, ...sharding(grid.chunkShape) };
  const { axes } = grid;
  if (outer.serializer !== "sharding_indexed") {
    const maxAlongAxis = Math.floor(MAX_STORED_CHUNKS ** (1 / rank));
    return { axes, ...sharding(axes.map((axis) => regularLengthOf(axis, maxAlongAxis))) };
  }
  if (axes.some(({ runs }) => runs.some(({ length, decodedLength }) => length !== decodedLength)))
    throw unsupported("no encoded_chunk_shapes beside sharding_indexed", "some");
  // What divides the greatest common divisor divides all lengths. Of the longest shards, the index is bounded.
  sharding(axes.map(({ runs }) => runs.reduce((divisor, { length }) => gcd(divisor, length), 0)));
  return { axes, ...sharding(axes.map((axis) => lengthRangeOf(axis)[1])) };
}

function gcd(one: number, other: number): number {
  return other === 0 ? one : gcd(other, one % other);
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

function assertNoTransformers(value: JsonValue | undefined): void {
  if (value === undefined || value === null) return;
  const [first] = parseArray(value, v3Document, "storage_transformers");
  if (first === undefined) return;
  const { name } = parseExtension(first, "every storage transformer");
  throw unsupported("no storage_transformers", JSON.stringify(name));
}

function attributesOf(document: JsonObject): JsonObject {
  const { attributes = {} } = document;
  if (!isJsonObject(attributes)) throw invalidField(v3Document, "attributes to be an object", attributes);
  return attributes;
}
