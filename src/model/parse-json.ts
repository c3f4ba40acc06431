import { LosslessNumber } from "lossless-json";
import { ZpublishError } from "../errors.js";
import type { JsonValue } from "./json-value.js";

/** Metadata nests a handful of levels; the bound keeps a hostile document from exhausting the stack. */
const maxDepth = 500;

// biome-ignore lint/suspicious/noControlCharactersInRegex: RFC 8259, section 7: these must be escaped in a string.
const stringEnd = /["\\\u0000-\u001f]/g;
const numberToken = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const bareToken = /-?Infinity|NaN|true|false|null/y;
const whitespace = /[ \t\n\r]*/y;
const hexDigits = /^[0-9a-fA-F]{4}$/;

const bareValues: Readonly<Record<string, JsonValue>> = {
  true: true,
  false: false,
  null: null,
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  "-Infinity": Number.NEGATIVE_INFINITY,
};

const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};

/**
 * Parses JSON without losing anything (see {@link JsonValue}), and as Python does where it is laxer than RFC 8259:
 * bare `NaN` and infinities are numbers, and the last of several equal keys wins.
 *
 * A parser of its own, because those of `lossless-json` and of the engine refuse bare `NaN`, and the former builds
 * strings character by character: many times a document's size in memory.
 * @throws ZpublishError `invalid-metadata`, with line and column.
 */
export function parseJson(text: string): JsonValue {
  const parser = new JsonParser(text);
  if (text.charCodeAt(0) === 0xfeff) parser.fail("JSON without a byte order mark");
  parser.skipWhitespace();
  const value = parser.parseValue(0);
  parser.skipWhitespace();
  if (parser.position < text.length) parser.fail("the end of the document");
  return value;
}

class JsonParser {
  position = 0;

  constructor(private readonly text: string) {}

  skipWhitespace(): void {
    // Most tokens have nothing between them: a comparison is cheaper than the expression.
    if (this.text.charCodeAt(this.position) > 0x20) return;
    whitespace.lastIndex = this.position;
    whitespace.test(this.text);
    this.position = whitespace.lastIndex;
  }

  parseValue(depth: number): JsonValue {
    switch (this.text[this.position]) {
      case '"':
        return this.parseString();
      case "{":
        return this.parseObject(depth + 1);
      case "[":
        return this.parseArray(depth + 1);
      default:
        return this.parseScalar();
    }
  }

  fail(expected: string): never {
    const before = this.text.slice(0, this.position);
    const line = before.split("\n").length;
    const column = this.position - before.lastIndexOf("\n");
    const received =
      this.position < this.text.length ? JSON.stringify(this.text[this.position]) : "the end of the document";
    throw new ZpublishError(
      "invalid-metadata",
      `invalid JSON: expected ${expected} at line ${line}, column ${column}, received ${received}`,
      { details: { line, column } },
    );
  }

  private parseObject(depth: number): JsonValue {
    if (depth > maxDepth) this.fail(`at most ${maxDepth} nested levels`);
    const object: Record<string, JsonValue> = {};
    this.position++;
    this.skipWhitespace();
    if (this.take("}")) return object;
    for (;;) {
      if (this.text[this.position] !== '"') this.fail("a key in double quotes");
      const key = this.parseString();
      this.skipWhitespace();
      if (!this.take(":")) this.fail('":"');
      this.skipWhitespace();
      const value = this.parseValue(depth);
      if (key === "__proto__") {
        // Assigning would set the prototype instead of a key.
        Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
      } else {
        object[key] = value;
      }
      this.skipWhitespace();
      if (this.take("}")) return object;
      if (!this.take(",")) this.fail('"," or "}"');
      this.skipWhitespace();
    }
  }

  private parseArray(depth: number): JsonValue {
    if (depth > maxDepth) this.fail(`at most ${maxDepth} nested levels`);
    const array: JsonValue[] = [];
    this.position++;
    this.skipWhitespace();
    if (this.take("]")) return array;
    for (;;) {
      array.push(this.parseValue(depth));
      this.skipWhitespace();
      if (this.take("]")) return array;
      if (!this.take(",")) this.fail('"," or "]"');
      this.skipWhitespace();
    }
  }

  private parseString(): string {
    const { text } = this;
    this.position++;
    let result = "";
    for (;;) {
      stringEnd.lastIndex = this.position;
      const end = stringEnd.exec(text)?.index ?? text.length;
      const piece = text.slice(this.position, end);
      this.position = end;
      if (text[end] === '"') {
        this.position++;
        return result + piece;
      }
      if (text[end] !== "\\") this.fail(end < text.length ? "no control character in a string" : "'\"'");
      result += piece + this.parseEscape();
    }
  }

  private parseEscape(): string {
    this.position++;
    const kind = this.text[this.position] ?? "";
    const plain = escapes[kind];
    if (plain !== undefined) {
      this.position++;
      return plain;
    }
    if (kind !== "u") this.fail("an escape sequence");
    const digits = this.text.slice(this.position + 1, this.position + 5);
    if (!hexDigits.test(digits)) this.fail("four hexadecimal digits after \\u");
    this.position += 5;
    return String.fromCharCode(Number.parseInt(digits, 16));
  }

  private parseScalar(): JsonValue {
    numberToken.lastIndex = this.position;
    const number = numberToken.exec(this.text);
    if (number !== null) {
      this.position = numberToken.lastIndex;
      return parseNumber(number[0], number[1] === undefined && number[2] === undefined);
    }
    bareToken.lastIndex = this.position;
    const bare = bareToken.exec(this.text)?.[0];
    if (bare === undefined) this.fail("a JSON value");
    this.position += bare.length;
    return bareValues[bare] as JsonValue;
  }

  private take(character: string): boolean {
    if (this.text[this.position] !== character) return false;
    this.position++;
    return true;
  }
}

function parseNumber(token: string, isInteger: boolean): JsonValue {
  const value = Number(token);
  if (isInteger && !Number.isSafeInteger(value)) return BigInt(token);
  return String(value) === token ? value : new LosslessNumber(token);
}
