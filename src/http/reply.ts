import type { ErrorCode } from "../errors.js";
import type { AccessRules } from "./access/access-rules.js";
import type { Cors, HeaderLines } from "./headers.js";

/** A request as a plugin sees it. */
export interface RouteRequest {
  readonly method: "GET" | "HEAD" | "POST";
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
   * Returns the body of a POST, the same at each call; empty if there is none.
   * @throws ZpublishError `too-large` if it is longer than `Route.maxBodyBytes`, `cancelled` if the client goes.
   */
  body(): Promise<Uint8Array>;
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
export type Reply = DocumentReply | BodyReply | ElsewhereReply | StreamReply | RedirectReply;

/** Content codings of the compressed forms of a document. */
export type ContentCoding = "br" | "gzip";

/** Immutable bytes to be sent often, with their ETag and, once a client accepts them, their compressed forms. */
export interface Document {
  readonly contentType: string;
  readonly bytes: Uint8Array;
  /** Strong, quoted, computed from the content: the same on every instance. */
  readonly etag: string;
  /**
   * Returns the compressed form, made at the first call and kept; undefined if compression does not pay (up to 1 KiB, or no
   * gain). Never rejects.
   */
  encoded(coding: ContentCoding): Uint8Array | undefined | Promise<Uint8Array | undefined>;
}

/** A page or metadata document, prepared before it was requested. */
export interface DocumentReply {
  readonly kind: "document";
  readonly document: Document;
  readonly cacheControl?: string;
  /** Whether the document contains {@link RouteRequest.serviceUrl}. Default false. */
  readonly quotesAddress?: boolean;
  /** Further headers, such as a page's policies. The same object each time: headers are encoded once for each. */
  readonly headers?: HeaderLines;
  /** Default 200. With another one, conditions and ranges of the request are ignored. */
  readonly status?: number;
}

/**
 * A representation whose body costs something to make, such as a chunk: made only if the request's conditions ask for it. Headers of a
 * reply that is returned again are encoded once.
 */
export interface BodyReply {
  readonly kind: "body";
  readonly contentType: string;
  /** Strong, with its quotes; known without making the body. */
  readonly etag: string;
  readonly cacheControl?: string;
  /** Further headers. */
  readonly headers?: HeaderLines;
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

/** A body that another server may have, of which nothing is known here yet: a request that could be redirected is, without asking. */
export interface ElsewhereReply {
  readonly kind: "elsewhere";
  readonly cacheControl: string | undefined;
  /** As {@link BodyReply.elsewhere}. */
  readonly find: () => Promise<ElsewhereUrl | undefined>;
  /** Returns the reply for all other requests, and if there is no URL. */
  readonly otherwise: () => BodyReply | Promise<BodyReply>;
}

/**
 * A body that is made while it is sent. HEAD, conditions, ranges and compression are the HTTP layer's work: nothing is made for HEAD,
 * 304, 412 and 416.
 */
export interface StreamReply {
  readonly kind: "stream";
  readonly contentType: string;
  /** Default 200. With another one, conditions and ranges of the request are ignored. */
  readonly status?: number;
  readonly headers?: HeaderLines;
  /** Strong, with its quotes; known without making the body. Without one, there are neither conditions nor ranges. */
  readonly etag?: string;
  readonly cacheControl?: string;
  /** Whether the body contains {@link RouteRequest.serviceUrl}. Default false. */
  readonly quotesAddress?: boolean;
  /**
   * Bytes of the whole body. Undefined if it is not known: the answer is then sent in HTTP/1.1's chunked coding, without ranges. Text,
   * JSON and XML of unknown length are compressed if the client accepts that.
   */
  readonly byteLength?: number | undefined;
  /**
   * Whether the body is sent compressed, without its length and without ranges, to clients that accept that and ask for no range. Default:
   * text, JSON and XML of unknown length are.
   */
  readonly isCompressible?: boolean;
  /** Bytes of memory that the stream takes while it is sent, pieces made ahead included; the request waits for room. Default 4 MiB. */
  readonly heldByteLength?: number | undefined;
  /**
   * Makes the pieces, of any length, at most some megabytes each. The next one is asked for when the client has taken the one before,
   * whose memory may then be used again.
   * An error before the first piece is answered as any other; a later one breaks the connection, since a body must not end early and
   * look complete. So does a sum of bytes other than expected.
   * @param range What to send of a body of known length; undefined if all.
   * @param client Once its `signal` aborts, the pieces are not wanted any more, and anything may be thrown.
   */
  readonly pieces: (range: ByteRange | undefined, client: BodyClient) => AsyncIterable<Uint8Array>;
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
  /** Infinity if it is not known: then `read` returns an empty view at the end. */
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

/** A redirect to the same path with a slash behind it (301, the HTTP layer adds root path and query), or to another URL. */
export interface RedirectReply {
  readonly kind: "redirect";
  readonly to: "with-slash" | { readonly url: string; readonly status: 301 | 302 | 303 | 307 | 308 };
}

/** An error as a client may see it. It names nothing of the machine. */
export interface ErrorFacts {
  /** `404 Not Found`. */
  readonly status: string;
  readonly code: ErrorCode;
  /** What programs get as `detail`. */
  readonly detail: string;
  /** Why a dataset cannot be opened; undefined if nothing more may be said. */
  readonly reason: string | undefined;
  /** The parameter that is wrong, and the kind of error as in {@link "./query.js".wrongParameter}; undefined if none is. */
  readonly parameter: { readonly name: string; readonly type: string } | undefined;
  /** Id of the request, by which the log says more. */
  readonly requestId: string;
  /** Id of the dataset that the request is about; undefined if it is about none. */
  readonly datasetId: string | undefined;
  /** Relative link from the page to the root of the service. */
  readonly root: string;
  /** The path as it came, percent-encoded. */
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
}

/** An error as a plugin writes it for clients of its protocol. */
export interface ErrorReply {
  /** Default: that of the error. */
  readonly status?: number;
  readonly contentType: string;
  readonly body: string | Uint8Array;
  readonly headers?: HeaderLines;
}

/** Renders the page about an error. */
export type RenderErrorPage = (error: ErrorFacts) => { readonly html: string; readonly headers: HeaderLines };

/** What the header lines of all answers of one app depend on. */
export interface HeaderContext {
  readonly cors: Cors;
  /** `Cache-Control` of replies without one. */
  readonly cacheControl: string;
  readonly access: AccessRules;
  /** Renders errors for browsers; undefined if they get JSON as all others. */
  readonly errorPage: RenderErrorPage | undefined;
  /** The server's, which changes when it drains: then connections end with their current answer. */
  readonly state: { readonly isDraining: boolean };
}
