import { ZpublishError } from "../errors.js";
import { isJsonObject, type JsonObject, type JsonValue, toBigInt } from "../json/json-value.js";
import { describeJson } from "../json/stringify-json.js";
import { parseDataType } from "../model/data-type.js";
import { parseFillValue } from "../model/fill-value.js";
import type { CodecSpec } from "./codec-step.js";
import {
  dimensionsAttribute,
  invalidField,
  parseArray,
  parseDimensionNames,
  parseIntegers,
  parseObject,
  withinDocument,
  withoutDimensions,
} from "./metadata-fields.js";
import { INTERNAL_RULES } from "./plan/codec-rules.js";
import type { ArrayPlace, ParsedArray } from "./stored-array.js";

const requiredKeys = ["shape", "chunks", "dtype", "compressor", "fill_value", "order", "filters"];

/**
 * Parses an array's v2 documents.
 * @param zattrs Undefined if there is no such document.
 * @throws ZpublishError `invalid-metadata`, `unsupported`; the message begins with the document's name.
 */
export function parseV2Array(
  place: ArrayPlace,
  zarray: JsonValue,
  zattrs: JsonValue | undefined,
): ParsedArray {
  const document = parseFormat(zarray, ".zarray");
  for (const key of requiredKeys) {
    if (!Object.hasOwn(document, key)) throw invalidField(".zarray", `the key "${key}"`, undefined);
  }
  const warnings: string[] = [];
  const shape = parseIntegers(document.shape, ".zarray", "shape", 0);
  const dataType = withinDocument(".zarray", () => parseDataType(document.dtype as JsonValue));
  const fill = withinDocument(".zarray", () => parseFillValue(document.fill_value as JsonValue, dataType));
  const filters = parseFilters(document.filters);
  const compressor = parseCompressor(document.compressor);
  if (dataType.kind === "O" && filters.length === 0) {
    throw invalidField(
      ".zarray",
      'filters of an object dtype to begin with a codec that encodes objects, such as {"id":"vlen-utf8"}',
      document.filters,
    );
  }
  const attrs = parseV2Attributes(zattrs);
  const axes = shape.map((_, axis) => axis);
  return {
    array: {
      name: place.name,
      path: place.path,
      shape,
      chunkShape: parseChunks(document.chunks, shape),
      dataType,
      axisOrder: Object.freeze(parseOrder(document.order) === "F" ? axes.reverse() : axes),
      codecs: Object.freeze(compressor === null ? filters : [...filters, compressor]),
      compressorCount: compressor === null ? 0 : 1,
      fill: { served: fill.json, item: fill.item, absentIsServed: true },
      dimNames: parseDimensionNames(
        attrs[dimensionsAttribute],
        shape.length,
        `${dimensionsAttribute} in .zattrs`,
        warnings,
      ),
      attrs: withoutDimensions(attrs),
      chunks: {
        kind: "files",
        ...place.files,
        keyEncoding: { name: "v2", separator: parseSeparator(document.dimension_separator) },
      },
    },
    warnings,
  };
}

/**
 * Asserts that a document is a `.zgroup` of version 2.
 * @throws ZpublishError `invalid-metadata`, `unsupported`
 */
export function assertV2Group(zgroup: JsonValue): void {
  parseFormat(zgroup, ".zgroup");
}

/**
 * Parses the attributes of a v2 group or array.
 * @param zattrs Undefined if there is no such document; there are no attributes then.
 * @throws ZpublishError `invalid-metadata`
 */
export function parseV2Attributes(zattrs: JsonValue | undefined): JsonObject {
  return zattrs === undefined ? {} : parseObject(zattrs, ".zattrs", "the document");
}

function parseFormat(value: JsonValue, name: string): JsonObject {
  const document = parseObject(value, name, "the document");
  if (toBigInt(document.zarr_format) !== 2n) {
    throw invalidField(name, "zarr_format to be 2", document.zarr_format);
  }
  return document;
}

/**
 * Parses chunk lengths. zarr-python 2 writes 0 for an axis of length 0 if asked for no chunking, and cannot read that
 * itself. Such an axis has no chunks, so any length is right, and every client reads 1.
 */
function parseChunks(value: JsonValue | undefined, shape: readonly number[]): readonly number[] {
  const chunks = parseIntegers(value, ".zarray", "chunks", 0, shape.length);
  if (chunks.some((length, axis) => length === 0 && shape[axis] !== 0)) {
    throw invalidField(".zarray", "chunks to be positive integers", value);
  }
  return Object.freeze(chunks.map((length) => Math.max(1, length)));
}

function parseOrder(value: JsonValue | undefined): "C" | "F" {
  if (value !== "C" && value !== "F") throw invalidField(".zarray", 'order to be "C" or "F"', value);
  return value;
}

function parseSeparator(value: JsonValue | undefined): "." | "/" {
  if (value === undefined || value === null) return ".";
  if (value !== "." && value !== "/") {
    throw invalidField(".zarray", 'dimension_separator to be "." or "/"', value);
  }
  return value;
}

function parseFilters(value: JsonValue | undefined): CodecSpec[] {
  if (value === null) return [];
  return parseArray(value, ".zarray", "filters").map((filter) => parseCodec(filter, "every filter"));
}

function parseCompressor(value: JsonValue | undefined): CodecSpec | null {
  return value === null ? null : parseCodec(value, "compressor");
}

function parseCodec(value: JsonValue | undefined, what: string): CodecSpec {
  if (!isJsonObject(value) || typeof value.id !== "string" || value.id === "") {
    throw invalidField(".zarray", `${what} to be an object with the id of a codec`, value);
  }
  // Their options are not checked, and documents are served without them.
  if (Object.hasOwn(INTERNAL_RULES, value.id)) {
    throw new ZpublishError(
      "unsupported",
      `.zarray: expected ${what} to be a codec of Zarr, received ${describeJson(value.id)}, which only files of other formats have`,
    );
  }
  return value as CodecSpec;
}

/** `.zarray` of the Zarr v2 specification, complete. Field names are the specification's. */
export interface ArrayDocument {
  readonly chunks: readonly number[];
  readonly compressor: CodecSpec | null;
  readonly dimension_separator: "." | "/";
  readonly dtype: JsonValue;
  readonly fill_value: JsonValue;
  readonly filters: readonly CodecSpec[] | null;
  readonly order: "C" | "F";
  readonly shape: readonly number[];
  readonly zarr_format: 2;
}
