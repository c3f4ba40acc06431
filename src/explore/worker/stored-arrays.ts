import { type Packing, packingOf } from "../../cf/packing.js";
import { messageOf } from "../../errors.js";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from "../../json/json-value.js";
import { parseJson } from "../../json/parse-json.js";
import { type DataType, parseDataType } from "../../model/data-type.js";
import { type ReadableDocument, readableDocument } from "./readable-document.js";
import { roundToType, unsignedType } from "./stored-type.js";

/** An array of a store. */
export interface StoredArray {
  readonly path: string;
  readonly group: string;
  readonly name: string;
  readonly zarray: JsonObject;
  readonly attrs: JsonObject;
  readonly dims: readonly string[];
  readonly shape: readonly number[];
  readonly chunkShape: readonly number[];
  readonly dataType: DataType;
  readonly packing: Packing;
  readonly readable: ReadableDocument | string;
}

const DIMENSIONS = "_ARRAY_DIMENSIONS";
/** Parses `.zmetadata` into arrays, in their order, and the attributes of the root. @throws ZpublishError `invalid-metadata` */
export function arraysOf(text: string): { arrays: StoredArray[]; attrs: JsonObject } {
  const document = parseJson(text);
  const metadata = isJsonObject(document) ? document.metadata : undefined;
  if (!isJsonObject(metadata)) return { arrays: [], attrs: {} };
  const arrays: StoredArray[] = [];
  for (const [key, zarray] of Object.entries(metadata)) {
    if (!key.endsWith("/.zarray") || !isJsonObject(zarray)) continue;
    const path = key.slice(0, -"/.zarray".length);
    arrays.push(storedArray(path, zarray, objectOf(metadata[`${path}/.zattrs`])));
  }
  return { arrays, attrs: objectOf(metadata[".zattrs"]) };
}

/** Numbers that JSON has no literal for, as Zarr v2 writes them. */
const SPECIAL_FILLS: Readonly<Record<string, number>> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  "-Infinity": Number.NEGATIVE_INFINITY,
};

function storedArray(path: string, document: JsonObject, allAttrs: JsonObject): StoredArray {
  const fill = document.fill_value;
  const isSpecial =
    typeof fill === "string" && Object.hasOwn(SPECIAL_FILLS, fill) && !/[SUO]/.test(String(document.dtype));
  const zarray = isSpecial ? { ...document, fill_value: SPECIAL_FILLS[fill]! } : document;
  const { [DIMENSIONS]: dimensions, ...attrs } = allAttrs;
  const shape = isJsonArray(zarray.shape) ? zarray.shape.map(Number) : [];
  const names = isJsonArray(dimensions) ? dimensions.map(String) : [];
  const slash = path.lastIndexOf("/");
  const common = {
    path,
    group: path.slice(0, slash + 1),
    name: path.slice(slash + 1),
    zarray,
    attrs,
    dims: shape.map((_, axis) => names[axis] ?? `dim_${axis}`),
    shape,
    chunkShape: isJsonArray(zarray.chunks) ? zarray.chunks.map(Number) : [],
  };
  const packing = packingOf(attrs, zarray.fill_value);
  try {
    const dataType = parseDataType(zarray.dtype as JsonValue);
    const read = unsignedType(dataType, packing.isUnsigned);
    const rounded = roundToType(packing, read);
    const readable = readableDocument({ ...zarray, dtype: read.zarr }, rounded);
    return { ...common, dataType, packing: rounded, readable };
  } catch (error) {
    const dataType = parseDataType("|V1");
    return { ...common, dataType, packing, readable: `${messageOf(error)}.` };
  }
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}
