import { isLosslessNumber } from "lossless-json";
import type { JsonObject, JsonValue } from "../../json/json-value.js";

/** A reason why a value cannot be attributes. */
export interface AttrsProblem {
  /** "expected …" */
  readonly message: string;
  readonly path: readonly (string | number)[];
}

/**
 * Copies attributes that a program gave, since it may change them later. A value that JSON would leave out or write as an
 * empty object (a date, a typed array) is a problem.
 */
export function copyAttrs(value: unknown): {
  readonly attrs: JsonObject;
  readonly problems: readonly AttrsProblem[];
} {
  const problems: AttrsProblem[] = [];
  if (!isPlainObject(value)) problems.push({ message: "expected an object of attributes", path: [] });
  const attrs = problems.length === 0 ? (copy(value, [], [], problems) as JsonObject) : {};
  return { attrs, problems };
}

function copy(
  value: unknown,
  path: readonly (string | number)[],
  within: readonly unknown[],
  problems: AttrsProblem[],
): JsonValue {
  if (value === null || ["string", "number", "bigint", "boolean"].includes(typeof value)) {
    return value as JsonValue;
  }
  if (isLosslessNumber(value)) return value;
  if (within.includes(value)) {
    problems.push({ message: "expected a JSON value without cycles", path });
  } else if (Array.isArray(value)) {
    const outer = [...within, value];
    return Array.from(value, (item, index) => copy(item, [...path, index], outer, problems));
  } else if (isPlainObject(value)) {
    const outer = [...within, value];
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, copy(item, [...path, key], outer, problems)]),
    );
  } else problems.push({ message: "expected a JSON value", path });
  return null;
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Plain objects of another realm, such as a test runner's, have another Object.prototype, which has no prototype either.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
