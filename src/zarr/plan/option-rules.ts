import type { JsonValue } from "../../json/json-value.js";
import { parseNumericType } from "./numeric-type.js";

/** Rule for one option of a codec. */
export interface OptionRule {
  /** Default; undefined if the option is required. */
  readonly fallback?: JsonValue;
  /** What is expected, in words of a message. */
  readonly expected: string;
  readonly accepts: (value: JsonValue) => boolean;
}

/** An integer within bounds, both included. */
export function integer(fallback: number, min: number, max: number): OptionRule {
  return {
    fallback,
    expected: `an integer from ${min} to ${max}`,
    accepts: (value) => typeof value === "number" && Number.isInteger(value) && value >= min && value <= max,
  };
}

/** One of several texts. */
export function oneOf(fallback: string, values: readonly string[]): OptionRule {
  return {
    fallback,
    expected: `one of ${values.join(", ")}`,
    accepts: (value) => typeof value === "string" && values.includes(value),
  };
}

/** A type string of integers or floats; required. */
export function numericType(): OptionRule {
  return {
    expected: `a numeric type such as "<i4"`,
    accepts: (value) => parseNumericType(value) !== undefined,
  };
}
