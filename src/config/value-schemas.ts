import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { isIP } from "node:net";
import { isAbsolute, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { ZpublishError } from "../errors.js";
import { LOG_LEVELS, type LogLevel } from "../observe/log.js";
import { repositoryOf, schemeOf } from "../stores/byte-store.js";

const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
};

/** Parses `10GiB`, `512 MB`, `1.5TiB` or `1048576` into whole bytes; undefined if the text is none of these. */
export function parseByteSize(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim());
  if (match === null) return undefined;
  const unit = UNITS[(match[2] as string).toLowerCase()];
  if (unit === undefined) return undefined;
  const byteLength = Math.floor(Number(match[1]) * unit);
  return Number.isSafeInteger(byteLength) ? byteLength : undefined;
}

/** Writes a number of bytes for people: `0 B`, `512 B`, `1.5 KiB`, `10 GiB`. */
export function formatByteSize(byteLength: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let value = byteLength;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || Number.isInteger(value) ? value : value.toFixed(1)} ${units[unit]}`;
}

/**
 * Schema of a single value. Messages have the form "expected …", and `problemsOf` adds what was received. Flags and
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
  const known = Object.keys(shape);
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === "unrecognized_keys"
        ? issue.keys
            .map((key) => `unknown key ${JSON.stringify(key)}; ${expectedName(key, known)}`)
            .join("\n")
        : `expected ${what}`,
  });
}

/** Says which name an unknown one may stand for: `did you mean host?`. @param otherwise Text if none of the known ones is similar */
export function expectedName(
  name: string,
  known: readonly string[],
  otherwise = `expected one of ${known.join(", ")}`,
): string {
  const [best] = known
    .map((candidate) => ({ candidate, edits: editsBetween(name.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ candidate, edits }) => edits <= Math.min(3, Math.max(name.length, candidate.length) / 2.5))
    .sort((a, b) => a.edits - b.edits);
  return best === undefined ? otherwise : `did you mean ${best.candidate}?`;
}

/** Counts the characters to insert, remove, replace or swap with the next one to get from one text to another. */
function editsBetween(from: string, to: string): number {
  const rows = [Array.from({ length: to.length + 1 }, (_, column) => column)];
  for (let row = 1; row <= from.length; row++) {
    const edits = [row];
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1];
      const isSwapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      edits[column] = Math.min(
        rows[row - 1]![column]! + 1,
        edits[column - 1]! + 1,
        rows[row - 1]![column - 1]! + (isSame ? 0 : 1),
        isSwapped ? rows[row - 2]![column - 2]! + 1 : Number.POSITIVE_INFINITY,
      );
    }
    rows.push(edits);
  }
  return rows[from.length]![to.length]!;
}

/** Makes a schema of an object with any keys. @param what Its values, for messages: `datasets by id`. */
export function namedSchema<T = unknown>(what: string, value: z.ZodType<T> = z.unknown() as z.ZodType<T>) {
  return z.record(z.string(), value, { error: `expected an object of ${what}` });
}

/** Makes a schema that depends on the kind of the value. Messages of a union would say less. */
export function schemaOf<T>(choose: (value: unknown) => z.ZodType<T>): z.ZodType<T> {
  return z.unknown().transform((value, context): T => {
    const { success, data, error } = choose(value).safeParse(value);
    if (success) return data;
    for (const issue of error.issues) context.addIssue({ ...issue });
    return z.NEVER;
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

/** A number, both ends included. */
function numberSchema(what: string, min: number, max: number): z.ZodType<number, number> {
  return expected<number>(what, (value) => typeof value === "number" && value >= min && value <= max);
}

/** One day. Longer periods are better served by SIGHUP. */
const MAX_REFRESH_SECONDS = 86_400;

/** Seconds between refreshes; 0 for none. */
export const refreshSchema = numberSchema(
  `a number of seconds from 0 (never) to ${MAX_REFRESH_SECONDS}`,
  0,
  MAX_REFRESH_SECONDS,
);

/** A number of seconds, both ends included; converted to milliseconds. */
export function millisecondsSchema(min: number, max: number): z.ZodType<number, number> {
  return numberSchema(`a number of seconds from ${min} to ${max}`, min, max).transform(
    (seconds) => seconds * 1_000,
  );
}

/** A share from 0 to 1. */
export const shareSchema = numberSchema("a number from 0 to 1", 0, 1);

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

/** A URL of HTTP without credentials in it. */
export const urlSchema = expected<string>("a URL such as https://example.org/jwks.json", (value) => {
  const url = typeof value === "string" && URL.canParse(value) ? new URL(value) : undefined;
  return url !== undefined && /^https?:$/.test(url.protocol) && url.username === "";
});

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
const NAMED_NETWORKS: Readonly<Record<string, readonly string[]>> = {
  loopback: ["127.0.0.0/8", "::1/128"],
  private: ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fe80::/10"],
};

/** Addresses and networks, separated by commas; converted to a list without names. */
export const trustedProxiesSchema = expected<string>(
  "addresses or networks separated by commas, such as 10.0.0.0/8, ::1, loopback, private, or nothing",
  (value) =>
    typeof value === "string" &&
    (value.trim() === "" || value.split(",").every((part) => isNetwork(part.trim()))),
).transform((value): readonly string[] =>
  value
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .flatMap((part) => NAMED_NETWORKS[part] ?? [part]),
);

function isNetwork(text: string): boolean {
  if (Object.hasOwn(NAMED_NETWORKS, text)) return true;
  const [address = "", bits, ...rest] = text.split("/");
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}

/** Writes a value as JSON for a message, at most 80 characters. */
export function quoteValue(value: unknown): string {
  if (value === undefined) return "nothing";
  const text = textOf(value);
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}

/** Writes a value as JSON, or as text if it has none. A program may give functions, NaN, big integers or cycles. */
function textOf(value: unknown): string {
  if (typeof value === "number") return String(value);
  try {
    return JSON.stringify(value) ?? String(value).replace(/\s+/g, " ");
  } catch {
    return Object.prototype.toString.call(value);
  }
}

/**
 * Converts zod's issues to lines. Each begins with `place`: `--port`, `ZPUBLISH_PORT`, `config.json`. A schema's messages
 * have the form "expected …"; this adds what was received.
 */
export function problemsOf(
  error: z.ZodError,
  input: unknown,
  place: string,
  path: readonly PropertyKey[] = [],
): string[] {
  return error.issues.flatMap((issue) => {
    const full = [...path, ...issue.path];
    const where = full.length === 0 ? place : `${place}: ${formatPath(full)}`;
    if (issue.code === "unrecognized_keys")
      return issue.message.split("\n").map((problem) => `${where}: ${problem}`);
    return `${where}: ${issue.message}, received ${quoteValue(valueAt(input, issue.path))}`;
  });
}

/** Makes one `invalid-config` error of problems, one line each. */
export function configError(problems: readonly string[]): ZpublishError {
  return new ZpublishError("invalid-config", problems.join("\n"), { details: { problems: problems.length } });
}

/** Writes the path of a value: `datasets.big.variables["a/b/t2m"].chunks[0]`. */
export function formatPath(path: readonly PropertyKey[]): string {
  let text = "";
  for (const key of path) {
    if (typeof key === "number") text += `[${key}]`;
    else if (/^[\w-]+$/.test(String(key))) text += text === "" ? String(key) : `.${String(key)}`;
    else text += `[${JSON.stringify(String(key))}]`;
  }
  return text;
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const key of path) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}

/** Makes a path absolute, also after `icechunk:`; a location with a scheme (`https://…`, `file:///…`) stays as it is. */
export function resolveLocation(location: string, directory: string): string {
  const { place, query } = repositoryOf(location) ?? {};
  if (place !== undefined)
    return `icechunk:${resolveLocation(place, directory)}${query === "" ? "" : `?${query}`}`;
  return schemeOf(location) === undefined ? resolve(directory, location) : location;
}

/** Makes the root of a collection absolute: a path, or an `s3://` URL with a slash at its end. Undefined for other URLs, which cannot be listed. */
export function resolveRoot(root: string, directory: string): string | undefined {
  if (/^file:/i.test(root)) {
    try {
      return fileURLToPath(root);
    } catch {
      return undefined;
    }
  }
  const location = resolveLocation(root, directory);
  if (isAbsolute(location)) return location;
  return /^s3:\/\/[^/]/i.test(location) ? `${location.replace(/\/+$/, "")}/` : undefined;
}

/**
 * Resolves a plugin's `module`: to an absolute path if it is a `file:` URL, begins with `.` or `/`, exists below the
 * directory, or is a package that is installed there; else a specifier, as it is. The program itself may be installed
 * elsewhere, where an `import` of the operator's package would not find it.
 * @throws TypeError if a `file:` URL names no local file.
 */
export function resolveModule(module: string, directory: string): string {
  if (module.startsWith("file:")) return fileURLToPath(module);
  if (module.startsWith(".") || isAbsolute(module)) return resolve(directory, module);
  const path = resolve(directory, module);
  if (existsSync(path)) return path;
  try {
    return createRequire(join(directory, "plugins.js")).resolve(module);
  } catch {
    // Not there, or a package that exports nothing to `require`: importing it will tell.
    return module;
  }
}

/** Whether a plugin's `module` is a file, whose name may name the plugin. */
export function isModulePath(module: string): boolean {
  return /^(file:|\.|\/)|\.[cm]?js$/.test(module) || isAbsolute(module);
}

/**
 * Splits `ID=LOCATION`; the id is undefined if none is given. A location may contain `=` itself. So a text is a location
 * if a file of that name exists, if it begins with `icechunk:`, or if a slash is before its first `=`, since ids have no slash.
 */
export function splitDatasetArgument(
  text: string,
  directory: string,
): { readonly id: string | undefined; readonly location: string } {
  const at = text.indexOf("=");
  const isLocation =
    at === -1 ||
    text.slice(0, at).includes("/") ||
    repositoryOf(text) !== undefined ||
    existsSync(resolve(directory, text));
  if (isLocation) return { id: undefined, location: text };
  return { id: text.slice(0, at), location: text.slice(at + 1) };
}

/** Makes the paths of references absolute. @param directory Directory that relative ones begin in. */
export function absoluteReferences({ allow }: { readonly allow: readonly string[] }, directory: string) {
  return { allow: allow.map((place) => resolveLocation(place, directory)) };
}

type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** Copies an object without the keys whose value is undefined. */
export function withoutUndefined<T extends object>(object: T): Defined<T> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Defined<T>;
}
