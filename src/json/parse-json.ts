import { LosslessNumber } from "lossless-json";
import { ZpublishError } from "../errors.js";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import { type JsonValue, setEntry } from "./json-value.js";

/** Metadata nests a handful of levels; the bound keeps a hostile document from exhausting the stack. */
const maxDepth = 500;
/** Levels within which parsing can be interrupted: the attributes of an array in a `.zmetadata`, and their entries. */
const interruptibleDepth = 4;

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

/** Receives an entry of an object that is only checked: its key, and the range of its value in the text. */
export type TakeEntry = (key: string, start: number, end: number) => void;

/** One pass over a JSON text. `parse-json.ts` has the functions to call, and says what they accept. */
class JsonParser {
  position = 0;

  constructor(private readonly text: string) {}

  begin(): void {
    if (this.text.charCodeAt(0) === 0xfeff) this.fail("JSON without a byte order mark");
    this.skipWhitespace();
  }

  end(): void {
    this.skipWhitespace();
    if (this.position < this.text.length) this.fail("the end of the document");
  }

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

  /** Parses as {@link parseValue} does, in steps. */
  *parseValueSteps(depth: number): CooperativeTask<JsonValue> {
    const first = this.text[this.position];
    if (depth >= interruptibleDepth || (first !== "{" && first !== "[")) return this.parseValue(depth);
    if (first === "[") {
      const array: JsonValue[] = [];
      if (this.isEmpty("]", depth + 1)) return array;
      do {
        array.push(yield* this.parseValueSteps(depth + 1));
        yield;
      } while (this.hasNext("]"));
      return array;
    }
    const object: Record<string, JsonValue> = {};
    if (this.isEmpty("}", depth + 1)) return object;
    do {
      const key = this.parseKey();
      setEntry(object, key, yield* this.parseValueSteps(depth + 1));
      yield;
    } while (this.hasNext("}"));
    return object;
  }

  *parseAroundSteps(left: string, take: TakeEntry): CooperativeTask<JsonValue> {
    if (this.text[this.position] !== "{") return yield* this.parseValueSteps(0);
    const object: Record<string, JsonValue> = {};
    if (this.isEmpty("}", 1)) return object;
    do {
      const key = this.parseKey();
      const isLeft = key === left && this.text[this.position] === "{";
      if (isLeft) yield* this.skipObjectSteps(take);
      setEntry(object, key, isLeft ? {} : yield* this.parseValueSteps(1));
      yield;
    } while (this.hasNext("}"));
    return object;
  }

  private *skipObjectSteps(take: TakeEntry): CooperativeTask<void> {
    if (this.isEmpty("}", 2)) return;
    do {
      const key = this.parseKey();
      const start = this.position;
      this.skipValue(2);
      take(key, start, this.position);
      yield;
    } while (this.hasNext("}"));
  }

  /** Skips a value, with all checks of parsing it. */
  private skipValue(depth: number): void {
    switch (this.text[this.position]) {
      case '"':
        this.skipString();
        return;
      case "{":
        if (this.isEmpty("}", depth + 1)) return;
        do {
          if (this.text[this.position] !== '"') this.fail("a key in double quotes");
          this.skipString();
          this.passColon();
          this.skipValue(depth + 1);
        } while (this.hasNext("}"));
        return;
      case "[":
        if (this.isEmpty("]", depth + 1)) return;
        do this.skipValue(depth + 1);
        while (this.hasNext("]"));
        return;
      default:
        numberToken.lastIndex = this.position;
        if (numberToken.test(this.text)) this.position = numberToken.lastIndex;
        else this.parseScalar();
    }
  }

  private skipString(): void {
    this.position++;
    for (;;) {
      stringEnd.lastIndex = this.position;
      // Unlike exec, this allocates nothing.
      this.position = stringEnd.test(this.text) ? stringEnd.lastIndex - 1 : this.text.length;
      if (this.take('"')) return;
      if (this.text[this.position] !== "\\") this.failInString();
      this.parseEscape();
    }
  }

  private parseObject(depth: number): JsonValue {
    const object: Record<string, JsonValue> = {};
    if (this.isEmpty("}", depth)) return object;
    do setEntry(object, this.parseKey(), this.parseValue(depth));
    while (this.hasNext("}"));
    return object;
  }

  private parseArray(depth: number): JsonValue {
    const array: JsonValue[] = [];
    if (this.isEmpty("]", depth)) return array;
    do array.push(this.parseValue(depth));
    while (this.hasNext("]"));
    return array;
  }

  /** Enters an object or array; leaves it again if it is empty. */
  private isEmpty(close: "}" | "]", depth: number): boolean {
    if (depth > maxDepth) this.fail(`at most ${maxDepth} nested levels`);
    this.position++;
    this.skipWhitespace();
    return this.take(close);
  }

  /** Reads a key and the colon after it. */
  private parseKey(): string {
    if (this.text[this.position] !== '"') this.fail("a key in double quotes");
    const key = this.parseString();
    this.passColon();
    return key;
  }

  private passColon(): void {
    this.skipWhitespace();
    if (!this.take(":")) this.fail('":"');
    this.skipWhitespace();
  }

  /** Moves to the next entry; false at the end. */
  private hasNext(close: "}" | "]"): boolean {
    this.skipWhitespace();
    if (this.take(close)) return false;
    if (!this.take(",")) this.fail(`"," or "${close}"`);
    this.skipWhitespace();
    return true;
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
      if (text[end] !== "\\") this.failInString();
      result += piece + this.parseEscape();
    }
  }

  private failInString(): never {
    this.fail(this.position < this.text.length ? "no control character in a string" : "'\"'");
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

/**
 * Parses JSON without losing a digit (see {@link JsonValue}). Like Python's parser, it is laxer than RFC 8259: bare `NaN`
 * and infinities are numbers, and the last of several equal keys wins.
 *
 * The parsers of `lossless-json` and of the engine refuse bare `NaN`. The former also builds strings character by
 * character, which takes many times a document's size in memory.
 * @throws ZpublishError `invalid-metadata`, with line and column.
 */
export function parseJson(text: string): JsonValue {
  const parser = new JsonParser(text);
  parser.begin();
  const value = parser.parseValue(0);
  parser.end();
  return value;
}

/**
 * Parses a large document as {@link parseJson} does, in steps, which end between any two entries of its outer levels. Of the entry
 * `left`, if it is an object, only the syntax is checked, and the ranges of its values are reported. If few of a hundred thousand
 * values are needed, this saves most time and all memory.
 * @returns The value, with an empty object as its entry `left`.
 */
export function* parseJsonAround(
  text: string,
  left: string,
  take: TakeEntry = () => {},
): CooperativeTask<JsonValue> {
  const parser = new JsonParser(text);
  parser.begin();
  const value = yield* parser.parseAroundSteps(left, take);
  parser.end();
  return value;
}
