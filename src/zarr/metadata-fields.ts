import { ZpublishError } from "../errors.js";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, toBigInt } from "../json/json-value.js";
import { describeJson } from "../json/stringify-json.js";

/** Makes an `invalid-metadata` error that says what was expected of a document and what was received. */
export function invalidField(
  document: string,
  expected: string,
  received: JsonValue | undefined,
): ZpublishError {
  return new ZpublishError(
    "invalid-metadata",
    `${document}: expected ${expected}, received ${describeJson(received)}`,
  );
}

/** Narrows a value to a JSON object. @throws ZpublishError `invalid-metadata` if it is none. */
export function parseObject(value: JsonValue | undefined, document: string, what: string): JsonObject {
  if (!isJsonObject(value)) throw invalidField(document, `${what} to be an object`, value);
  return value;
}

/** Narrows a value to an array. @throws ZpublishError `invalid-metadata` if it is none. */
export function parseArray(
  value: JsonValue | undefined,
  document: string,
  what: string,
): readonly JsonValue[] {
  if (!isJsonArray(value)) throw invalidField(document, `${what} to be a list`, value);
  return value;
}

/**
 * Parses a list of integers from `least` to 2^53 - 1, with exactly `rank` entries if a rank is given.
 * @throws ZpublishError `invalid-metadata`
 */
export function parseIntegers(
  value: JsonValue | undefined,
  document: string,
  what: string,
  least: 0 | 1,
  rank?: number,
): readonly number[] {
  const kind = least === 0 ? "non-negative" : "positive";
  const integers = isJsonArray(value) ? value.map(toBigInt) : undefined;
  const expected = `${what} to be a list of ${rank === undefined ? "" : `${rank} `}${kind} integers`;
  if (integers === undefined || (rank !== undefined && integers.length !== rank)) {
    throw invalidField(document, expected, value);
  }
  return Object.freeze(
    integers.map((integer) => {
      if (integer === undefined || integer < least || integer > Number.MAX_SAFE_INTEGER) {
        throw invalidField(document, expected, value);
      }
      return Number(integer);
    }),
  );
}

/** Runs `parse`, and puts the document's name before the message of an error that it throws. */
export function withinDocument<T>(document: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof ZpublishError)) throw error;
    throw new ZpublishError(error.code, `${document}: ${error.message}`, {
      details: error.details,
      cause: error,
    });
  }
}

/** The attribute in which xarray keeps dimension names in a v2 store. */
export const dimensionsAttribute = "_ARRAY_DIMENSIONS";

/**
 * Parses a document's dimension names: one text per axis, none twice. `null` entries (v3) and empty texts name nothing.
 * @param warnings Gets a line if there are names but they are not valid.
 * @returns null if names are missing or not valid.
 */
export function parseDimensionNames(
  names: JsonValue | undefined,
  rank: number,
  key: string,
  warnings: string[],
): readonly (string | null)[] | null {
  if (names === undefined) return null;
  const given = isJsonArray(names) ? names.filter((name) => name !== null && name !== "") : [];
  const isValid =
    isJsonArray(names) &&
    names.length === rank &&
    given.every((name) => typeof name === "string") &&
    new Set(given).size === given.length;
  if (!isValid) {
    warnings.push(`expected ${key} to name ${rank} different dimensions, received ${describeJson(names)}`);
    return null;
  }
  return Object.freeze(names.map((name) => (name === "" ? null : (name as string | null))));
}

/** Returns attributes without the one that holds dimension names. */
export function withoutDimensions(attrs: JsonObject): JsonObject {
  return withoutKey(attrs, dimensionsAttribute);
}

/** Returns an object without one of its keys; the object itself if it has no such key. */
export function withoutKey(object: JsonObject, key: string): JsonObject {
  if (!Object.hasOwn(object, key)) return object;
  const { [key]: _left, ...rest } = object;
  return rest;
}
