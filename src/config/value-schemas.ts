import { isIP } from "node:net";
import { z } from "zod";
import { LOG_LEVELS, type LogLevel } from "../observe/log.js";
import { formatByteSize, parseByteSize } from "./byte-size.js";

/**
 * Schema of a single value. Messages have the form "expected …", and `problem.ts` adds what was received. Flags and
 * variables become JSON values first (`options.ts`), so that one schema serves all three places.
 */
function expected<T>(what: string, test: (value: unknown) => boolean): z.ZodType<T, T> {
  return z.custom<T>(test, { error: `expected ${what}` });
}

function isIntegerIn(value: unknown, min: number, max: number): boolean {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}

/**
 * Makes a schema of an object that rejects unknown keys.
 * @param what Name of the object, for messages.
 */
export function strictObject<S extends z.core.$ZodLooseShape>(what: string, shape: S) {
  const keys = Object.keys(shape).join(", ");
  return z.strictObject(shape, {
    error: (issue) => (issue.code === "unrecognized_keys" ? `expected one of ${keys}` : `expected ${what}`),
  });
}

/** A text of at least one character, without control characters. */
export function textSchema(what: string, maxLength = 4_096): z.ZodType<string, string> {
  return expected<string>(
    what,
    (value) =>
      typeof value === "string" && value.trim() !== "" && value.length <= maxLength && !/\p{Cc}/u.test(value),
  );
}

/** An integer, both ends included. */
export function integerSchema(min: number, max: number): z.ZodType<number, number> {
  return expected<number>(`an integer from ${min} to ${max}`, (value) => isIntegerIn(value, min, max));
}

/** `true` or `false`. */
export const booleanSchema = expected<boolean>("true or false", (value) => typeof value === "boolean");

/** A host name or address; brackets around IPv6 are removed. */
export const hostSchema = expected<string>(
  "a host name or an address without scheme and port",
  (value) =>
    typeof value === "string" &&
    /^(\[[0-9a-f:.%\w]+\]|[^\s/[\]?#@]+)$/i.test(value) &&
    !isHostWithPort(value),
).transform((value) => value.replace(/^\[(.*)\]$/, "$1"));

/** Whether a host has a port, `localhost:9000`: an IPv6 address has at least two colons. */
function isHostWithPort(host: string): boolean {
  return host.split(":").length === 2;
}

/** One day. Longer periods are better served by SIGHUP. */
const MAX_REFRESH_SECONDS = 86_400;

/** Seconds between refreshes; 0 for none. */
export const refreshSchema = expected<number>(
  `a number of seconds from 0 (never) to ${MAX_REFRESH_SECONDS}`,
  (value) => typeof value === "number" && value >= 0 && value <= MAX_REFRESH_SECONDS,
);

/** A number of seconds, both ends included. */
export function secondsSchema(min: number, max: number): z.ZodType<number, number> {
  return expected<number>(
    `a number of seconds from ${min} to ${max}`,
    (value) => typeof value === "number" && value >= min && value <= max,
  );
}

/** A share from 0 to 1. */
export const shareSchema = expected<number>(
  "a number from 0 to 1",
  (value) => typeof value === "number" && value >= 0 && value <= 1,
);

const MIN_CACHE_BYTES = 2 ** 20;

/** A size in bytes as a number or text, at least a mebibyte. */
export const byteSizeSchema = expected<string | number>(
  "a size of at least 1MiB, such as 10GiB, 512MB or 1048576",
  (value) => (byteLengthOf(value) ?? 0) >= MIN_CACHE_BYTES,
).transform((value) => byteLengthOf(value) as number);

/** A size within bounds, both ends included; converted to bytes. */
export function byteSizeFrom(minBytes: number, maxBytes: number): z.ZodType<number, string | number> {
  const [min, max] = [formatByteSize(minBytes), formatByteSize(maxBytes)];
  return expected<string | number>(`a size from ${min} to ${max}, such as 512MiB`, (value) => {
    const byteLength = byteLengthOf(value);
    return byteLength !== undefined && byteLength >= minBytes && byteLength <= maxBytes;
  }).transform((value) => byteLengthOf(value) as number);
}

function byteLengthOf(value: unknown): number | undefined {
  if (typeof value === "string") return parseByteSize(value);
  return Number.isSafeInteger(value) ? (value as number) : undefined;
}

/** A path; normalised to begin with a slash and end without one, or to be empty. */
export const rootPathSchema = expected<string>(
  "a path of letters, digits and -._~, such as /prefix",
  (value) => typeof value === "string" && value.split("/").every(isPlainSegment),
).transform((value) => {
  const segments = value.split("/").filter((segment) => segment !== "");
  return segments.length === 0 ? "" : `/${segments.join("/")}`;
});

function isPlainSegment(segment: string): boolean {
  return /^[A-Za-z0-9\-._~]*$/.test(segment) && segment !== "." && segment !== "..";
}

/** `*`, or origins as browsers send them. With a path or a slash at its end, an origin would match no browser. */
export const corsOriginSchema = expected<string>(
  "*, origins such as https://example.org separated by commas (without a path), or nothing",
  (value) =>
    typeof value === "string" &&
    (value.trim() === "*" || value.trim() === "" || value.split(",").every((part) => isOrigin(part.trim()))),
).transform((value) =>
  value
    .split(",")
    .map((part) => part.trim())
    .join(", "),
);

function isOrigin(text: string): boolean {
  if (text === "null") return true;
  try {
    const url = new URL(text);
    return `${url.protocol}//${url.host}` === text && url.host !== "";
  } catch {
    return false;
  }
}

/** Value of a header: visible ASCII and single spaces or tabs, so that it cannot end the header. */
export const cacheControlSchema = expected<string>(
  "a Cache-Control value of visible ASCII characters, such as public, max-age=3600",
  (value) =>
    typeof value === "string" && value.length <= 1_024 && /^[\x21-\x7e]+([ \t][\x21-\x7e]+)*$/.test(value),
);

/** A level of the log. */
export const logLevelSchema = expected<LogLevel>(`one of ${LOG_LEVELS.join(", ")}`, (value) =>
  (LOG_LEVELS as readonly unknown[]).includes(value),
);

/** A header's name (RFC 9110 §5.1), in lower case. */
export const headerNameSchema = expected<string>(
  "the name of a header, such as x-request-id",
  (value) => typeof value === "string" && /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/.test(value),
).transform((value) => value.toLowerCase());

/** Networks that have names (RFC 1122, RFC 1918, RFC 4193, RFC 4291). */
export const NAMED_NETWORKS: Readonly<Record<string, readonly string[]>> = {
  loopback: ["127.0.0.0/8", "::1/128"],
  private: ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fe80::/10"],
};

/** Addresses and networks, separated by commas. */
export const trustedProxiesSchema = expected<string>(
  "addresses or networks separated by commas, such as 10.0.0.0/8, ::1, loopback, private, or nothing",
  (value) =>
    typeof value === "string" &&
    (value.trim() === "" || value.split(",").every((part) => isNetwork(part.trim()))),
).transform((value) =>
  value
    .split(",")
    .map((part) => part.trim())
    .join(", "),
);

function isNetwork(text: string): boolean {
  if (Object.hasOwn(NAMED_NETWORKS, text)) return true;
  const [address = "", bits, ...rest] = text.split("/");
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}
