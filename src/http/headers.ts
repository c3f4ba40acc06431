import { STATUS_CODES } from "node:http";
import { ZpublishError } from "../errors.js";

/** Names and values of headers. A frozen list is sent often: a listener may keep its encoded form. */
export type HeaderLines = readonly (readonly [name: string, value: string])[];

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e]*$/;

/** Whether a text is valid as the value of a header: printable ASCII. */
export function isHeaderValue(value: string): boolean {
  return VALUE.test(value);
}

/**
 * Checks header lines, which uWebSockets.js does not do.
 * @throws ZpublishError `internal` if a name or value contains characters that would break the answer.
 */
export function checkLines(lines: HeaderLines): void {
  for (const [name, value] of lines) {
    if (TOKEN.test(name) && isHeaderValue(value)) continue;
    throw new ZpublishError(
      "internal",
      `Header ${JSON.stringify(name)} cannot be sent: expected printable ASCII, received ${JSON.stringify(value)}`,
    );
  }
}

/** Returns a status line without the version. @throws ZpublishError `internal` if it is no status of a final answer. */
export function statusLine(status: number): string {
  if (!Number.isInteger(status) || status < 200 || status > 599)
    throw new ZpublishError("internal", `Expected a status from 200 to 599, received ${status}`);
  return `${status} ${STATUS_CODES[status] ?? "Other"}`;
}

/** A member of a list, with its weight (RFC 9110 §12.4.2). */
const MEMBER = /^([!#$%&'*+\-.^_`|~0-9a-z/]+)(?:[ \t]*;[ \t]*q[ \t]*=[ \t]*([01](?:\.\d{0,3})?))?$/;

/** Parses a list of codings or media types into weights from 0 to 1, by name in lower case. Malformed members are left out. */
export function parseWeights(header: string): Map<string, number> {
  const weights = new Map<string, number>();
  for (const member of header.split(",")) {
    const match = MEMBER.exec(member.trim().toLowerCase());
    if (match?.[1] !== undefined)
      weights.set(match[1], match[2] === undefined ? 1 : Math.min(1, Number(match[2])));
  }
  return weights;
}

/**
 * Chooses what to answer with by an `Accept` header: the type with the greatest weight, of several the first. Parameters of types do
 * not count.
 * @param offered Media types in lower case, without parameters.
 * @returns undefined if none is acceptable, which is to be answered 406 or with the first.
 */
export function chooseMediaType<T extends string>(
  accept: string | undefined,
  offered: readonly T[],
): T | undefined {
  if (accept === undefined) return offered[0];
  const weights = parseWeights(withoutParameters(accept));
  const weightOf = (type: string) =>
    weights.get(type) ?? weights.get(`${type.split("/")[0]}/*`) ?? weights.get("*/*") ?? 0;
  let chosen: T | undefined;
  for (const type of offered) {
    if (weightOf(type) > (chosen === undefined ? 0 : weightOf(chosen))) chosen = type;
  }
  return chosen;
}

/** Leaves out parameters of media types but their weights. */
export function withoutParameters(accept: string): string {
  return accept.replace(/;(?!\s*q\s*=)[^;,]*/gi, "");
}

/** No header lines. */
export const NO_LINES: HeaderLines = Object.freeze([]);

/** Methods that most paths answer, as `Allow` lists them. */
export const ALLOWED_METHODS = "GET, HEAD, OPTIONS";
const ALLOWED_HEADERS = "Range, If-None-Match, If-Match, Authorization";
const EXPOSED_HEADERS =
  "Content-Range, Content-Length, Content-Encoding, ETag, Accept-Ranges, Link, Server-Timing, X-Request-Id";
const PREFLIGHT_MAX_AGE_SECONDS = 86_400;

/** Header lines of all answers, among them those that let pages of other origins read the answers. */
export interface Cors {
  /** Lines of answers to an origin that is not in `byOrigin`. */
  readonly lines: HeaderLines;
  /** Lines by origin, if several are allowed. */
  readonly byOrigin: ReadonlyMap<string, HeaderLines>;
  /** Returns further lines of the answer to a preflight request. @param methods As in `Allow`. */
  preflight(methods: string): HeaderLines;
  /** Whether answers depend on the request's origin, and `Vary` has to name it. */
  readonly variesByOrigin: boolean;
}

/**
 * Prepares the header lines, once per app.
 * @param corsOrigin `*`, one origin, several separated by commas (each is answered with itself), or empty if no other origin may read.
 * @param others Lines of all answers for other reasons.
 * @throws ZpublishError `invalid-config`
 */
export function createCors(corsOrigin: string, others: HeaderLines = []): Cors {
  const origins = corsOrigin
    .split(",")
    .map((origin) => origin.trim())
    .filter((origin) => origin !== "");
  for (const origin of origins) checkOrigin(origin, origins.length);
  const allowing = (origin: string): HeaderLines =>
    Object.freeze([
      ...others,
      ...(origin === "" ? [] : [["Access-Control-Allow-Origin", origin] as const]),
      ["Access-Control-Expose-Headers", EXPOSED_HEADERS],
      ["Cross-Origin-Resource-Policy", "cross-origin"],
    ]);
  const isOne = origins.length <= 1;
  return {
    lines: allowing((isOne && origins[0]) || ""),
    byOrigin: new Map(isOne ? [] : origins.map((origin) => [origin, allowing(origin)])),
    preflight: (methods) => [
      ["Access-Control-Allow-Methods", methods],
      ["Access-Control-Allow-Headers", ALLOWED_HEADERS + (/POST/.test(methods) ? ", Content-Type" : "")],
      ["Access-Control-Max-Age", String(PREFLIGHT_MAX_AGE_SECONDS)],
    ],
    variesByOrigin: origins.length > 0 && origins[0] !== "*",
  };
}

function checkOrigin(origin: string, count: number): void {
  const valid =
    origin === "*" ? count === 1 : origin === "null" || /^[a-z][a-z0-9+.-]*:\/\/[^/\s,]+$/i.test(origin);
  if (!valid) {
    throw new ZpublishError(
      "invalid-config",
      `CORS origin: expected '*' or origins such as 'https://example.org' separated by commas, received '${origin}'`,
    );
  }
}
