import { isJsonArray, type JsonObject, type JsonValue, setEntry } from "../../../json/json-value.js";
import { pythonFloat } from "../../../json/stringify-json.js";
import type { Hdf5Attribute, Hdf5Item, Hdf5Type } from "../hdf5-model.js";

/** Attributes of HDF5's dimension scales and of netCDF, which are no attributes of the data. */
const BOOKKEEPING: ReadonlySet<string> = new Set([
  "CLASS",
  "NAME",
  "DIMENSION_LIST",
  "REFERENCE_LIST",
  "_Netcdf4Dimid",
  "_Netcdf4Coordinates",
  "_nc3_strict",
  "_NCProperties",
  // Names the dimensions of a Zarr array, so no file can have it as an attribute.
  "_ARRAY_DIMENSIONS",
]);

/**
 * Maps the attributes of a group or dataset as xarray's netCDF4 engine reads them: a list of one value is that value.
 *
 * A 32-bit float is written with the digits of its exact value. xarray computes with `scale_factor` in 64 bits, and a shorter text
 * would be another number then.
 * @param problems Receives a line for each attribute that is left out, without the path of its owner.
 */
export function mapAttributes(
  attributes: ReadonlyMap<string, Hdf5Attribute>,
  problems: string[],
): JsonObject {
  const attrs: Record<string, JsonValue> = {};
  for (const [name, attribute] of attributes) {
    if (BOOKKEEPING.has(name)) continue;
    const problem = typeProblem(attribute.type) ?? attribute.problem;
    if (problem === undefined) setEntry(attrs, name, mapAttribute(attribute));
    else problems.push(`attribute ${JSON.stringify(name)} is left out: ${problem}`);
  }
  return attrs;
}

/** Maps the value of an attribute whose items can be read. */
export function mapAttribute({ type, shape, items }: Hdf5Attribute): JsonValue {
  // An empty dataspace: netCDF writes "" as one, and other libraries mean a list without items.
  if (shape === null || items === undefined) return type.kind === "string" ? "" : [];
  const values = items.map((item) => mapItem(item, type));
  // Texts are a flat list for netCDF, whatever their shape.
  const isText = type.kind === "string" || type.kind === "vlen-string";
  const value = isText && shape.length > 0 ? values : nested(values, shape);
  if (shape.length === 0 || !isJsonArray(value)) return value;
  return value.length === 1 ? (value[0] as JsonValue) : value;
}

/** Puts values in C order into lists of lists. */
function nested(values: readonly JsonValue[], shape: readonly number[]): JsonValue {
  if (shape.length === 0) return values[0] as JsonValue;
  let lists = values;
  for (let axis = shape.length - 1; axis > 0; axis--) {
    const length = shape[axis] as number;
    const count = shape.slice(0, axis).reduce((product, extent) => product * extent, 1);
    // Without items there is no end to the lists that an extent may promise.
    if (lists.length === 0) return [];
    const from = lists;
    lists = Array.from({ length: count }, (_, index) => from.slice(index * length, (index + 1) * length));
  }
  return lists;
}

function mapItem(item: Hdf5Item, type: Hdf5Type): JsonValue {
  switch (type.kind) {
    case "float":
      return floatOf(item);
    case "enum":
      return isTruth(type) ? Number(item) !== 0 : mapItem(item, type.base);
    case "string":
    case "vlen-string":
      // netCDF's texts end nowhere else, and Python's reader of them takes null characters out.
      return typeof item === "string" ? item.replaceAll("\0", "") : null;
    case "array":
      return nested(
        listOf(item).map((one) => mapItem(one, type.base)),
        type.shape,
      );
    case "vlen":
      return listOf(item).map((one) => mapItem(one, type.base));
    case "complex":
      return listOf(item).map(floatOf);
    case "compound":
      // As Python's `tolist` gives the fields of a compound.
      return type.fields.map(({ name, type: field }) => {
        const value = typeof item === "object" && "fields" in item ? item.fields.get(name) : undefined;
        return value === undefined ? null : mapItem(value, field);
      });
    default:
      return integerOf(item);
  }
}

function floatOf(item: Hdf5Item): JsonValue {
  if (typeof item !== "number") return null;
  return Number.isFinite(item) ? pythonFloat(item) : item;
}

function integerOf(item: Hdf5Item): JsonValue {
  if (typeof item === "number") return item;
  if (typeof item !== "bigint") return null;
  return Number.isSafeInteger(Number(item)) ? Number(item) : item;
}

function listOf(item: Hdf5Item): readonly Hdf5Item[] {
  return Array.isArray(item) ? item : [];
}

/** Names a type that JSON has no form for; undefined if it has one. */
function typeProblem(type: Hdf5Type): string | undefined {
  switch (type.kind) {
    case "object-reference":
      return "references mean nothing outside of the file";
    case "opaque":
      return "JSON has no form for opaque bytes";
    case "other":
      return `${type.description} are not read`;
    case "array":
    case "vlen":
      return typeProblem(type.base);
    case "compound":
      return type.fields.map((field) => typeProblem(field.type)).find((problem) => problem !== undefined);
    default:
      return undefined;
  }
}

function isTruth({ size, members }: Extract<Hdf5Type, { kind: "enum" }>): boolean {
  const names = members.map(({ name, value }) => `${name}=${value}`).sort();
  return size === 1 && names.join() === "FALSE=0,TRUE=1";
}
