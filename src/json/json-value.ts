import { isLosslessNumber, type LosslessNumber } from "lossless-json";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";

/**
 * A JSON value with every digit that was read.
 *
 * A number is a `number` if JavaScript writes it as it was read (`1`, `0.5`), a `bigint` if it is an integer beyond
 * 2^53, else a `LosslessNumber`, the literal text (`1.0`, `1e-05`, `-0`). A Python client distinguishes `1.0` from `1`.
 *
 * `NaN` and the infinities, which zarr-python writes bare, are `number`s here. They are written as the strings `"NaN"`,
 * `"Infinity"` and `"-Infinity"`, since RFC 8259 has no literal for them.
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

/** A JSON object. Its prototype may hold anything: ask `Object.hasOwn` before a key that a document names. */
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

/** Converts a JSON number of any form to the nearest `number`; undefined if the value is no number. */
export function toNumber(value: JsonValue | undefined): number | undefined {
  if (typeof value === "number") return value;
  if (typeof value === "bigint") return Number(value);
  return isLosslessNumber(value) ? Number(value.value) : undefined;
}

/** Returns the numbers of a list, or a number alone as a list. What is no number is left out. */
export function toNumbers(value: JsonValue | undefined): number[] {
  const values = isJsonArray(value) ? value : [value];
  return values.map(toNumber).filter((each) => each !== undefined);
}

/**
 * Converts a JSON number of any form (`1`, `1.0`, `1e3`, 64 bits wide) to the integer that it is; undefined if the value
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

/** Makes an object of entries, in steps. The key `__proto__` is an ordinary one. */
export function* objectSteps(entries: Iterable<readonly [string, JsonValue]>): CooperativeTask<JsonObject> {
  const object: Record<string, JsonValue> = {};
  for (const [key, value] of entries) {
    yield;
    setEntry(object, key, value);
  }
  return object;
}

/** Sets an entry of an object that is being made; the key may be `__proto__`. */
export function setEntry(object: Record<string, JsonValue>, key: string, value: JsonValue): void {
  if (key === "__proto__") {
    // Assigning would set the prototype instead of a key.
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    object[key] = value;
  }
}
