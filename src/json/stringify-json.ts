import { isLosslessNumber, LosslessNumber } from "lossless-json";
import type { JsonObject, JsonValue } from "./json-value.js";

/**
 * Writes strict JSON (RFC 8259) with every digit. `NaN` and the infinities become the strings that zarr-python uses in a
 * `fill_value`. The text is ASCII, since zarr-python 2 decodes metadata as that.
 * @param indent Spaces per level; 0, the default, writes one line without spaces.
 * @throws TypeError if something in it is no JSON value.
 */
export function stringifyJson(value: JsonValue, indent = 0): string {
  return write(value, indent === 0 ? "" : " ".repeat(indent), indent === 0 ? "" : "\n");
}

/** Writes a value as JSON for a message, at most 120 characters; `undefined` reads "nothing". */
export function describeJson(value: JsonValue | undefined): string {
  if (value === undefined) return "nothing";
  const text = stringifyJson(value);
  return text.length <= 120 ? text : `${text.slice(0, 117)}...`;
}

/** Levels whose entries come in pieces of their own: the attributes of an array in a `.zmetadata`, and their entries. */
const PIECES_DEPTH = 5;
/** Length of a piece, in characters: short entries are joined up to about this. */
const PIECE_CHARS = 4 * 1024;
/** Longest list that is written in one piece. */
const SHORT_LIST = 16;

/**
 * Writes the text of {@link stringifyJson} without indent in pieces, for large documents. Only deeply nested values and
 * single strings are ever one long piece.
 * @throws TypeError if something in it is no JSON value.
 */
export function* stringifyJsonPieces(value: JsonValue): Generator<string, void, undefined> {
  yield* pieces(value, PIECES_DEPTH);
}

function* pieces(value: JsonValue, depth: number): Generator<string, void, undefined> {
  if (depth === 0 || isShort(value)) {
    yield write(value, "", "");
    return;
  }
  const isList = Array.isArray(value);
  const object = value as JsonObject;
  const keys = isList ? undefined : Object.keys(object);
  const count = keys?.length ?? (value as readonly JsonValue[]).length;
  let text = isList ? "[" : "{";
  for (let i = 0; i < count; i++) {
    const key = keys?.[i];
    const entry = (key === undefined ? (value as readonly JsonValue[])[i] : object[key]) as JsonValue;
    text += (i === 0 ? "" : ",") + (key === undefined ? "" : `${writeString(key)}:`);
    if (isShort(entry)) text += write(entry, "", "");
    else {
      for (const piece of pieces(entry, depth - 1)) {
        text += piece;
        if (text.length < PIECE_CHARS) continue;
        yield text;
        text = "";
      }
    }
    if (text.length < PIECE_CHARS) continue;
    yield text;
    text = "";
  }
  yield text + (isList ? "]" : "}");
}

/** Whether writing a value takes next to no time. False for what is no JSON value. */
function isShort(value: JsonValue): boolean {
  if (typeof value !== "object" || value === null || isLosslessNumber(value)) return true;
  if (!Array.isArray(value)) return false;
  return value.length <= SHORT_LIST && value.every((item) => typeof item !== "object" || item === null);
}

function write(value: JsonValue, step: string, newline: string): string {
  switch (typeof value) {
    case "string":
      return writeString(value);
    case "number":
      if (Number.isFinite(value)) return Object.is(value, -0) ? "-0.0" : String(value);
      return Number.isNaN(value) ? '"NaN"' : value > 0 ? '"Infinity"' : '"-Infinity"';
    case "bigint":
    case "boolean":
      return String(value);
    case "object":
      if (value === null) return "null";
      if (isLosslessNumber(value)) return value.value;
      if (Array.isArray(value)) return writeArray(value, step, newline);
      return writeObject(value as JsonObject, step, newline);
    default:
      throw new TypeError(`expected a JSON value, received ${typeof value}`);
  }
}

function writeString(value: string): string {
  const text = JSON.stringify(value);
  return NOT_ASCII.test(text) ? text.replace(EVERY_NOT_ASCII, escapeUnit) : text;
}

const NOT_ASCII = /[\u007f-\uffff]/;
const EVERY_NOT_ASCII = /[\u007f-\uffff]/g;

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

function writeArray(array: readonly JsonValue[], step: string, newline: string): string {
  if (array.length === 0) return "[]";
  const inner = newline + step;
  let text = "[";
  for (let i = 0; i < array.length; i++) {
    text += (i === 0 ? inner : `,${inner}`) + write(array[i] as JsonValue, step, inner);
  }
  return `${text}${newline}]`;
}

function writeObject(object: JsonObject, step: string, newline: string): string {
  const inner = newline + step;
  const colon = step === "" ? ":" : ": ";
  let text = "";
  for (const key of Object.keys(object)) {
    const entry = writeString(key) + colon + write(object[key] as JsonValue, step, inner);
    text += (text === "" ? inner : `,${inner}`) + entry;
  }
  return text === "" ? "{}" : `{${text}${newline}}`;
}

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
  const size = Math.abs(value);
  if (size >= 1e-4 && size < 1e16) {
    // In this range JavaScript writes no exponent.
    const plain = String(value);
    return Number.isInteger(value) ? `${plain}.0` : plain;
  }
  const [mantissa, exponentText] = value.toExponential().split("e") as [string, string];
  const exponent = Number(exponentText);
  const digits = String(Math.abs(exponent)).padStart(2, "0");
  return `${mantissa}e${exponent < 0 ? "-" : "+"}${digits}`;
}

/** Returns the number with the fewest digits that reads as the same float of a size in bytes. */
export function shortestFloat(value: number, itemSize: number): number {
  if (itemSize >= 8 || value === 0 || !Number.isFinite(value)) return value;
  const size = Math.abs(value);
  if (itemSize === 4 && size >= 1e-4 && size < 1e6 && Math.fround(size) === size) {
    // The product of 24 bits and of a power up to 1e12 is exact, so that it rounds as `toPrecision` does.
    let scale = 1;
    while (size * scale < 1e5) scale *= 10;
    for (; Math.fround(Math.round(size * scale) / scale) !== size; scale *= 10);
    return (Math.sign(value) * Math.round(size * scale)) / scale;
  }
  // Half of the distance between neighbours.
  const blur = itemSize === 2 ? 2 ** (Math.max(-14, Math.floor(Math.log2(size))) - 11) : 0;
  // A number of at most 6 digits is what the float that is nearest to it reads as with 6 digits, unless the float is subnormal.
  const first = itemSize === 4 && size > 1.2e-38 ? 6 : 1;
  for (let digits = first; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.abs(short - value) < blur || (itemSize === 4 && Math.fround(short) === value)) return short;
  }
  return Number(value.toPrecision(9));
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
