import { ZpublishError } from "../errors.js";
import {
  type CredentialSpec,
  type Credentials,
  createCredentialSource,
  encodeKey,
  encodeStrictly,
  presignUrl,
  signRequest,
} from "./aws-requests.js";
import type { ByteStore, ObjectListing, StoreSettings } from "./byte-store.js";
import type { Answer } from "./http-exchange.js";
import { createHttpStore } from "./http-store.js";

/** Codes with which S3 refuses credentials that were good before. */
const EXPIRED_CODES: ReadonlySet<string> = new Set([
  "ExpiredToken",
  "ExpiredTokenException",
  "TokenRefreshRequired",
  "InvalidToken",
]);

/** The bucket of a location, and how it is reached. */
interface Bucket {
  readonly name: string;
  /** Empty, or with a slash at the end. */
  readonly prefix: string;
  /** URL of the bucket, with a slash at the end. */
  readonly url: string;
  readonly region: string;
}

/**
 * Creates the store of the objects below a prefix of a bucket.
 * @param location `s3://bucket/prefix/`
 * @throws ZpublishError `invalid-config`
 */
export function createS3Store(
  location: string,
  settings: StoreSettings | undefined,
  headers: Readonly<Record<string, string>>,
): ByteStore {
  const { name, prefix, url: bucketUrl, region } = bucketOf(location, settings);
  const credentialsOf = createCredentialSource(credentialSpec(settings));
  const isForbiddenMissing = settings?.missing === "404+403";
  let refused: Credentials | undefined;
  let used: Credentials | undefined;

  async function credentials(): Promise<Credentials | undefined> {
    used = await credentialsOf(refused);
    if (used !== refused) refused = undefined;
    return used;
  }

  const store = createHttpStore({
    store: settings?.name ?? `s3://${name}`,
    location,
    identity: `${bucketUrl}\n${prefix}`,
    urlOf: (key) => new URL(bucketUrl + encodeKey(prefix + key)),
    async headersOf(method, url, asked) {
      const all = { ...headers, ...asked };
      if (settings?.requesterPays) all["x-amz-request-payer"] = "requester";
      const found = await credentials();
      if (found === undefined) return all;
      return {
        ...all,
        ...signRequest({ method, url, headers: all, credentials: found, region, now: new Date() }),
      };
    },
    isMissing(answer) {
      const code = codeOf(answer);
      // A wrong key or clock has another code.
      if (answer.status === 403) return isForbiddenMissing && (code === undefined || code === "AccessDenied");
      // A missing bucket is no missing object.
      return answer.status === 404 && code !== "NoSuchBucket";
    },
    isUnclear: ({ status }) => status >= 400 && status < 500,
    hasExpired(answer, sent) {
      if (answer.status !== 400 && answer.status !== 401 && answer.status !== 403) return false;
      if (!EXPIRED_CODES.has(codeOf(answer) ?? "") || used === undefined) return false;
      // Another request may have found new ones meanwhile.
      if (sent["x-amz-security-token"] === used.sessionToken) refused = used;
      return true;
    },
    reasonOf(answer) {
      const code = codeOf(answer);
      return `it answers ${answer.status}${code === undefined ? "" : ` ${code}`}`;
    },
  });

  async function list(below: string, signal?: AbortSignal, withVersions = false): Promise<ObjectListing> {
    const start = prefix + below;
    const objects: string[] = [];
    const versions: string[] = [];
    const prefixes: string[] = [];
    let token: string | undefined;
    do {
      const url = new URL(`${bucketUrl}?${listingQuery(start, token)}`);
      const label = below === "" ? "/" : below;
      const page = parseListing(await store.readText(url, label, signal), withVersions);
      for (const [index, key] of page.objects.entries()) {
        if (key === start) continue;
        objects.push(key.slice(start.length));
        versions.push(page.versions?.[index] ?? "");
      }
      for (const key of page.prefixes) prefixes.push(key.slice(start.length, -1));
      token = page.continuationToken;
    } while (token !== undefined);
    return { objects, prefixes, ...(withVersions ? { versions } : {}) };
  }

  async function urlFor(key: string, seconds: number): Promise<string | undefined> {
    const url = store.urlOf(key);
    if (settings?.requesterPays) url.searchParams.set("x-amz-request-payer", "requester");
    const found = await credentials();
    if (found === undefined) return url.href;
    return presignUrl({ url, credentials: found, region, seconds, now: new Date() });
  }

  // A URL has no headers.
  const isRedirected = settings?.redirect === true && Object.keys(headers).length === 0;
  const isAnonymous = settings?.anonymous === true && !settings.requesterPays;
  return {
    ...store,
    location: `s3://${name}/${prefix}`,
    list,
    // Programs without credentials can read it by its URL, wherever its endpoint is.
    placeOf: (key) =>
      isAnonymous
        ? { location: store.urlOf(key).href, isPublic: isRedirected }
        : { location: `s3://${name}/${prefix}${key}` },
    ...(isRedirected ? { urlFor, urlTellsAbsence: settings?.missing !== "404+403" } : {}),
  };
}

function codeOf({ bytes }: Answer): string | undefined {
  return bytes.length === 0 ? undefined : errorCodeOf(Buffer.from(bytes).toString("utf8"));
}

function bucketOf(location: string, settings: StoreSettings | undefined): Bucket {
  const found = /^s3:\/\/([a-z0-9][a-z0-9._-]{1,62})\/(.*)$/i.exec(location);
  if (found === null)
    throw new ZpublishError(
      "invalid-config",
      `expected s3://bucket/prefix, received ${location.slice(0, 200)}`,
    );
  const [, name, prefix] = found as unknown as [string, string, string];
  const { env } = process;
  const endpoint = settings?.endpoint ?? (env.AWS_ENDPOINT_URL_S3 || env.AWS_ENDPOINT_URL || undefined);
  const region = settings?.region ?? (env.AWS_REGION || env.AWS_DEFAULT_REGION || "us-east-1");
  const service = parseEndpoint(endpoint ?? `https://s3.${region}.amazonaws.com`);
  // Certificates are for one label before the service's name.
  const isInPath = settings?.forcePathStyle ?? (endpoint !== undefined || name.includes("."));
  const base = service.pathname.replace(/\/$/, "");
  const url = isInPath
    ? `${service.origin}${base}/${name}/`
    : `${service.protocol}//${name}.${service.host}${base}/`;
  return { name, prefix, url, region };
}

function parseEndpoint(endpoint: string): URL {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  if (url !== undefined && /^https?:$/.test(url.protocol)) return url;
  const received = endpoint.replace(/^.*@/s, "…@").slice(0, 200);
  const message = `expected the endpoint of S3 as an https:// or http:// URL, received ${received}`;
  throw new ZpublishError("invalid-config", message);
}

function credentialSpec(settings: StoreSettings | undefined): CredentialSpec {
  if (settings?.anonymous) return { kind: "anonymous" };
  if (settings?.profile !== undefined) return { kind: "profile", name: settings.profile };
  if (settings?.credentials === undefined) return { kind: "default" };
  const { accessKeyId, secretAccessKey, sessionToken } = settings.credentials;
  return {
    kind: "variables",
    accessKeyId: accessKeyId.env,
    secretAccessKey: secretAccessKey.env,
    sessionToken: sessionToken?.env,
  };
}

/** Part of the names directly below a prefix, as one answer of S3 lists them. */
interface ListingPage {
  /** Whole keys. One is the prefix itself if the bucket has an object of that name. */
  readonly objects: readonly string[];
  /** Whole prefixes, each with a slash at the end. */
  readonly prefixes: readonly string[];
  /** One per object, as in `ObjectListing`; undefined unless asked for. */
  readonly versions?: readonly string[];
  /** Asks for the next part; undefined if this is the last. */
  readonly continuationToken?: string | undefined;
}

/**
 * Returns the query of a request for names directly below a prefix (ListObjectsV2).
 * @param continuationToken As the part before has it. Default: the first part.
 */
export function listingQuery(prefix: string, continuationToken?: string): string {
  const parameters = {
    "list-type": "2",
    // Without it, S3 would list each chunk.
    delimiter: "/",
    // XML cannot express some characters of keys.
    "encoding-type": "url",
    prefix,
    ...(continuationToken === undefined ? {} : { "continuation-token": continuationToken }),
  };
  return Object.entries(parameters)
    .map(([name, value]) => `${name}=${encodeStrictly(value)}`)
    .join("&");
}

/**
 * Parses an answer to {@link listingQuery}.
 * @throws ZpublishError `source-unreadable` if it is anything else: the page of a proxy is no empty listing.
 */
export function parseListing(xml: string, withVersions = false): ListingPage {
  const text = xml.trim();
  const isWhole =
    /^(?:<\?[^<>]*>\s*)?<ListBucketResult[\s>]/.test(text) && text.endsWith("</ListBucketResult>");
  if (!isWhole) throw unreadable("text that is no such document, or not whole");
  const entries = contentsOf(text, "Contents");
  const prefixEntries = contentsOf(text, "CommonPrefixes");
  const isEncoded = optionalText(text, "EncodingType") === "url";
  const nameOf = (name: string) => (isEncoded ? decodeName(name) : name);
  const isTruncated = textOf(text, "IsTruncated");
  if (isTruncated !== "true" && isTruncated !== "false")
    throw unreadable(`IsTruncated ${JSON.stringify(isTruncated.slice(0, 20))}`);
  return {
    objects: entries.map((entry) => nameOf(textOf(entry, "Key"))),
    prefixes: prefixEntries.map((entry) => nameOf(textOf(entry, "Prefix"))),
    ...(withVersions && { versions: entries.map(versionOf) }),
    ...(isTruncated === "true" && { continuationToken: textOf(text, "NextContinuationToken") }),
  };
}

/** Joined, since a part of the answer's text would retain all of it. */
function versionOf(entry: string): string {
  const state = optionalText(entry, "ETag")?.replaceAll('"', "") ?? optionalText(entry, "LastModified");
  return [state, optionalText(entry, "Size")].join(".");
}

/** Returns the code in the body of an S3 error, such as `NoSuchKey`; undefined if the body is none. */
export function errorCodeOf(xml: string): string | undefined {
  const code = /<Error[\s>]/.test(xml) ? contentsOf(xml, "Code")[0] : undefined;
  // It gets into messages.
  return code !== undefined && /^[\w.]{1,100}$/.test(code) ? code : undefined;
}

/** Decodes a name of a listing: S3 writes a plus for a space, and `%2B` for a plus. */
function decodeName(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw unreadable(`a key that is no percent-encoded UTF-8: ${JSON.stringify(text)}`);
  }
}

function textOf(xml: string, name: string): string {
  const text = optionalText(xml, name);
  if (text === undefined || text === "") throw unreadable(`a part without ${name}`);
  return text;
}

/** Returns the text of the only element of a name; undefined if there is none. @throws ZpublishError `source-unreadable` */
function optionalText(xml: string, name: string): string | undefined {
  const [text, second] = contentsOf(xml, name);
  if (second !== undefined) throw unreadable(`more than one ${name}`);
  return text === undefined ? undefined : resolveReferences(text);
}

/** Returns what stands in each element of a name. S3's elements have no attributes, and none has another of its own name in it. */
function contentsOf(xml: string, name: string): string[] {
  const [, ...parts] = xml.split(`<${name}>`);
  return parts.map((part) => {
    const end = part.indexOf(`</${name}>`);
    if (end < 0) throw unreadable(`<${name}> without its end`);
    return part.slice(0, end);
  });
}

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** Resolves the references of XML in a text. @throws ZpublishError `source-unreadable` for markup, and unknown references */
function resolveReferences(text: string): string {
  if (text.includes("<")) throw unreadable("markup in a text");
  return text.replace(/&(?:#x([0-9a-f]{1,6})|#([0-9]{1,7})|([a-z]+));|&/gi, (all, hex, decimal, name) => {
    const code = Number.parseInt(hex ?? decimal, hex === undefined ? 10 : 16);
    const character = name === undefined ? code <= 0x10ffff && String.fromCodePoint(code) : ENTITIES[name];
    if (character) return character;
    throw unreadable(`the reference ${JSON.stringify(all)}`);
  });
}

function unreadable(received: string): ZpublishError {
  return new ZpublishError(
    "source-unreadable",
    `expected a listing of S3 (ListBucketResult), received ${received}`,
  );
}
