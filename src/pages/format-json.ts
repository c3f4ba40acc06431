import { isLosslessNumber } from "lossless-json";
import { isJsonArray, type JsonValue } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import type { CodecSpec } from "../zarr/codec-step.js";

/**
 * Formats an attribute value for people: strings unquoted, numbers with all their digits, lists of numbers with commas,
 * other values as JSON.
 */
export function formatAttribute(value: JsonValue): string {
  const scalar = formatScalar(value);
  if (scalar !== undefined) return scalar;
  if (isJsonArray(value) && value.length > 0) {
    const items = value.map((item) => (typeof item === "string" ? undefined : formatScalar(item)));
    if (!items.includes(undefined)) return items.join(", ");
  }
  const compact = stringifyJson(value);
  return compact.length <= 80 ? compact : stringifyJson(value, 2);
}

/** Formats a codec on one line: `blosc (cname lz4, clevel 5, shuffle 1)`. */
export function formatCodec(codec: CodecSpec): string {
  const parameters = Object.entries(codec)
    .filter(([name]) => name !== "id")
    .map(([name, value]) => `${name} ${formatAttribute(value)}`);
  return parameters.length === 0 ? codec.id : `${codec.id} (${parameters.join(", ")})`;
}

/** Formats the fill value of a metadata document: `NaN`, `0`, `none`. */
export function formatFillValue(value: JsonValue): string {
  return value === null ? "none" : (formatScalar(value) ?? stringifyJson(value));
}

function formatScalar(value: JsonValue): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "number") return Object.is(value, -0) ? "-0" : String(value);
  if (isLosslessNumber(value)) return value.value;
  return typeof value === "object" && value !== null ? undefined : String(value);
}
