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
 * @param headers Further headers of every request.
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
  return { ...store, location: `s3://${name}/${prefix}`, list, ...(isRedirected ? { urlFor } : {}) };
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
 * @param withVersions Whether to tell the versions of objects. Default false.
 * @throws ZpublishError `source-unreadable` if it is anything else: the page of a proxy is no empty listing.
 */
export function parseListing(xml: string, withVersions = false): ListingPage {
  const root = parseXml(xml);
  if (root?.name !== "ListBucketResult") {
    throw unreadable(
      root === undefined ? "text that is no whole XML document" : `<${root.name.slice(0, 40)}>`,
    );
  }
  const isEncoded = optionalText(root, "EncodingType") === "url";
  const name = (text: string) => (isEncoded ? decodeName(text) : text);
  const entries = childrenOf(root, "Contents");
  const objects = entries.map((entry) => name(textOf(entry, "Key")));
  const prefixes = childrenOf(root, "CommonPrefixes").map((entry) => name(textOf(entry, "Prefix")));
  const page = { objects, prefixes, ...(withVersions ? { versions: entries.map(versionOf) } : {}) };
  const isTruncated = textOf(root, "IsTruncated");
  if (isTruncated === "true") return { ...page, continuationToken: textOf(root, "NextContinuationToken") };
  if (isTruncated !== "false") throw unreadable(`IsTruncated ${JSON.stringify(isTruncated.slice(0, 20))}`);
  return page;
}

/** Joined, since a part of the answer's text would retain all of it. */
function versionOf(entry: XmlElement): string {
  const state = optionalText(entry, "ETag")?.replaceAll('"', "") ?? optionalText(entry, "LastModified");
  return [state, optionalText(entry, "Size")].join(".");
}

/** Returns the code in the body of an S3 error, such as `NoSuchKey`; undefined if the body is none. */
export function errorCodeOf(xml: string): string | undefined {
  const root = parseXml(xml);
  const code = root?.name === "Error" ? childrenOf(root, "Code")[0]?.text : undefined;
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

function childrenOf(element: XmlElement, name: string): readonly XmlElement[] {
  return element.children.filter((child) => child.name === name);
}

function textOf(element: XmlElement, name: string): string {
  const text = optionalText(element, name);
  if (text === undefined || text === "") throw unreadable(`<${element.name}> without ${name}`);
  return text;
}

/** Returns undefined if there is no such child. @throws ZpublishError `source-unreadable` if there is more than one */
function optionalText(element: XmlElement, name: string): string | undefined {
  const [child, second] = childrenOf(element, name);
  if (second !== undefined) throw unreadable(`<${element.name}> with more than one ${name}`);
  return child?.text;
}

function unreadable(received: string): ZpublishError {
  return new ZpublishError(
    "source-unreadable",
    `expected a listing of S3 (ListBucketResult), received ${received}`,
  );
}

/** An element of an XML document. */
interface XmlElement {
  /** Name without the prefix of a namespace. */
  readonly name: string;
  readonly children: readonly XmlElement[];
  /** Text directly in the element, with references resolved. */
  readonly text: string;
}

/** One token: CDATA; a comment or instruction; a tag as slash, name, attributes and slash; text. */
const TOKEN =
  /<!\[CDATA\[([\s\S]*?)\]\]>|(<!--[\s\S]*?-->|<\?[\s\S]*?\?>)|<(\/?)([^\s<>/!?="']+)((?:\s+[^\s<>/="']+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>|([^<]+)/y;

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/**
 * Parses a whole XML document as S3 sends it: attributes are skipped, and document types are not known.
 * @returns The root; undefined if the text is no such document, or ends too early.
 */
function parseXml(text: string): XmlElement | undefined {
  const document: OpenElement = { name: "", children: [], text: "" };
  const open = [document];
  TOKEN.lastIndex = text.startsWith("\ufeff") ? 1 : 0;
  while (TOKEN.lastIndex < text.length) {
    const [token, data, , closes, qualifiedName, attributes, isEmpty, characters] = TOKEN.exec(text) ?? [];
    const current = open.at(-1) as OpenElement;
    if (token === undefined) return undefined;
    if (data !== undefined) {
      current.text += data;
    } else if (characters !== undefined) {
      const resolved = resolveReferences(characters);
      if (resolved === undefined) return undefined;
      current.text += resolved;
    } else if (qualifiedName !== undefined) {
      const name = qualifiedName.slice(qualifiedName.indexOf(":") + 1);
      if (closes === "/") {
        if (current === document || current.name !== name || attributes !== "" || isEmpty === "/") {
          return undefined;
        }
        open.pop();
      } else {
        const element: OpenElement = { name, children: [], text: "" };
        current.children.push(element);
        if (isEmpty !== "/") open.push(element);
      }
    }
  }
  const isWhole = open.length === 1 && document.children.length === 1 && document.text.trim() === "";
  return isWhole ? document.children[0] : undefined;
}

interface OpenElement extends XmlElement {
  readonly children: OpenElement[];
  text: string;
}

/** Returns undefined if a reference is unknown. */
function resolveReferences(text: string): string | undefined {
  if (!text.includes("&")) return text;
  let isKnown = true;
  const resolved = text.replace(
    /&(?:#x([0-9a-f]{1,6})|#([0-9]{1,7})|([a-z]+));|&/gi,
    (_, hex?: string, decimal?: string, name?: string) => {
      const code = Number.parseInt(hex ?? decimal ?? "", hex === undefined ? 10 : 16);
      const character =
        name === undefined ? (code <= 0x10ffff ? String.fromCodePoint(code) : undefined) : ENTITIES[name];
      isKnown &&= character !== undefined;
      return character ?? "";
    },
  );
  return isKnown ? resolved : undefined;
}
