import { ZpublishError } from "../errors.js";

/** Characters of a wrong parameter that the answer quotes. */
const MAX_SHOWN_INPUT = 100;

/**
 * Reads the parameters of a query. `token` is left to those who check it.
 * @param isKnown Tells whether a parameter of that name exists.
 * @param known Names of parameters, for messages.
 * @throws ZpublishError `invalid-query` if one is not known, or comes twice.
 */
export function readQuery(
  query: string,
  isKnown: (name: string) => boolean,
  known: readonly string[],
): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(query)) {
    if (name === "token") continue;
    if (!isKnown(name)) throw wrongParameter(name, "unknown_parameter", `one of ${known.join(", ")}`, name);
    if (values.has(name)) throw wrongParameter(name, "repeated_parameter", "the parameter once", value);
    values.set(name, value);
  }
  return values;
}

/** Reads an integer of a query. @throws ZpublishError `invalid-query` */
export function readInteger(name: string, text: string, least: number, greatest: number): number {
  const value = /^-?\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= greatest) return value;
  const expected =
    least === Number.MIN_SAFE_INTEGER ? "an integer" : `an integer from ${least} to ${greatest}`;
  throw wrongParameter(name, "int_parsing", expected, text);
}

/** Creates the error of a parameter that does not apply. */
export function wrongParameter(
  parameter: string,
  type: string,
  expected: string,
  received: string,
): ZpublishError {
  const input = received.length > MAX_SHOWN_INPUT ? `${received.slice(0, MAX_SHOWN_INPUT)}…` : received;
  const message = `Expected ${expected}, received '${input}'`;
  return new ZpublishError("invalid-query", message, {
    details: { parameter: parameter.slice(0, MAX_SHOWN_INPUT), type, input },
  });
}
