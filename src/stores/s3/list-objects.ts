import { ZpublishError } from "../../errors.js";
import { parseXml, type XmlElement } from "./parse-xml.js";
import { encodeStrictly } from "./sign-v4.js";

/** Part of the names directly below a prefix, as one answer of S3 lists them. */
export interface ListingPage {
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
