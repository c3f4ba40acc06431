import { isLosslessNumber } from "lossless-json";
import type { JsonValue } from "../../json/json-value.js";

/**
 * Converts every number in a value to a plain one. Structured clone strips lossless numbers of their class, so they must
 * not reach a worker.
 */
export function plainValue(value: JsonValue): JsonValue {
  if (typeof value === "bigint") return Number(value);
  if (typeof value !== "object" || value === null) return value;
  if (isLosslessNumber(value)) return Number(value.value);
  if (Array.isArray(value)) return value.map(plainValue);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plainValue(item)]));
}
