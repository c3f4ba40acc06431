import { ZpublishError } from "../errors.js";

/** Characters of a wrong parameter that the answer quotes. */
const MAX_SHOWN_INPUT = 100;

/** Names of the parameters of a query. One that ends with a text in braces stands for all names that begin alike: `isel.{dimension}`. */
export interface QueryNames {
  /** Parameters that may come once. */
  readonly once?: readonly string[];
  /** Parameters that may be repeated. */
  readonly repeated?: readonly string[];
}

/**
 * Parses a query into the values of each parameter, in their order; a parameter that did not come has none. `token` is left to those
 * who check it.
 * @param query As in `RouteRequest.query`.
 * @throws ZpublishError `invalid-query` if a parameter is not known, or comes twice and may not.
 */
export function parseQuery(query: string, names: QueryNames): ReadonlyMap<string, readonly string[]> {
  const { once = [], repeated = [] } = names;
  const values = new Map<string, string[]>();
  for (const [name, value] of new URLSearchParams(query)) {
    if (name === "token") continue;
    const mayRepeat = repeated.some((each) => isNamed(each, name));
    if (!mayRepeat && !once.some((each) => isNamed(each, name))) {
      const known = [...once, ...repeated].join(", ");
      throw wrongParameter(
        name,
        "unknown_parameter",
        known === "" ? "no parameter" : `one of ${known}`,
        name,
      );
    }
    const before = values.get(name);
    if (before === undefined) values.set(name, [value]);
    else if (mayRepeat) before.push(value);
    else throw wrongParameter(name, "repeated_parameter", "the parameter once", value);
  }
  return values;
}

function isNamed(known: string, name: string): boolean {
  const brace = known.endsWith("}") ? known.indexOf("{") : -1;
  return brace < 0 ? known === name : name.length > brace && name.startsWith(known.slice(0, brace));
}

/** Reads an integer of a query. @throws ZpublishError `invalid-query` */
export function readInteger(name: string, text: string, least: number, greatest: number): number {
  const value = /^-?\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= greatest) return value;
  const expected =
    least === Number.MIN_SAFE_INTEGER ? "an integer" : `an integer from ${least} to ${greatest}`;
  throw wrongParameter(name, "int_parsing", expected, text);
}

/** Returns an index of an axis, which counts from the end if it is negative. @throws ZpublishError `invalid-query` if there is none */
export function indexWithin(name: string, index: number, length: number): number {
  if (index >= -length && index < length) return index < 0 ? index + length : index;
  throw wrongParameter(name, "index_error", `an index from ${-length} to ${length - 1}`, `${index}`);
}

/**
 * Creates the error of a parameter that does not apply, answered 422 with what was expected and received.
 * @param parameter Its name; in a body, the place of what is wrong: `line 3, lat`.
 * @param type Kind of error, for programs: `int_parsing`.
 */
export function wrongParameter(
  parameter: string,
  type: string,
  expected: string,
  received: string,
  place: "query" | "body" = "query",
): ZpublishError {
  const input = received.length > MAX_SHOWN_INPUT ? `${received.slice(0, MAX_SHOWN_INPUT)}…` : received;
  const message = `Expected ${expected}, received '${input}'`;
  return new ZpublishError(`invalid-${place}`, message, {
    details: { parameter: parameter.slice(0, MAX_SHOWN_INPUT), type, input },
  });
}
