import { randomUUID } from "node:crypto";
import type { ListEntry } from "../collections/linked-list.js";
import { ZpublishError } from "../errors.js";
import { type Forwarded, forwardedOf } from "./access/forwarded.js";
import { forwardedPrefix, serviceUrlOf } from "./access/service-url.js";
import type { BodyReceiver } from "./body-receiver.js";
import type { ExchangeContext } from "./exchange-context.js";
import type { HttpRequest, HttpResponse } from "./listening/listener.js";
import { isLogged, logRequest } from "./metrics/access-log.js";
import { countRequest, type MethodLabel, type RouteCounts } from "./metrics/request-counts.js";
import { isRequestId } from "./metrics/request-id.js";
import type { OpenRequest } from "./overdue-requests.js";
import type { Body, RouteRequest } from "./reply.js";
import { RequestHead } from "./request-head.js";
import type { Route } from "./routing/route.js";

const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({});

/** Reason of all aborted signals: by default each would get an exception of its own, with a stack. */
const OVER = new ZpublishError("cancelled", "the request is over");

/**
 * One request and its answer. uWebSockets.js's response throws when it is touched after it was aborted or answered.
 * A class, so that all requests are objects of one shape.
 */
export class Exchange implements RouteRequest, BodyReceiver, OpenRequest {
  readonly head: RequestHead;
  readonly method: "GET" | "HEAD";
  readonly res: HttpResponse;
  readonly context: ExchangeContext;
  rawPath: string;
  params: Readonly<Record<string, string>> = NO_PARAMS;
  staleIdentity: string | undefined;
  /** Aborted or answered: the response must not be touched. */
  over = false;
  /** Part of the answer is written: there can be no other. */
  started = false;
  /** Priority of the route; `page` until it is known. */
  priority: Route["priority"] = "page";
  /** Bytes of a body that is being made or sent. Written by the load. */
  bodyBytes = 0;
  methodLabel: MethodLabel;
  counts: RouteCounts;
  /** Milliseconds since process start. */
  readonly beganMs = performance.now();
  /** When the answer began, in milliseconds since process start; 0 if not later than uWebSockets.js's callback. */
  firstByteMs = 0;
  /** Status line of the answer; empty before it began. */
  status = "";
  /** Bytes of the body that is sent. */
  byteLength = 0;
  /** Whether the whole answer was handed to uWebSockets.js or the system. */
  isWhole = false;
  /** Whether the access log gets a line. */
  isLogged = false;
  /** Headers of the body that is sent, if it has any. */
  bodyHeaders: Body["headers"] | undefined;
  /** Entry among the requests whose answer is not sent yet. */
  #place: ListEntry<OpenRequest> | undefined;
  #body: Body | undefined;
  /** The header `Origin`, if answers depend on it. */
  readonly origin: string | undefined;
  /** Request id: a proxy's, the client's, or made here; empty until it is needed. */
  #id: string;
  /** Whether the answer carries the request id: a proxy or the client sent one, or an error names it. */
  isNamed: boolean;
  #abort: AbortController | undefined;
  #forwarded: Forwarded | undefined;

  constructor(res: HttpResponse, req: HttpRequest, context: ExchangeContext, method: "GET" | "HEAD") {
    this.res = res;
    this.context = context;
    this.head = new RequestHead(req);
    this.method = method;
    this.rawPath = this.head.path;
    this.origin = context.cors.variesByOrigin ? this.head.shortHeader("origin") : undefined;
    this.methodLabel = method;
    this.counts = context.metrics.counts.unmatched;
    const id = req.getHeader(context.access.requestIdHeader);
    this.isNamed = id !== "" && isRequestId(id);
    this.#id = this.isNamed ? id : "";
    const { accessLogShare } = context.access;
    if (accessLogShare > 0 && isLogged(this, accessLogShare)) this.noteForLog();
    context.load.begin();
  }

  /** Id of this request in the log; made here if no proxy or client sent one. */
  get id(): string {
    if (this.#id === "") this.#id = randomUUID();
    return this.#id;
  }

  /** Has the request logged when it is over. Reads the client's address, which is gone with the connection. */
  noteForLog(): void {
    this.isLogged = true;
    void this.forwarded;
  }

  /** The client's address, and whether the request came through a trusted proxy. */
  get forwarded(): Forwarded {
    if (this.over && this.#forwarded === undefined) return { client: "", isTrusted: false };
    this.#forwarded ??= forwardedOf(this.res, this.head, this.context.access.trustedProxies);
    return this.#forwarded;
  }

  /** Made when first read: most requests are answered without it. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.over) this.#abort.abort(OVER);
    return this.#abort.signal;
  }

  reserve(byteLength: number): Promise<void> | undefined {
    return this.over ? undefined : this.context.load.reserve(this, byteLength);
  }

  get serviceUrl(): string {
    const { scheme, rootPath } = this.context;
    return serviceUrlOf({ scheme, rootPath, ...this.#proxyHeaders() });
  }

  /** Path prefix under which clients see the service: a trusted proxy's, or the root path. */
  get publicPrefix(): string {
    const { rootPath } = this.context;
    return forwardedPrefix({ rootPath, ...this.#proxyHeaders() }) ?? rootPath;
  }

  #proxyHeaders() {
    const isTrusted = !this.context.access.trustedProxies.isEmpty && this.forwarded.isTrusted;
    return { isTrusted, header: (name: string) => this.header(name) };
  }

  get query(): string {
    return this.head.query;
  }

  header(name: string): string | undefined {
    return this.head.header(name);
  }

  /**
   * Lets go of uWebSockets.js's request, which its callback takes back. Only answers that come later get an abort handler:
   * it would cost more than an answer that is sent at once.
   */
  detach(): void {
    this.head.detach(!this.over);
    if (this.over) return;
    const { context, res } = this;
    if (this.started) this.firstByteMs = performance.now();
    res.onAborted(() => this.end());
    this.#place = context.open.add(this);
    context.metrics.overdue.begin();
  }

  /** Makes the exchange the owner of a body, in place of another: it is released when the answer is sent or cancelled. */
  own(body: Body): void {
    if (this.over) {
      body.release?.();
      return;
    }
    if (this.#body !== body) this.#body?.release?.();
    this.#body = body;
  }

  /** Runs `write`, and sends what it writes in as few packets as possible. Does nothing if the client has gone. */
  cork(write: () => void): void {
    if (this.over) return;
    // uWebSockets.js corks what is written before its own callback returns.
    if (this.head.isAttached) {
      write();
      return;
    }
    let failure: { readonly error: unknown } | undefined;
    this.res.cork(() => {
      try {
        write();
      } catch (error) {
        // An exception must not cross native code.
        failure = { error };
      }
    });
    if (failure !== undefined) throw failure.error;
  }

  /** Notes that the answer begins with this status line. */
  begin(status: string): void {
    this.started = true;
    this.status = status;
    if (!this.head.isAttached) this.firstByteMs = performance.now();
    // uWebSockets.js writes 200 by itself.
    if (status !== "200 OK") this.res.writeStatus(status);
  }

  /** Ends an answer without a body that says how long the body of GET is. */
  endHead(byteLength: number): void {
    // Not endWithoutBody(byteLength): uWebSockets.js then waits for as many bytes to be written, and drops the
    // connection at the next request on it. Without an argument it writes no Content-Length of its own.
    this.res.writeHeader("Content-Length", String(byteLength));
    this.endBodiless();
  }

  /** Ends an answer that has neither body nor Content-Length: 204, 304. */
  endBodiless(): void {
    this.res.endWithoutBody();
    this.endWhole();
  }

  /** Ends an answer with bytes in memory: now, or when the client has taken them. */
  endWith(bytes: Uint8Array): void {
    this.context.sender.sendWhole(this, bytes);
  }

  /** Ends an answer and the connection: nothing that arrives on it is answered any more. */
  endAndClose(bytes: Uint8Array): void {
    this.res.end(bytes, true);
    this.byteLength = bytes.byteLength;
    this.endWhole();
  }

  /** Drops the connection: the only way to end an answer that began and cannot be completed. */
  drop(): void {
    if (this.over) return;
    this.res.close();
    // Without an abort handler yet, uWebSockets.js calls nothing.
    this.end();
  }

  /** The whole answer is sent. */
  endWhole(): void {
    this.isWhole = true;
    this.end();
  }

  /** Ends the request: its answer is sent, or its client has gone. uWebSockets.js calls it again when the server closes. */
  end(): void {
    if (this.over) return;
    this.over = true;
    this.#body?.release?.();
    this.#body = undefined;
    this.#abort?.abort(OVER);
    const { context } = this;
    if (this.#place !== undefined) context.open.remove(this.#place);
    context.load.end(this);
    const nowMs = performance.now();
    countRequest(this, nowMs);
    if (this.isLogged) logRequest(this, nowMs);
  }
}
