import type { Document } from "./document.js";

/** A request as a plugin sees it. */
export interface RouteRequest {
  readonly method: "GET" | "HEAD";
  /** Percent-decoded path parameters by name; a `{name:path}` parameter keeps its slashes as they came. */
  readonly params: Readonly<Record<string, string>>;
  /** As it came: percent-encoded, without query, root path removed. */
  readonly rawPath: string;
  /** Without the question mark; empty where there is none. */
  readonly query: string;
  /**
   * Absolute URL of the service as the client sees it, without a slash at its end: `https://data.example/prefix`. Only
   * what proxies say that are trusted counts, besides the request's own `Host`.
   */
  readonly serviceUrl: string;
  /**
   * A request header by lower-case name, the first of several; undefined where it was not sent, or is empty.
   * @throws Error once the request is answered.
   */
  header(name: string): string | undefined;
}

/**
 * What a handler answers. HEAD, ranges, conditions, compression and CORS are the HTTP layer's work. A handler that
 * has nothing to answer throws a ZpublishError (`not-found`, …).
 */
export type Reply = DocumentReply | BodyReply | RedirectReply;

/** A page or metadata document, prepared before it was asked for. */
export interface DocumentReply {
  readonly kind: "document";
  readonly document: Document;
  readonly cacheControl?: string;
  /** Whether it holds {@link RouteRequest.serviceUrl}. Default false. */
  readonly quotesAddress?: boolean;
  /** See {@link BodyReply.isCurrent}. */
  isCurrent?(): boolean;
}

/** A body that costs something to make, such as a chunk: made only when the request's conditions ask for it. */
export interface BodyReply {
  readonly kind: "body";
  readonly contentType: string;
  /** Strong, with its quotes; known without making the body. */
  readonly etag: string;
  readonly cacheControl?: string;
  /**
   * Whether the handler would answer the same to the same path now. Where it is there, the reply is kept, and while it
   * says yes, later requests of that path are answered with it without asking router and handler. Must not be there
   * where the reply depends on anything of the request but its path.
   */
  isCurrent?(): boolean;
  /** About as many bytes as the body has, before it is made: so much room is kept for it. Default 1 MiB. */
  readonly expectedByteLength?: number;
  /**
   * The body where it is at hand and takes no memory (a view of a cache), so that it has to wait for nothing; undefined:
   * `open()` it. What it reads first is read before anything else runs.
   */
  atHand?(): Body | undefined;
  /**
   * Makes the body.
   * @param isWanted Whether the client still waits for it: where not, it need not be made, and anything may be thrown.
   * @throws ZpublishError; `not-found` where the chunk is absent.
   */
  open(isWanted?: () => boolean): Promise<Body>;
  /**
   * Byte length for HEAD where it can be had for less than `open()`; undefined: `open()` it.
   * @throws ZpublishError `not-found` where the chunk is absent.
   */
  byteLength?(): Promise<number | undefined>;
  /** What `Body.headers` would be, for HEAD where `byteLength` is known. Default: none. */
  headers?(): Body["headers"];
}

export interface Body {
  readonly byteLength: number;
  /** Bytes that are kept in memory until all is sent. Default: all; a view of a cache keeps none. */
  readonly heldByteLength?: number;
  /** Called once when nothing will be read from it any more, so that its memory can be used for another. */
  release?(): void;
  /** Extra headers: `Server-Timing`, `X-Cache`. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /**
   * The bytes from `offset` to the end, as a view that is valid only until the caller returns to the event loop: what
   * the socket does not take at once is read again when it can take more, not copied. Undefined: no longer at hand
   * (evicted meanwhile); `open()` the reply again, which gives the same bytes or throws.
   */
  read(offset: number): Uint8Array | undefined;
}

export interface RedirectReply {
  readonly kind: "redirect";
  /** 301 to the same path with a slash behind it: the HTTP layer knows prefix and query. */
  readonly to: "with-slash";
}
