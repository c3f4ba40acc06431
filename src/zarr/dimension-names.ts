import { isJsonArray, type JsonObject, type JsonValue } from "../model/json-value.js";
import { describeValue } from "./metadata-fields.js";

/** The attribute in which xarray keeps dimension names in a v2 store. */
export const dimensionsAttribute = "_ARRAY_DIMENSIONS";

/**
 * Dimension names as a document gives them: one text per axis, none twice. `null` entries (v3) and empty texts name
 * nothing.
 * @returns null where they are missing or no names; then with a line for `warnings` unless they are missing.
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

/** The attributes without the one that holds dimension names. */
export function withoutDimensions(attrs: JsonObject): JsonObject {
  return withoutKey(attrs, dimensionsAttribute);
}

/** The object without one of its keys; itself where it has none such. */
export function withoutKey(object: JsonObject, key: string): JsonObject {
  if (!Object.hasOwn(object, key)) return object;
  const { [key]: _left, ...rest } = object;
  return rest;
}
