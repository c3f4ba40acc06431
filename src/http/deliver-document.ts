import { ZpublishError } from "../errors.js";
import { allowsRange, matchIfMatch, matchIfNoneMatch } from "./conditional.js";
import type { ContentCoding, Document } from "./document.js";
import type { Exchange } from "./exchange.js";
import { headerField } from "./header-field.js";
import { KeptFields } from "./kept-fields.js";
import { negotiateCoding } from "./negotiate.js";
import { parseRange, type RangeRequest, resolveRange } from "./range.js";
import type { DocumentReply } from "./reply.js";
import { rangeNotSatisfiable } from "./send-error.js";

const VARY = "Accept-Encoding";
const ETAG_SUFFIXES: Readonly<Record<ContentCoding | "identity", string>> = {
  identity: "",
  br: "-br",
  gzip: "-gz",
};

/**
 * Answers with a document: at once, unless it has to be compressed first.
 * @throws ZpublishError what the conditions of the request say
 */
export function deliverDocument(exchange: Exchange, reply: DocumentReply): void | Promise<void> {
  const { document } = reply;
  const ifMatch = exchange.header("if-match");
  if (ifMatch !== undefined) checkIfMatch(ifMatch, document.etag);
  const range = rangeOf(exchange, document.etag);
  const ifNoneMatch = exchange.header("if-none-match");
  const coding = range === undefined ? negotiateCoding(exchange.header("accept-encoding")) : "identity";
  if (coding === "identity") return send(exchange, reply, ifNoneMatch, coding, document.bytes, range);
  const encoded = document.encodedNow(coding);
  if (encoded !== null) return sendEncoded(exchange, reply, ifNoneMatch, coding, encoded);
  return document.encoded(coding).then((bytes) => {
    exchange.cork(() => sendEncoded(exchange, reply, ifNoneMatch, coding, bytes));
  });
}

/** What the request asks a part of; undefined where the whole is to be sent. */
function rangeOf(exchange: Exchange, etag: string): RangeRequest | undefined {
  if (exchange.method !== "GET") return undefined;
  const header = exchange.header("range");
  if (header === undefined) return undefined;
  const ifRange = exchange.header("if-range");
  return ifRange === undefined || allowsRange(ifRange, etag) ? parseRange(header) : undefined;
}

/**
 * Any form of the document will do: a client that has seen it uncompressed and asks again accepting compression means
 * the same document, and this protects nothing that could be written over.
 */
function checkIfMatch(header: string, etag: string): void {
  const etags = Object.values(ETAG_SUFFIXES).map((suffix) => withSuffix(etag, suffix));
  if (matchIfMatch(header, etags) === "no-match") {
    throw new ZpublishError("precondition-failed", "The document is not the one that If-Match names");
  }
}

function sendEncoded(
  exchange: Exchange,
  reply: DocumentReply,
  ifNoneMatch: string | undefined,
  coding: ContentCoding,
  encoded: Uint8Array | undefined,
): void {
  if (encoded === undefined) send(exchange, reply, ifNoneMatch, "identity", reply.document.bytes, undefined);
  else send(exchange, reply, ifNoneMatch, coding, encoded, undefined);
}

function send(
  exchange: Exchange,
  reply: DocumentReply,
  ifNoneMatch: string | undefined,
  coding: ContentCoding | "identity",
  bytes: Uint8Array,
  range: RangeRequest | undefined,
): void {
  const { document } = reply;
  const { cacheControl, edge } = exchange.context;
  const asked = reply.cacheControl ?? cacheControl;
  const kept = reply.quotesAddress ? edge.cacheControlOfAddress(asked) : edge.cacheControlOf(asked);
  const head = headOf(document, coding, kept);
  if (ifNoneMatch !== undefined && matchIfNoneMatch(ifNoneMatch, head.etag) !== "no-match") {
    exchange.writeKeptHead("304 Not Modified", head.validators);
    exchange.endBodiless();
    return;
  }
  let start = 0;
  let byteLength = bytes.byteLength;
  if (range === undefined) {
    exchange.writeKeptHead("200 OK", head.fields);
  } else {
    const part = resolveRange(range, bytes.byteLength);
    if (part === undefined) throw rangeNotSatisfiable(bytes.byteLength);
    ({ start, byteLength } = part);
    const contentRange = `bytes ${start}-${start + byteLength - 1}/${bytes.byteLength}`;
    const fields = head.fields.text() + headerField("Content-Range", contentRange);
    exchange.writeHead("206 Partial Content", fields, VARY);
  }
  if (exchange.method === "HEAD") {
    exchange.endHead(byteLength);
    return;
  }
  exchange.endWith(range === undefined ? bytes : bytes.subarray(start, start + byteLength));
}

/** Header lines of a document in one coding. */
interface DocumentHead {
  readonly cacheControl: string;
  readonly etag: string;
  /** Of 304. */
  readonly validators: KeptFields;
  /** Of 200 and 206. */
  readonly fields: KeptFields;
}

/** Of each document in each coding, as it was sent last: they rarely change, and are checked when they are made. */
const heads = new WeakMap<Document, Map<ContentCoding | "identity", DocumentHead>>();

function headOf(document: Document, coding: ContentCoding | "identity", cacheControl: string): DocumentHead {
  let ofDocument = heads.get(document);
  if (ofDocument === undefined) {
    ofDocument = new Map();
    heads.set(document, ofDocument);
  }
  const known = ofDocument.get(coding);
  if (known?.cacheControl === cacheControl) return known;
  const etag = withSuffix(document.etag, ETAG_SUFFIXES[coding]);
  const validators =
    headerField("ETag", etag) +
    headerField("Cache-Control", cacheControl) +
    headerField("Accept-Ranges", "bytes");
  const encoding = coding === "identity" ? "" : headerField("Content-Encoding", coding);
  const fields = validators + headerField("Content-Type", document.contentType) + encoding;
  const head = {
    cacheControl,
    etag,
    validators: new KeptFields(() => validators, VARY),
    fields: new KeptFields(() => fields, VARY),
  };
  ofDocument.set(coding, head);
  return head;
}

function withSuffix(etag: string, suffix: string): string {
  return suffix === "" ? etag : `${etag.slice(0, -1)}${suffix}"`;
}
