import { LosslessNumber } from "lossless-json";
import type { JsonValue } from "./json-value.js";

/**
 * Writes a number as Python's `json` writes the float: `0.0`, `1e-05`, `1e+16`. What JSON has no literal for becomes a
 * string such as `"NaN"`, as in zarr-python's `fill_value`.
 */
export function pythonFloat(value: number): JsonValue {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "Infinity" : "-Infinity";
  const text = pythonFloatText(value);
  return String(value) === text ? value : new LosslessNumber(text);
}

/** Python's `repr(float)` of a finite number: the shortest digits, an exponent from 1e16 up and below 1e-4. */
export function pythonFloatText(value: number): string {
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const [mantissa, exponentText] = value.toExponential().split("e") as [string, string];
  const exponent = Number(exponentText);
  if (exponent < -4 || exponent >= 16) {
    const digits = String(Math.abs(exponent)).padStart(2, "0");
    return `${mantissa}e${exponent < 0 ? "-" : "+"}${digits}`;
  }
  // In this range JavaScript writes no exponent, except for 1e-7 and below, which are not in it.
  const plain = String(value);
  return plain.includes(".") ? plain : `${plain}.0`;
}

/** Python's `repr(str)`. */
export function pythonString(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  let result = quote;
  for (const character of text) result += pythonCharacter(character, quote);
  return result + quote;
}

const namedEscapes: Readonly<Record<string, string>> = {
  "\\": "\\\\",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
};

function pythonCharacter(character: string, quote: string): string {
  if (character === quote) return `\\${quote}`;
  const named = namedEscapes[character];
  if (named !== undefined) return named;
  // `str.isprintable` is false for control, format, surrogate, private, unassigned, and separators but the space.
  if (character === " " || !/^[\p{C}\p{Z}]$/u.test(character)) return character;
  const code = (character.codePointAt(0) as number).toString(16);
  if (code.length <= 2) return `\\x${code.padStart(2, "0")}`;
  return code.length <= 4 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
}
