import { isLosslessNumber, type LosslessNumber } from "lossless-json";
import type { Steps } from "../sliced-work.js";

/**
 * A JSON value that lost nothing on the way in.
 *
 * Numbers are `number` where JavaScript writes them back as they were read (`1`, `0.5`), `bigint` for integers
 * beyond 2^53, `LosslessNumber` (the literal text) for the rest (`1.0`, `1e-05`, `-0`): a Python client tells
 * `1.0` from `1`. `NaN` and the infinities, which zarr-python writes bare, are `number`s here and become
 * the strings `"NaN"`, `"Infinity"`, `"-Infinity"` on the way out (RFC 8259 has no literal for them).
 */
export type JsonValue =
  | null
  | boolean
  | string
  | number
  | bigint
  | LosslessNumber
  | readonly JsonValue[]
  | JsonObject;

export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** Whether a value is an object with keys: no array, no null, no number kept as text. */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isLosslessNumber(value);
}

/** Whether a value is an array. (`Array.isArray` does not narrow readonly arrays.) */
export function isJsonArray(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

/** A JSON number of any form as the nearest `number`; undefined for what is no number. */
export function toNumber(value: JsonValue | undefined): number | undefined {
  if (typeof value === "number") return value;
  if (typeof value === "bigint") return Number(value);
  return isLosslessNumber(value) ? Number(value.value) : undefined;
}

/**
 * A JSON number as the integer it exactly is, whatever its form (`1`, `1.0`, `1e3`, 64 bits wide); undefined for what
 * is no number or no integer.
 */
export function toBigInt(value: JsonValue | undefined): bigint | undefined {
  if (typeof value === "bigint") return value;
  if (typeof value === "number") return Number.isInteger(value) ? BigInt(value) : undefined;
  if (!isLosslessNumber(value)) return undefined;
  if (/^-?\d+$/.test(value.value)) return BigInt(value.value);
  const nearest = Number(value.value);
  return Number.isInteger(nearest) ? BigInt(nearest) : undefined;
}

/** The object of entries; one called `__proto__` is one like any other. */
export function* objectSteps(entries: Iterable<readonly [string, JsonValue]>): Steps<JsonObject> {
  const object: Record<string, JsonValue> = {};
  for (const [key, value] of entries) {
    yield;
    setEntry(object, key, value);
  }
  return object;
}

/** Sets an entry of an object that is being made, whatever its key. */
export function setEntry(object: Record<string, JsonValue>, key: string, value: JsonValue): void {
  if (key === "__proto__") {
    // Assigning would set the prototype instead of a key.
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    object[key] = value;
  }
}
