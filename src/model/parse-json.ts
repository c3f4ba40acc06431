import type { Steps } from "../sliced-work.js";
import { JsonParser, type TakeEntry } from "./json-parser.js";
import type { JsonValue } from "./json-value.js";

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
  parser.begin();
  const value = parser.parseValue(0);
  parser.end();
  return value;
}

/**
 * Parses a document that may be large, as {@link parseJson} does, and can be interrupted between the entries of its outer
 * levels.
 */
export function* parseJsonSteps(text: string): Steps<JsonValue> {
  const parser = new JsonParser(text);
  parser.begin();
  const value = yield* parser.parseValueSteps(0);
  parser.end();
  return value;
}

/**
 * Parses an object as {@link parseJsonSteps} does, but only checks the object that is its entry `left`, and tells where
 * the values of that are: where one has a hundred thousand entries, and few are asked for, most of the time and all of
 * the memory is saved.
 * @returns With an empty object in place of the one that is not made a value.
 */
export function* parseJsonAround(text: string, left: string, take: TakeEntry = () => {}): Steps<JsonValue> {
  const parser = new JsonParser(text);
  parser.begin();
  const value = yield* parser.parseAroundSteps(left, take);
  parser.end();
  return value;
}
