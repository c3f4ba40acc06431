import { isLosslessNumber } from "lossless-json";
import type { JsonValue } from "../model/json-value.js";

/**
 * A value with every number a plain one: structured clone strips lossless numbers of their class, so they must not reach a
 * worker.
 */
export function plainValue(value: JsonValue): JsonValue {
  if (typeof value === "bigint") return Number(value);
  if (typeof value !== "object" || value === null) return value;
  if (isLosslessNumber(value)) return Number(value.value);
  if (Array.isArray(value)) return value.map(plainValue);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plainValue(item)]));
}
