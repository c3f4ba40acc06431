import { ZpublishError } from "../errors.js";
import { allowsRange, matchIfMatch, matchIfNoneMatch } from "./conditional.js";
import type { ContentCoding } from "./document.js";
import type { Exchange } from "./exchange.js";
import { headerField } from "./header-field.js";
import { negotiateCoding } from "./negotiate.js";
import { parseRange, type RangeRequest, resolveRange } from "./range.js";
import type { Body, DocumentReply } from "./reply.js";
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
  const etag = withSuffix(document.etag, ETAG_SUFFIXES[coding]);
  let fields =
    headerField("ETag", etag) +
    headerField("Cache-Control", reply.cacheControl ?? exchange.context.cacheControl) +
    headerField("Accept-Ranges", "bytes");
  if (ifNoneMatch !== undefined && matchIfNoneMatch(ifNoneMatch, etag) !== "no-match") {
    exchange.writeHead("304 Not Modified", fields, VARY);
    exchange.endBodiless();
    return;
  }
  fields += headerField("Content-Type", document.contentType);
  if (coding !== "identity") fields += headerField("Content-Encoding", coding);
  let start = 0;
  let byteLength = bytes.byteLength;
  let status = "200 OK";
  if (range !== undefined) {
    const part = resolveRange(range, bytes.byteLength);
    if (part === undefined) throw rangeNotSatisfiable(bytes.byteLength);
    ({ start, byteLength } = part);
    status = "206 Partial Content";
    fields += headerField("Content-Range", `bytes ${start}-${start + byteLength - 1}/${bytes.byteLength}`);
  }
  exchange.writeHead(status, fields, VARY);
  if (exchange.method === "HEAD") {
    exchange.endHead(byteLength);
    return;
  }
  const body = bodyOf(bytes);
  const transfer = { exchange, body, start, byteLength, reopen: async () => body };
  exchange.context.sender.send(transfer, bytes.subarray(start));
}

function bodyOf(bytes: Uint8Array): Body {
  return { byteLength: bytes.byteLength, headers: [], read: (offset) => bytes.subarray(offset) };
}

function withSuffix(etag: string, suffix: string): string {
  return suffix === "" ? etag : `${etag.slice(0, -1)}${suffix}"`;
}
