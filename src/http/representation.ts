import { createBoundedMap } from "../collections/bounded-map.js";
import { ZpublishError } from "../errors.js";
import { rangeNotSatisfiable } from "./error-reply.js";
import { type Exchange, withVary, writeHead } from "./exchange.js";
import { type HeaderLines, parseWeights, statusLine } from "./headers.js";
import type {
  Body,
  BodyReply,
  ByteRange,
  ContentCoding,
  DocumentReply,
  ElsewhereReply,
  ElsewhereUrl,
  HeaderContext,
  RouteRequest,
  StreamReply,
} from "./reply.js";
import { createStreamBody } from "./stream-reply.js";

/** Header values of one representation. */
interface HeadFields {
  /** Strong, with its quotes; undefined if there are neither conditions nor ranges. */
  readonly etag?: string | undefined;
  /** Whether ranges are answered. Default true. */
  readonly isRanged?: boolean;
  readonly contentType: string;
  /** Default: the server's. */
  readonly cacheControl?: string | undefined;
  readonly contentEncoding?: string | undefined;
  /** Request headers, besides `Origin`, that the choice of this representation depends on. */
  readonly vary?: string;
  /** Whether the body contains the service's address, which a proxy's headers may have named. */
  readonly quotesAddress?: boolean | undefined;
  readonly headers?: HeaderLines | undefined;
}

/** Header lines of one representation: the same lists for all answers of an app. */
class RepresentationHead {
  readonly #fields: HeadFields;
  #context: HeaderContext | undefined;
  #ok: HeaderLines | undefined;
  #notModified: HeaderLines | undefined;

  constructor(fields: HeadFields) {
    this.#fields = fields;
  }

  /** Returns the lines of 200 and 206. */
  ok(context: HeaderContext): HeaderLines {
    this.#useContext(context);
    const { contentType, contentEncoding } = this.#fields;
    this.#ok ??= this.#lines(context, contentType, contentEncoding);
    return this.#ok;
  }

  /** Returns the lines of 304. */
  notModified(context: HeaderContext): HeaderLines {
    this.#useContext(context);
    this.#notModified ??= this.#lines(context);
    return this.#notModified;
  }

  #useContext(context: HeaderContext): void {
    if (this.#context === context) return;
    this.#context = context;
    this.#ok = undefined;
    this.#notModified = undefined;
  }

  #lines({ access, cacheControl: byDefault }: HeaderContext, type?: string, coding?: string): HeaderLines {
    const { etag, isRanged = true, cacheControl = byDefault, quotesAddress, headers } = this.#fields;
    const allowed = quotesAddress
      ? access.cacheControlOfAddress(cacheControl)
      : access.cacheControlOf(cacheControl);
    const lines: [string, string][] = etag === undefined ? [] : [["ETag", etag]];
    lines.push(["Cache-Control", allowed]);
    if (etag !== undefined && isRanged) lines.push(["Accept-Ranges", "bytes"]);
    for (const [name, value] of headers ?? []) lines.push([name, value]);
    if (type !== undefined) lines.push(["Content-Type", type]);
    if (coding !== undefined) lines.push(["Content-Encoding", coding]);
    return Object.freeze(withVary(lines, this.#fields.vary ?? "", access.vary));
  }
}

/** What is sent: headers, and bytes that are at hand or made if the request's conditions ask for them. */
interface Representation {
  /** Undefined if there are neither conditions nor ranges. */
  readonly etag: string | undefined;
  /** ETags that `If-Match` may name. Default: `etag`. */
  readonly etags?: readonly string[] | undefined;
  readonly head: RepresentationHead;
  /** Status line if the whole is sent. Default: 200 OK. With another one there are neither conditions nor ranges. */
  readonly status?: string | undefined;
  /** Whether it exists before its body is opened. Default: if its bytes are at hand. */
  readonly exists?: boolean;
  /** All bytes, if they are at hand and never change, or what makes them. */
  readonly content: Uint8Array | Pick<BodyReply, "open" | "elsewhere" | "cacheControl">;
}

/** Header lines of replies that are returned again. */
const heads = new WeakMap<BodyReply, RepresentationHead>();

/** Answers a request with a body that is made if its conditions ask for it; see {@link sendRepresentation}. */
export function sendBodyReply(exchange: Exchange, reply: BodyReply): void | Promise<void> {
  let head = heads.get(reply);
  if (head === undefined) {
    head = new RepresentationHead(reply.elsewhere === undefined ? reply : { ...reply, vary: "Prefer" });
    heads.set(reply, head);
  }
  return sendRepresentation(exchange, { etag: reply.etag, head, content: reply });
}

/**
 * Answers a request: conditions, then the body, then the range of it. The order of conditions is that of RFC 9110 §13.2.2.
 * @param range What the request asks for of this representation; null if all of it. Default: what its headers say.
 * @throws ZpublishError what the conditions demand, or what opening the body threw
 */
export function sendRepresentation(
  exchange: Exchange,
  what: Representation,
  range?: RangeRequest | null,
): void | Promise<void> {
  const { content, etag, exists = content instanceof Uint8Array } = what;
  const isConditional = etag !== undefined && what.status === undefined && exchange.method !== "POST";
  const noneMatch = isConditional ? checkConditions(exchange, etag, what.etags) : "no-match";
  if (noneMatch === "match" || (noneMatch === "any" && exists)) {
    sendNotModified(exchange, what);
    return undefined;
  }
  const wanted = isConditional && range === undefined ? requestedRange(exchange, etag) : range;
  const asked = isConditional ? (wanted ?? undefined) : undefined;
  if (content instanceof Uint8Array) {
    sendBytes(exchange, what, content, asked);
    return undefined;
  }
  if (content.elsewhere !== undefined && isRedirectable(exchange, noneMatch, asked))
    return content.elsewhere().then((found) => {
      if (exchange.over) return undefined;
      if (found === undefined) return sendOpened(exchange, what, content, noneMatch, asked);
      return sendElsewhere(exchange, found, content.cacheControl);
    });
  return sendOpened(exchange, what, content, noneMatch, asked);
}

/** Opens a body and sends what is asked for of it. */
function sendOpened(
  exchange: Exchange,
  what: Representation,
  content: Pick<BodyReply, "open">,
  noneMatch: TagMatch,
  asked: RangeRequest | undefined,
): void | Promise<void> {
  const send = (body: Body) => {
    exchange.own(body);
    if (exchange.over) return;
    if (noneMatch === "any") sendNotModified(exchange, what);
    else sendBody(exchange, what, content, body, asked);
  };
  const isBodiless = noneMatch === "any" || exchange.method === "HEAD";
  const body = content.open(exchange, (byteLength) =>
    isBodiless ? { start: 0, byteLength: 0 } : (partOf(byteLength, asked) ?? { start: 0, byteLength }),
  );
  if (body instanceof Promise) return body.then(send);
  send(body);
  return undefined;
}

/**
 * Evaluates `If-Match` and `If-None-Match`. `any` is `If-None-Match: *`, which holds if the body can be opened.
 * @throws ZpublishError `precondition-failed`
 */
function checkConditions(exchange: Exchange, etag: string, etags: readonly string[] = [etag]): TagMatch {
  const ifMatch = exchange.header("if-match");
  if (ifMatch !== undefined && matchIfMatch(ifMatch, etags) === "no-match")
    throw new ZpublishError("precondition-failed", "The resource is not the one that If-Match names");
  const ifNoneMatch = exchange.header("if-none-match");
  return ifNoneMatch === undefined ? "no-match" : matchIfNoneMatch(ifNoneMatch, etag);
}

function sendNotModified(exchange: Exchange, { head }: Representation): void {
  exchange.cork(() => {
    writeHead(exchange, "304 Not Modified", head.notModified(exchange.context));
    exchange.endBodiless();
  });
}

/** Sends the client of a body that nothing is known of to another server, or looks at the body. */
export async function sendElsewhereReply(exchange: Exchange, reply: ElsewhereReply): Promise<void> {
  const isPlain = ["if-none-match", "range"].every((name) => exchange.header(name) === undefined);
  const found = isPlain && isRedirectable(exchange, "no-match", undefined) ? await reply.find() : undefined;
  if (exchange.over) return;
  if (found !== undefined) sendElsewhere(exchange, found, reply.cacheControl);
  else await sendBodyReply(exchange, await reply.otherwise());
}

/** Tells whether a client may be sent to another server for a body. */
function isRedirectable(exchange: Exchange, noneMatch: TagMatch, asked: RangeRequest | undefined): boolean {
  if (exchange.method !== "GET" || noneMatch !== "no-match" || asked !== undefined) return false;
  // Clients would repeat it there, and the other server would compare it with its own entity tag.
  if (exchange.header("if-match") !== undefined) return false;
  return !/(^|[\s,;])respond-direct($|[\s,;])/i.test(exchange.header("prefer") ?? "");
}

function sendElsewhere(
  exchange: Exchange,
  { url, maxAgeSeconds }: ElsewhereUrl,
  cacheControl: string = exchange.context.cacheControl,
): void {
  // Those who may keep the body may keep its URL, but not for longer than it is valid.
  const [keptBy] = /\b(?:no-store|private)\b/i.exec(cacheControl) ?? ["public"];
  const asked = /no-store/i.test(keptBy) ? keptBy : `${keptBy}, max-age=${maxAgeSeconds}`;
  const { access } = exchange.context;
  const lines = [
    ["Location", url],
    ["Cache-Control", access.cacheControlOf(asked)],
  ] as const;
  exchange.cork(() => {
    // Not 307: GDAL follows 301 and 302 alone, and takes any other answer for fill values.
    writeHead(exchange, "302 Found", withVary(lines, "Prefer, Range", access.vary));
    exchange.endBodiless(0);
  });
}

function sendBytes(
  exchange: Exchange,
  what: Representation,
  bytes: Uint8Array,
  range: RangeRequest | undefined,
): void {
  const part = partOf(bytes.byteLength, range);
  exchange.cork(() => {
    writeContentHead(exchange, what, bytes.byteLength, part);
    if (exchange.method === "HEAD") exchange.endBodiless(bytes.byteLength);
    else if (part === undefined) exchange.endWith(bytes);
    else exchange.endWith(bytes.subarray(part.start, part.start + part.byteLength));
  });
}

function sendBody(
  exchange: Exchange,
  what: Representation,
  content: Pick<BodyReply, "open">,
  body: Body,
  range: RangeRequest | undefined,
): void {
  exchange.bodyHeaders = body.headers;
  const { byteLength } = body;
  const part = partOf(byteLength, range);
  const sent = part ?? { start: 0, byteLength };
  const isKnown = byteLength !== Number.POSITIVE_INFINITY;
  const end = sent.start + sent.byteLength;
  const reopen = (start: number) => content.open(exchange, () => ({ start, byteLength: end - start }));
  // Read in the turn in which it is sent: a view may be invalid in the next.
  const first = exchange.method === "HEAD" ? undefined : body.read(sent.start);
  const isGone = first === undefined || (first.byteLength === 0 && sent.byteLength > 0 && isKnown);
  if (exchange.method !== "HEAD" && isGone)
    throw new ZpublishError("source-changed", "The body was evicted before it could be sent");
  exchange.cork(() => {
    writeContentHead(exchange, what, byteLength, part, body.headers);
    if (first === undefined) exchange.endBodiless(isKnown ? byteLength : undefined);
    else exchange.context.sender.send({ exchange, body, ...sent, reopen }, first);
  });
}

/** The part of `totalBytes` to send; undefined if all. @throws ZpublishError `range-not-satisfiable` */
function partOf(totalBytes: number, range: RangeRequest | undefined): ByteRange | undefined {
  if (range === undefined || totalBytes === Number.POSITIVE_INFINITY) return undefined;
  const part = resolveRange(range, totalBytes);
  if (part === undefined) throw rangeNotSatisfiable(totalBytes);
  return part;
}

/** Writes the head of 200, or of 206 if a part is sent. */
function writeContentHead(
  exchange: Exchange,
  { head, status = "200 OK" }: Representation,
  totalBytes: number,
  part: ByteRange | undefined,
  more?: HeaderLines,
): void {
  const lines = head.ok(exchange.context);
  if (part === undefined) {
    writeHead(exchange, status, lines, more);
    return;
  }
  const contentRange = `bytes ${part.start}-${part.start + part.byteLength - 1}/${totalBytes}`;
  writeHead(exchange, "206 Partial Content", lines, [["Content-Range", contentRange], ...(more ?? [])]);
}

/** Result of comparing a list of entity tags with the current one. `any` stands for `*`, which matches anything that exists. */
type TagMatch = "match" | "no-match" | "any";

/** One tag of a list, with the comma and the space around it; RFC 9110 §8.8.3 allows nearly all characters inside. */
const ENTITY_TAG = /[\s,]*(W\/)?("[\x21\x23-\x7e\x80-\uffff]*")[ \t]*(?=,|$)/y;

/**
 * Compares an `If-None-Match` header, weakly (RFC 9110 §13.1.2): a tag that a proxy has weakened still names the same
 * content. Tags behind a malformed one are ignored.
 */
export function matchIfNoneMatch(header: string, etag: string): TagMatch {
  // Nearly all clients send the one tag that they have.
  return header === etag ? "match" : matchTags(header, (tag) => tag === etag);
}

/** Compares an `If-Match` header, strongly (§13.1.1): a weakened tag is no match. Any of `etags` will do. */
export function matchIfMatch(header: string, etags: readonly string[]): TagMatch {
  return matchTags(header, (tag, weak) => !weak && etags.includes(tag));
}

/** Whether an `If-Range` header allows a range (§13.1.5). A date never does: no answer has Last-Modified. */
export function allowsRange(header: string, etag: string): boolean {
  return header.trim() === etag;
}

function matchTags(header: string, matches: (tag: string, weak: boolean) => boolean): TagMatch {
  if (header.trim() === "*") return "any";
  ENTITY_TAG.lastIndex = 0;
  for (let found = ENTITY_TAG.exec(header); found !== null; found = ENTITY_TAG.exec(header)) {
    if (matches(found[2] ?? "", found[1] !== undefined)) return "match";
  }
  return "no-match";
}

/** What a `Range` header asks for: bytes `first` to `last` inclusive, or the last `suffix` bytes. */
type RangeRequest = { readonly first: number; readonly last: number } | { readonly suffix: number };

// Any number of digits: some clients write 2^64 - 1 for "to the end". Numbers too great to be exact are past any end.
const SINGLE_RANGE = /^bytes[ \t]*=[ \t,]*(\d*)-(\d*)[ \t,]*$/i;

/**
 * Parses a `Range` header; undefined if it is to be ignored and the whole is sent (RFC 9110 §14.2): an unknown unit,
 * several ranges, nonsense.
 */
export function parseRange(header: string): RangeRequest | undefined {
  const match = SINGLE_RANGE.exec(header);
  if (match === null) return undefined;
  const [, first = "", last = ""] = match;
  if (first === "") return last === "" ? undefined : { suffix: Number(last) };
  const range = { first: Number(first), last: last === "" ? Number.POSITIVE_INFINITY : Number(last) };
  return range.first > range.last ? undefined : range;
}

/** Returns the range that a request asks for of content with this ETag; undefined if the whole is to be sent. */
export function requestedRange(
  request: { readonly method: string; header(name: string): string | undefined },
  etag: string,
): RangeRequest | undefined {
  const header = request.method === "GET" ? request.header("range") : undefined;
  if (header === undefined) return undefined;
  const ifRange = request.header("if-range");
  return ifRange === undefined || allowsRange(ifRange, etag) ? parseRange(header) : undefined;
}

/** Returns the requested part of a body of `totalBytes`, clamped to its end; undefined if it is empty, which is answered 416. */
export function resolveRange(range: RangeRequest, totalBytes: number): ByteRange | undefined {
  if ("suffix" in range) {
    const byteLength = Math.min(range.suffix, totalBytes);
    return byteLength === 0 ? undefined : { start: totalBytes - byteLength, byteLength };
  }
  if (range.first >= totalBytes) return undefined;
  return { start: range.first, byteLength: Math.min(range.last, totalBytes - 1) - range.first + 1 };
}

type Coding = ContentCoding | "identity";

/** Entity tags of the codings of a representation. All of them match `If-Match`: a client may ask for another coding than before. */
function etagsOf(etag: string): Readonly<Record<Coding, string>> {
  const begin = etag.slice(0, -1);
  return { identity: etag, br: `${begin}-br"`, gzip: `${begin}-gz"` };
}

/** Status line of a reply that is not answered 200; undefined for 200. */
function ownStatus(status = 200): string | undefined {
  return status === 200 ? undefined : statusLine(status);
}

/** Media types that are compressed while they are sent. */
const TEXT = /^text\/|[/+](?:json|xml)\b/;

/** Answers a request with a body that is made while it is sent; see {@link sendRepresentation}. */
export function sendStreamReply(exchange: Exchange, reply: StreamReply): void | Promise<void> {
  const {
    etag,
    contentType,
    isCompressible = reply.byteLength === undefined && TEXT.test(contentType),
  } = reply;
  // A part is one of the body as it is, and HEAD tells its length.
  const isPlain = exchange.header("range") !== undefined || exchange.method === "HEAD";
  const isCoded = isCompressible && !(isPlain && reply.byteLength !== undefined);
  const coding = isCoded ? negotiateCoding(exchange.header("accept-encoding")) : "identity";
  const byteLength = coding === "identity" ? reply.byteLength : undefined;
  const isRanged = etag !== undefined && byteLength !== undefined;
  const etags = etag === undefined ? undefined : etagsOf(etag);
  const head = new RepresentationHead({
    ...{ contentType, isRanged, etag: etags?.[coding], cacheControl: reply.cacheControl },
    contentEncoding: coding === "identity" ? undefined : coding,
    vary: isCompressible ? "Accept-Encoding" : "",
    quotesAddress: reply.quotesAddress,
    headers: reply.headers,
  });
  const what: Representation = {
    ...{ head, etag: etags?.[coding], etags: etags && Object.values(etags) },
    status: ownStatus(reply.status),
    exists: true,
    content: createStreamBody(reply, coding),
  };
  return sendRepresentation(exchange, what, isRanged ? undefined : null);
}

/**
 * Chooses the coding of a document by the request's headers; a promise while it is compressed for the first time.
 * @param isRanged Whether the request asks for a part, whose offsets are those of the document as it is.
 */
export function negotiateDocument(
  request: Pick<RouteRequest, "header">,
  reply: DocumentReply,
  isRanged: boolean,
): Representation | Promise<Representation> {
  const { document } = reply;
  const coding = isRanged ? "identity" : negotiateCoding(request.header("accept-encoding"));
  if (coding === "identity") return variantOf(reply, coding, document.bytes);
  const known = variants.get(reply)?.get(coding);
  if (known !== undefined) return known;
  const choose = (encoded: Uint8Array | undefined) =>
    encoded === undefined ? variantOf(reply, "identity", document.bytes) : variantOf(reply, coding, encoded);
  const encoded = document.encoded(coding);
  return encoded instanceof Promise ? encoded.then(choose) : choose(encoded);
}

/** Forms of replies that are returned again. */
const variants = new WeakMap<DocumentReply, Map<Coding, Representation>>();

function variantOf(reply: DocumentReply, coding: Coding, bytes: Uint8Array): Representation {
  const ofReply = variants.get(reply) ?? new Map<Coding, Representation>();
  const known = ofReply.get(coding);
  if (known !== undefined) return known;
  const { document, ...given } = reply;
  const etags = etagsOf(document.etag);
  const variant = {
    etag: etags[coding],
    etags: Object.values(etags),
    status: ownStatus(reply.status),
    content: bytes,
    head: new RepresentationHead({
      ...given,
      etag: etags[coding],
      contentType: document.contentType,
      contentEncoding: coding === "identity" ? undefined : coding,
      vary: "Accept-Encoding",
    }),
  };
  variants.set(reply, ofReply.set(coding, variant));
  return variant;
}

/** Results by header value: clients send few different ones. */
const remembered = createBoundedMap<Coding>({ maxEntries: 200 });

/**
 * Chooses the content coding of an answer by an `Accept-Encoding` header: the one with the greatest weight, brotli before gzip
 * before none. Without the header, or if it excludes all codings (`identity;q=0`), it is `identity`: RFC 9110 §12.5.3 permits that,
 * and it serves a client better than a 406.
 */
export function negotiateCoding(acceptEncoding: string | undefined): Coding {
  if (acceptEncoding === undefined) return "identity";
  const known = remembered.get(acceptEncoding);
  if (known !== undefined) return known;
  const coding = chooseCoding(parseWeights(acceptEncoding));
  if (acceptEncoding.length <= 200) remembered.set(acceptEncoding, coding);
  return coding;
}

function chooseCoding(weights: ReadonlyMap<string, number>): Coding {
  const others = weights.get("*") ?? 0;
  const br = weights.get("br") ?? others;
  const gzip = weights.get("gzip") ?? weights.get("x-gzip") ?? others;
  // Acceptable unless excluded, but preferred to named codings only if it is named too.
  const identity = weights.get("identity") ?? 0;
  if (br > 0 && br >= gzip && br >= identity) return "br";
  if (gzip > 0 && gzip >= identity) return "gzip";
  return "identity";
}
