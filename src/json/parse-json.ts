import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import { JsonParser, type TakeEntry } from "./json-parser.js";
import type { JsonValue } from "./json-value.js";

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
 * Parses a large document as {@link parseJson} does, in steps: one ends between any two entries of its outer levels.
 */
export function* parseJsonSteps(text: string): CooperativeTask<JsonValue> {
  const parser = new JsonParser(text);
  parser.begin();
  const value = yield* parser.parseValueSteps(0);
  parser.end();
  return value;
}

/**
 * Parses an object as {@link parseJsonSteps} does, but only checks its entry `left`, also an object, and reports the
 * ranges of that entry's values. If few of a hundred thousand values are needed, this saves most time and all memory.
 * @returns The object, with an empty object as its entry `left`.
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
