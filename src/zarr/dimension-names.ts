import { isJsonArray, type JsonObject, type JsonValue } from "../json/json-value.js";
import { describeValue } from "./metadata-fields.js";

/** The attribute in which xarray keeps dimension names in a v2 store. */
export const dimensionsAttribute = "_ARRAY_DIMENSIONS";

/**
 * Parses a document's dimension names: one text per axis, none twice. `null` entries (v3) and empty texts name nothing.
 * @param warnings Gets a line if there are names but they are not valid.
 * @returns null if names are missing or not valid.
 */
export function parseDimensionNames(
  names: JsonValue | undefined,
  rank: number,
  key: string,
  warnings: string[],
): readonly (string | null)[] | null {
  if (names === undefined) return null;
  const given = isJsonArray(names) ? names.filter((name) => name !== null && name !== "") : [];
  const isValid =
    isJsonArray(names) &&
    names.length === rank &&
    given.every((name) => typeof name === "string") &&
    new Set(given).size === given.length;
  if (!isValid) {
    warnings.push(`expected ${key} to name ${rank} different dimensions, received ${describeValue(names)}`);
    return null;
  }
  return Object.freeze(names.map((name) => (name === "" ? null : (name as string | null))));
}

/** Returns attributes without the one that holds dimension names. */
export function withoutDimensions(attrs: JsonObject): JsonObject {
  return withoutKey(attrs, dimensionsAttribute);
}

/** Returns an object without one of its keys; the object itself if it has no such key. */
export function withoutKey(object: JsonObject, key: string): JsonObject {
  if (!Object.hasOwn(object, key)) return object;
  const { [key]: _left, ...rest } = object;
  return rest;
}
