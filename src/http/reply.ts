import type { AccessRules } from "./access/access-rules.js";
import { type Cors, type Document, type HeaderLines, headerField, joinVary } from "./headers.js";

/** A request as a plugin sees it. */
export interface RouteRequest {
  readonly method: "GET" | "HEAD";
  /** Percent-decoded path parameters by name; a `{name:path}` parameter keeps its slashes as they came. */
  readonly params: Readonly<Record<string, string>>;
  /** The path as it came: percent-encoded, without query, root path removed. */
  readonly rawPath: string;
  /** Without the question mark; empty if there is none. */
  readonly query: string;
  /**
   * Absolute URL of the service as the client sees it, without a slash at its end: `https://data.example/prefix`. Besides
   * the request's own `Host`, only headers of trusted proxies count.
   */
  readonly serviceUrl: string;
  /** Aborts when the request is over: answered, or its client has gone. */
  readonly signal: AbortSignal;
  /**
   * Reserves memory for a body that is about to be made; resolves, or is undefined, when there is room. What was reserved
   * is free again when the answer is sent.
   */
  reserve(byteLength: number): Promise<void> | undefined;
  /**
   * Returns a request header by lower-case name, the first of several; undefined if it was not sent, or is empty.
   * @throws Error once the request is answered.
   */
  header(name: string): string | undefined;
}

/**
 * What a handler answers with. HEAD, ranges, conditions, compression and CORS are the HTTP layer's work. A handler that
 * has nothing to answer throws a ZpublishError (`not-found`, …).
 */
export type Reply = DocumentReply | BodyReply | RedirectReply;

/** A page or metadata document, prepared before it was requested. */
export interface DocumentReply {
  readonly kind: "document";
  readonly document: Document;
  readonly cacheControl?: string;
  /** Whether the document contains {@link RouteRequest.serviceUrl}. Default false. */
  readonly quotesAddress?: boolean;
  /** Further headers, such as a page's policies. The same object each time: headers are encoded once for each. */
  readonly headers?: HeaderLines;
}

/** A representation whose body costs something to make, such as a chunk: made only if the request's conditions ask for it. */
export interface BodyReply {
  readonly kind: "body";
  readonly contentType: string;
  /** Strong, with its quotes; known without making the body. */
  readonly etag: string;
  readonly cacheControl?: string;
  /** Header lines of this reply, encoded once; for a reply that is returned more than once. */
  readonly head?: RepresentationHead;
  /**
   * Makes the body. One that is returned at once is sent at once, so it may be a view that is valid in this turn only. One
   * that takes memory should be made after `request.reserve`.
   * @param request Once its `signal` aborts, anything may be thrown.
   * @param wanted Returns the part that is read first, none of it for HEAD. A long body may be made in pieces: it is opened
   * again, by another `wanted`, when `read` returns undefined.
   * @throws ZpublishError; `not-found` if the chunk is absent.
   */
  open(request: BodyClient, wanted: WantedPart): Body | Promise<Body>;
  /**
   * Returns a URL from which the client can fetch the whole body itself; undefined if there is none. GET is redirected there, unless
   * it asks for a range or with `Prefer: respond-direct`. Default: bodies are sent.
   */
  readonly elsewhere?: (() => Promise<ElsewhereUrl | undefined>) | undefined;
}

/** A URL of another server. */
export interface ElsewhereUrl {
  readonly url: string;
  /** Time for which an answer with the URL may be kept; the URL is valid for longer. */
  readonly maxAgeSeconds: number;
}

/** The client of a body that is made. */
export interface BodyClient extends Pick<RouteRequest, "signal" | "reserve"> {
  /** Whether part of the answer is written: the body is opened again for the rest. */
  readonly started: boolean;
}

/** Part of a body. */
export interface ByteRange {
  readonly start: number;
  readonly byteLength: number;
}

/** Returns a part of a body by its length. @throws ZpublishError `range-not-satisfiable` */
export type WantedPart = (byteLength: number) => ByteRange;

/** Bytes of an answer, read as fast as the client takes them. */
export interface Body {
  readonly byteLength: number;
  /** Bytes that stay in memory until all is sent. Default: all; a view of a cache holds none. */
  readonly heldByteLength?: number;
  /** Called once when nothing is read from the body any more, so that its memory can be used for another. */
  release?(): void;
  /** Extra headers: `Server-Timing`, `X-Cache`. */
  readonly headers: HeaderLines;
  /**
   * Returns the bytes from `offset` to the end, as a view that is valid until the caller returns to the event loop: what
   * the socket does not take at once is read again later, not copied. Undefined if the body is gone (evicted meanwhile);
   * then the reply is opened again, which gives the same bytes or throws.
   */
  read(offset: number): Uint8Array | undefined;
}

/** A redirect to the same path with a slash behind it (301); the HTTP layer adds root path and query. */
export interface RedirectReply {
  readonly kind: "redirect";
  readonly to: "with-slash";
}

/** What the header lines of all answers of one app depend on. */
export interface HeaderContext {
  readonly cors: Cors;
  /** `Cache-Control` of replies without one. */
  readonly cacheControl: string;
  readonly access: AccessRules;
  /** The server's, which changes when it drains: then connections end with their current answer. */
  readonly state: { readonly isDraining: boolean };
}

/** Several header lines packed into one `writeHeader` call: the first name, and a value that contains the rest. */
export interface PackedLines {
  /** All lines, each with its line break before it. */
  readonly text: string;
  readonly name: string;
  readonly value: Uint8Array;
}

/** Lists of headers that are sent often: they are frozen, and so packed once. */
const packed = new WeakMap<HeaderLines, PackedLines>();

/** Packs a body's headers; undefined if there are none. @throws ZpublishError as `headerField` does. */
export function packLines(headers: HeaderLines): PackedLines | undefined {
  const known = packed.get(headers);
  if (known !== undefined) return known;
  const first = headers[0];
  if (first === undefined) return undefined;
  let text = "";
  for (const [name, value] of headers) text += headerField(name, value);
  const name = first[0];
  const lines = { text, name, value: Buffer.from(text.slice(`\r\n${name}: `.length), "latin1") };
  if (Object.isFrozen(headers)) packed.set(headers, lines);
  return lines;
}

/** Header lines that are sent again and again, encoded once. uWebSockets.js would otherwise encode them for every answer. */
export class EncodedHeaders {
  /** Returns all lines, each with its line break before it. */
  readonly text: (context: HeaderContext) => string;
  /** What the answer depends on besides the origin. */
  readonly vary: string;
  #bytes: Uint8Array | undefined;
  #context: HeaderContext | undefined;

  constructor(text: (context: HeaderContext) => string, vary = "") {
    this.text = text;
    this.vary = vary;
  }

  /**
   * The value of the header `X-Content-Type-Options`, with all other lines behind it; undefined if answers differ: they
   * depend on the origin, or the connection is to end.
   */
  encoded(context: HeaderContext): Uint8Array | undefined {
    if (context.state.isDraining || context.cors.variesByOrigin) return undefined;
    if (this.#bytes === undefined || this.#context !== context) {
      const { cors, access } = context;
      const varies = joinVary(this.vary, access.vary);
      const vary = varies === "" ? "" : headerField("Vary", varies);
      const text = `nosniff${cors.fields(undefined)}${this.text(context)}${access.fields}${vary}`;
      this.#bytes = Buffer.from(text, "latin1");
      this.#context = context;
    }
    return this.#bytes;
  }
}

/** Header values of one representation. */
interface HeadFields {
  /** Strong, with its quotes. */
  readonly etag: string;
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

/** Header lines of one representation, put together when first sent. */
export class RepresentationHead {
  /** Lines of 304. */
  readonly notModified: EncodedHeaders;
  /** Lines of 200 and 206. */
  readonly ok: EncodedHeaders;

  constructor(fields: HeadFields) {
    const { contentType, contentEncoding, vary = "" } = fields;
    this.notModified = new EncodedHeaders((context) => validatorLines(fields, context), vary);
    this.ok = new EncodedHeaders(
      (context) =>
        validatorLines(fields, context) +
        headerField("Content-Type", contentType) +
        (contentEncoding === undefined ? "" : headerField("Content-Encoding", contentEncoding)),
      vary,
    );
  }
}

function validatorLines(
  { etag, cacheControl, quotesAddress, headers = [] }: HeadFields,
  context: HeaderContext,
): string {
  const { access } = context;
  const asked = cacheControl ?? context.cacheControl;
  return (
    headerField("ETag", etag) +
    headerField(
      "Cache-Control",
      quotesAddress ? access.cacheControlOfAddress(asked) : access.cacheControlOf(asked),
    ) +
    headerField("Accept-Ranges", "bytes") +
    headers.map(([name, value]) => headerField(name, value)).join("")
  );
}
