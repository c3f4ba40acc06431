import { createHash, createHmac } from "node:crypto";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { compareItems } from "../collections/sorted-lists.js";
import { ZpublishError } from "../errors.js";
import { joined } from "../event-loop/joined.js";
import { withinTime } from "../event-loop/settles-within.js";

const ALGORITHM = "AWS4-HMAC-SHA256";

/** The hash of a body that is not signed: requests for objects and listings have none. */
const UNSIGNED_PAYLOAD = "UNSIGNED-PAYLOAD";

/** Keys that requests to S3 are signed with. */
export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
  /** Time from which on the store refuses them; undefined if it always accepts them. */
  readonly expiration?: Date | undefined;
}

/** A request to sign. */
interface UnsignedRequest {
  readonly method: string;
  /** Its path is made by {@link encodeKey}, its query has `%20` for a space. */
  readonly url: URL;
  /** Headers of the request. Those that begin with `x-amz-` are signed. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly credentials: Credentials;
  readonly region: string;
  readonly now: Date;
}

/** A URL to sign. */
interface UnsignedUrl extends Omit<UnsignedRequest, "method" | "headers"> {
  /** Seconds after `now` in which the URL can be fetched; S3 allows up to a week. */
  readonly seconds: number;
}

/**
 * Signs a request for an object or a listing (AWS Signature Version 4). Besides `Host` and `x-amz-*` it signs no header: proxies
 * may change others, such as `Accept-Encoding`.
 * @returns Headers to add, with names in lower case.
 */
export function signRequest(request: UnsignedRequest): Record<string, string> {
  const { credentials, url } = request;
  const { time, scope } = scopeOf(request);
  const added: Record<string, string> = { "x-amz-content-sha256": UNSIGNED_PAYLOAD, "x-amz-date": time };
  if (credentials.sessionToken !== undefined) added["x-amz-security-token"] = credentials.sessionToken;
  const signed = new Map([["host", url.host], ...Object.entries(added)]);
  for (const [name, value] of Object.entries(request.headers ?? {})) {
    if (/^x-amz-/i.test(name)) signed.set(name.toLowerCase(), value.trim().replace(/\s+/g, " "));
  }
  const canonical = canonicalRequest(request.method, url, canonicalQuery(url.searchParams), signed);
  const signature = sign(canonical, request, time, scope);
  const names = namesOf(signed);
  added.authorization = `${ALGORITHM} Credential=${credentials.accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`;
  return added;
}

/** Signs a URL from which anyone can GET an object for some seconds. */
export function presignUrl(request: UnsignedUrl): string {
  const { credentials, url } = request;
  const { time, scope } = scopeOf(request);
  const signed = new Map([["host", url.host]]);
  const parameters = new URLSearchParams(url.searchParams);
  parameters.set("X-Amz-Algorithm", ALGORITHM);
  parameters.set("X-Amz-Credential", `${credentials.accessKeyId}/${scope}`);
  parameters.set("X-Amz-Date", time);
  parameters.set("X-Amz-Expires", String(request.seconds));
  parameters.set("X-Amz-SignedHeaders", namesOf(signed));
  if (credentials.sessionToken !== undefined) {
    parameters.set("X-Amz-Security-Token", credentials.sessionToken);
  }
  const query = canonicalQuery(parameters);
  const signature = sign(canonicalRequest("GET", url, query, signed), request, time, scope);
  return `${url.origin}${url.pathname}?${query}&X-Amz-Signature=${signature}`;
}

/**
 * Percent-encodes a key for the path of a URL: all but unreserved characters and slashes, as S3 does before it compares signatures.
 * @throws ZpublishError `unsupported` if URLs cannot express the key: they resolve `.` and `..`, even if these are encoded.
 */
export function encodeKey(key: string): string {
  const segments = key.split("/");
  if (segments.some((segment) => segment === "." || segment === "..") || !isWellFormed(key)) {
    throw new ZpublishError(
      "unsupported",
      `expected a key of well-formed text without the segments . and .., received ${JSON.stringify(key)}`,
    );
  }
  return segments.map(encodeStrictly).join("/");
}

/** Percent-encodes all but unreserved characters (RFC 3986), in names and values of queries, too. */
export function encodeStrictly(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** False if there is half of a surrogate pair, which UTF-8 cannot express. */
function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

/** The time of a signature as `20260102T030405Z`, and the day, region and service that its key is for. */
function scopeOf({ now, region }: { readonly now: Date; readonly region: string }): {
  readonly time: string;
  readonly scope: string;
} {
  const time = now.toISOString().replace(/[-:]|\.\d+/g, "");
  return { time, scope: `${time.slice(0, 8)}/${region}/s3/aws4_request` };
}

function canonicalQuery(parameters: URLSearchParams): string {
  // Sorted encoded: the order of characters beyond ASCII is that of their bytes then.
  return [...parameters]
    .map(([name, value]) => [encodeStrictly(name), encodeStrictly(value)] as const)
    .sort(([a, x], [b, y]) => compareItems(a, b) || compareItems(x, y))
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
}

function namesOf(headers: ReadonlyMap<string, string>): string {
  return [...headers.keys()].sort(compareItems).join(";");
}

function canonicalRequest(
  method: string,
  url: URL,
  query: string,
  headers: ReadonlyMap<string, string>,
): string {
  const lines = [...headers]
    .sort(([a], [b]) => compareItems(a, b))
    .map(([name, value]) => `${name}:${value}\n`);
  return [method, url.pathname, query, lines.join(""), namesOf(headers), UNSIGNED_PAYLOAD].join("\n");
}

function sign(
  canonical: string,
  { credentials }: { readonly credentials: Credentials },
  time: string,
  scope: string,
): string {
  let key: string | Buffer = `AWS4${credentials.secretAccessKey}`;
  for (const part of scope.split("/")) key = createHmac("sha256", key).update(part).digest();
  const hash = createHash("sha256").update(canonical).digest("hex");
  return createHmac("sha256", key).update([ALGORITHM, time, scope, hash].join("\n")).digest("hex");
}

/** Origin of a store's credentials: plain data, without any of their values. */
export type CredentialSpec =
  /** Nothing is signed. */
  | { readonly kind: "anonymous" }
  /** Names of environment variables. */
  | {
      readonly kind: "variables";
      readonly accessKeyId: string;
      readonly secretAccessKey: string;
      readonly sessionToken?: string | undefined;
    }
  /** A profile of the files `~/.aws/config` and `~/.aws/credentials`. */
  | { readonly kind: "profile"; readonly name: string }
  /** `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, and if they are not set, all that AWS's own programs know. */
  | { readonly kind: "default" };

/**
 * Returns credentials; undefined if requests are not to be signed. Calls at the same time share one search.
 * @param refused Credentials that the store did not accept, such as expired ones. Others are searched for, but there may be none.
 * @throws ZpublishError `source-unreadable`
 */
type CredentialSource = (refused?: Credentials) => Promise<Credentials | undefined>;

/** Functions of AWS's libraries, as far as they are used. */
interface CredentialProviders {
  /** Looks in all places in which AWS's programs look. */
  defaultProvider(
    options: ProviderOptions,
  ): (options: { readonly forceRefresh: boolean }) => Promise<Credentials>;
  /** Looks in one profile alone. */
  fromIni(options: ProviderOptions & { readonly profile: string }): () => Promise<Credentials>;
}

interface ProviderOptions {
  readonly ignoreCache: boolean;
  readonly logger: Record<"debug" | "info" | "warn" | "error", () => void>;
}

/** Options of a source of credentials, most of them for tests. */
interface CredentialSourceOptions {
  /** Default: imports AWS's libraries. */
  readonly loadProviders?: () => Promise<CredentialProviders>;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  /** Milliseconds after which a search has failed. Default 30,000. */
  readonly timeout?: number;
}

/** Milliseconds before their end at which credentials are replaced: the store has a clock of its own. */
const MARGIN = 5 * 60_000;

/** Milliseconds until the next attempt if credentials cannot be replaced, but can still be used. */
const PAUSE = 30_000;

const PROVIDER_OPTIONS: ProviderOptions = {
  // Files are remembered otherwise, even if the store has refused what they said.
  ignoreCache: true,
  // Warnings go to the console otherwise.
  logger: { debug() {}, info() {}, warn() {}, error() {} },
};

/** All ways there are, for messages. */
const WAYS =
  'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, other variables that the store names, a profile, or "anonymous": true';

/** Creates the source of a store's credentials. It keeps them until shortly before they expire. */
export function createCredentialSource(
  spec: CredentialSpec,
  options: CredentialSourceOptions = {},
): CredentialSource {
  if (spec.kind === "anonymous") return async () => undefined;
  const { now = Date.now, timeout = 30_000 } = options;
  const find = finderOf(spec, options.loadProviders ?? importProviders);
  let kept: Credentials | undefined;
  let renewAt = 0;

  const renew = joined(async (): Promise<Credentials> => {
    try {
      const found = await withinTime(find(), timeout, () =>
        unreadable(`expected credentials within ${timeout} ms, received none`),
      );
      const remaining = found.expiration === undefined ? undefined : found.expiration.getTime() - now();
      // Of short-lived ones half of their life is the margin.
      renewAt = remaining === undefined ? Infinity : now() + Math.max(remaining - MARGIN, remaining / 2);
      kept = found;
      return found;
    } catch (error) {
      if (kept?.expiration === undefined || kept.expiration.getTime() <= now()) throw error;
      renewAt = now() + PAUSE;
      return kept;
    }
  });

  return async (refused) => {
    // Only the first of many requests that the store refused finds the refused ones here.
    if (refused !== undefined && refused === kept) kept = undefined;
    if (kept !== undefined && now() < renewAt) return kept;
    return renew();
  };
}

function finderOf(
  spec: Exclude<CredentialSpec, { readonly kind: "anonymous" }>,
  load: () => Promise<CredentialProviders>,
): () => Promise<Credentials> {
  if (spec.kind === "variables") {
    const { accessKeyId, secretAccessKey, sessionToken } = spec;
    return async () => ({
      accessKeyId: variable(accessKeyId),
      secretAccessKey: variable(secretAccessKey),
      ...(sessionToken === undefined ? {} : { sessionToken: variable(sessionToken) }),
    });
  }
  if (spec.kind === "profile") {
    const { name: profile } = spec;
    // The default provider looks elsewhere if the profile has none, and may find credentials of other rights.
    return () =>
      fromLibrary(`profile ${JSON.stringify(profile)}`, async () => {
        const { fromIni } = await load();
        return fromIni({ ...PROVIDER_OPTIONS, profile })();
      });
  }
  return async () =>
    fromEnvironment() ??
    fromLibrary(WAYS, async () => {
      const { defaultProvider } = await load();
      return defaultProvider(PROVIDER_OPTIONS)({ forceRefresh: true });
    });
}

function fromEnvironment(): Credentials | undefined {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = process.env;
  if (!AWS_ACCESS_KEY_ID || !AWS_SECRET_ACCESS_KEY) return undefined;
  return {
    accessKeyId: AWS_ACCESS_KEY_ID,
    secretAccessKey: AWS_SECRET_ACCESS_KEY,
    ...(AWS_SESSION_TOKEN ? { sessionToken: AWS_SESSION_TOKEN } : {}),
  };
}

/** Runs a search of AWS's libraries. @param places Named in the message. */
async function fromLibrary(places: string, look: () => Promise<Credentials>): Promise<Credentials> {
  try {
    const { accessKeyId, secretAccessKey, sessionToken, expiration } = await look();
    return { accessKeyId, secretAccessKey, sessionToken, expiration };
  } catch (error) {
    if (error instanceof ZpublishError) throw error;
    throw unreadable(`expected credentials for S3 (${places}), received ${reasonOf(error)}`);
  }
}

async function importProviders(): Promise<CredentialProviders> {
  try {
    const { defaultProvider } = await import("@aws-sdk/credential-provider-node");
    // A dependency of that package, which may not lie beside it.
    const { resolve } = createRequire(import.meta.resolve("@aws-sdk/credential-provider-node"));
    const { fromIni } = await import(pathToFileURL(resolve("@aws-sdk/credential-provider-ini")).href);
    return { defaultProvider, fromIni };
  } catch (error) {
    throw unreadable(
      `expected credentials for S3 (${WAYS}), or the package @aws-sdk/credential-provider-node to look for ` +
        `profiles and other sources; received ${reasonOf(error)} for the package`,
    );
  }
}

/** Returns what may be shown of an error. Messages may contain paths, commands and what these print. */
function reasonOf(error: unknown): string {
  const { name, code, message } = error as { name?: string; code?: unknown; message?: string };
  if (name === "CredentialsProviderError" && message !== undefined) {
    return /^Command failed/.test(message) ? "a credential_process that failed" : JSON.stringify(message);
  }
  return typeof code === "string" ? code : (name ?? "an error");
}

function variable(name: string): string {
  const value = process.env[name];
  if (!value) {
    throw unreadable(
      `expected part of the credentials in the environment variable ${name}, received no value`,
    );
  }
  return value;
}

function unreadable(message: string): ZpublishError {
  return new ZpublishError("source-unreadable", message);
}
