import { randomUUID } from "node:crypto";
import type { LinkedList, ListEntry } from "../collections/linked-list.js";
import { ZpublishError } from "../errors.js";
import type { Log } from "../observe/log.js";
import { ticketPrefix } from "./access/authorize.js";
import { type Forwarded, forwardedOf, forwardedPrefix, serviceUrlOf } from "./access/forwarded.js";
import { type HeaderLines, NO_LINES } from "./headers.js";
import type { HttpRequest, HttpResponse } from "./listening/listener.js";
import type {
  BodyTaker,
  Load,
  MethodLabel,
  OverdueRequests,
  RequestCounts,
  RouteCounts,
  UnansweredRequest,
} from "./load-limits.js";
import type { Body, HeaderContext, RouteRequest } from "./reply.js";
import { type RequestLogs, requestFields } from "./request-log.js";
import type { Route } from "./router.js";
import type { BodyReceiver, BodySender } from "./stream-body.js";

/** Stands for the status if the client left before there was one, as in nginx. */
const CLIENT_GONE = "499 Client Closed Request";

const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({});

/** Reason of all aborted signals: by default each would get an exception of its own, with a stack. */
const OVER = new ZpublishError("cancelled", "the request is over");

/**
 * One request and its answer. uWebSockets.js's response throws when it is touched after it was aborted or answered.
 * A class, so that all requests are objects of one shape.
 */
export class Exchange implements RouteRequest, BodyReceiver, UnansweredRequest {
  readonly head: RequestHead;
  readonly method: RouteRequest["method"];
  readonly res: HttpResponse;
  readonly context: ExchangeContext;
  /** `/s/{ticket}` if the path has that behind the root path; else empty. */
  readonly prefix: string;
  rawPath: string;
  params: Readonly<Record<string, string>> = NO_PARAMS;
  /** Aborted or answered: the response must not be touched. */
  over = false;
  /** Part of the answer is written: there can be no other. */
  started = false;
  /** Undefined until it is known. */
  route: Route | undefined;
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
  #place: ListEntry<UnansweredRequest> | undefined;
  #body: Body | undefined;
  /** Body of the request, if it is received. */
  #upload: RequestBody | undefined;
  /** The header `Origin`, if answers depend on it. */
  readonly origin: string | undefined;
  /** Request id: a proxy's, the client's, or made here; empty until it is needed. */
  #id: string;
  /** Whether the answer carries the request id: a proxy or the client sent one, or an error names it. */
  isNamed: boolean;
  #abort: AbortController | undefined;
  #forwarded: Forwarded | undefined;

  constructor(res: HttpResponse, req: HttpRequest, context: ExchangeContext, method: RouteRequest["method"]) {
    this.res = res;
    this.context = context;
    this.head = new RequestHead(req);
    this.method = method;
    this.rawPath = this.head.path;
    this.prefix =
      context.access.credentials === undefined ? "" : ticketPrefix(this.rawPath, context.rootPath);
    this.origin = context.cors.variesByOrigin ? this.head.header("origin") : undefined;
    this.methodLabel = method;
    this.counts = context.metrics.counts.unmatched;
    const id = req.getHeader(context.access.requestIdHeader);
    this.isNamed = REQUEST_ID.test(id);
    this.#id = this.isNamed ? id : "";
    const { accessLogShare } = context.access;
    if (accessLogShare > 0 && Math.random() < accessLogShare) this.noteForLog();
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

  /** Begins to receive the body of the request, unless it has. To be called in uWebSockets.js's callback. @throws ZpublishError as `RequestBody` */
  receive(maxBytes: number, refuse: (error: ZpublishError) => void): void {
    this.#upload ??= new RequestBody(this, this.context.load, maxBytes, refuse);
  }

  async body(): Promise<Uint8Array> {
    return this.#upload?.whole ?? new Uint8Array();
  }

  reserve(byteLength: number): Promise<void> | undefined {
    return this.over ? undefined : this.context.load.reserve(this, byteLength);
  }

  get serviceUrl(): string {
    const { scheme, rootPath } = this.context;
    return serviceUrlOf({ scheme, rootPath, ...this.#proxyHeaders() }) + this.prefix;
  }

  /** Path prefix under which the client sees the service: a trusted proxy's, or the root path; then the one with its ticket. */
  get publicPrefix(): string {
    const { rootPath } = this.context;
    return (forwardedPrefix({ rootPath, ...this.#proxyHeaders() }) ?? rootPath) + this.prefix;
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

  /** Whether query and headers can be read: they cannot if the answer comes later and nothing was copied for it. */
  get isReadable(): boolean {
    return this.head.isReadable;
  }

  /**
   * Lets go of uWebSockets.js's request, which its callback takes back. Only answers that come later get an abort handler:
   * it would cost more than an answer that is sent at once.
   */
  detach(): void {
    this.head.detach();
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
  }

  /** Ends an answer without a body. @param byteLength What the answer to HEAD says of the body; undefined for 204 and 304. */
  endBodiless(byteLength?: number): void {
    this.res.endWithoutBody(byteLength);
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
    this.#upload?.release(OVER);
    this.#abort?.abort(OVER);
    const { context } = this;
    if (this.#place !== undefined) context.open.remove(this.#place);
    context.load.end(this);
    const nowMs = performance.now();
    this.#count(nowMs);
    if (this.isLogged) this.#log(nowMs);
  }

  #count(nowMs: number): void {
    const { counts, status, beganMs, firstByteMs } = this;
    const seconds = (nowMs - beganMs) / 1_000;
    const ofMethod = counts.requests[this.methodLabel];
    const line = status === "" ? CLIENT_GONE : status;
    ofMethod.set(line, (ofMethod.get(line) ?? 0) + 1);
    counts.whole.observe(seconds);
    if (!this.isWhole && status !== "") counts.brokenOff += 1;
    else counts.bytes += this.byteLength;
    if (firstByteMs === 0) {
      // Answered within the callback: the first byte leaves with the last.
      if (status !== "") counts.firstByte.observe(seconds);
      return;
    }
    counts.firstByte.observe((firstByteMs - beganMs) / 1_000);
    counts.send.observe((nowMs - firstByteMs) / 1_000);
  }

  #log(nowMs: number): void {
    const { status, isWhole } = this;
    const fields = {
      ...requestFields(this),
      status: Number((status || CLIENT_GONE).slice(0, 3)),
      bytes: isWhole ? this.byteLength : undefined,
      durationMs: Math.round((nowMs - this.beganMs) * 1_000) / 1_000,
      route: this.counts.route,
      client: this.forwarded.client,
      cache: this.bodyHeaders?.find(([name]) => name === "X-Cache")?.[1],
      isWhole: isWhole ? undefined : false,
    };
    this.context.log.info(fields, "request");
  }
}

/** Ids of requests that are used: visible ASCII, valid as the value of a header and in a log line. */
const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;

/**
 * Path, query and headers of one request. uWebSockets.js's own request may be read only until its callback returns;
 * before that, `copy` takes what is needed later.
 */
class RequestHead {
  /** The path as it came, root path included. */
  readonly path: string;
  /** uWebSockets.js's request, until its callback returns. */
  #request: HttpRequest | null;
  #copy: { readonly headers: ReadonlyMap<string, string>; readonly query: string } | null = null;

  constructor(request: HttpRequest) {
    this.#request = request;
    this.path = request.getUrl();
  }

  /** Whether uWebSockets.js's callback has not returned yet. */
  get isAttached(): boolean {
    return this.#request !== null;
  }

  get isReadable(): boolean {
    return this.#request !== null || this.#copy !== null;
  }

  /** Without the question mark; empty if there is none. @throws Error once the request is answered */
  get query(): string {
    // Undefined without a question mark, although its type says string.
    if (this.#request !== null) return this.#request.getQuery() ?? "";
    if (this.#copy === null) throw new Error("The query was read after the request was answered");
    return this.#copy.query;
  }

  /** A header by lower-case name, the first of several. @throws Error once the request is answered */
  header(name: string): string | undefined {
    if (this.#request !== null) {
      const value = this.#request.getHeader(name);
      return value === "" ? undefined : value;
    }
    if (this.#copy === null) throw new Error(`Header '${name}' was read after the request was answered`);
    return this.#copy.headers.get(name);
  }

  /** All values of a header that is a list, in their order, separated by commas. */
  listHeader(name: string): string | undefined {
    if (this.#request === null) return this.#copy?.headers.get(name);
    const values: string[] = [];
    this.#request.forEach((other, value) => {
      if (other === name && value !== "") values.push(value);
    });
    return values.length === 0 ? undefined : values.join(",");
  }

  /** Number of headers of one name; 0 once uWebSockets.js's callback has returned. */
  countHeader(name: string): number {
    let count = 0;
    this.#request?.forEach((other) => {
      if (other === name) count += 1;
    });
    return count;
  }

  /**
   * Copies headers and query for a handler that finishes after uWebSockets.js's callback.
   * @throws ZpublishError `headers-too-long`: uWebSockets.js limits only headers that arrive in pieces.
   */
  copy(maxBytes: number): void {
    if (this.#request === null) return;
    const headers = new Map<string, string>();
    let byteLength = 0;
    this.#request.forEach((name, value) => {
      byteLength += name.length + value.length;
      if (value === "") return;
      const known = headers.get(name);
      if (known === undefined) headers.set(name, value);
      else if (name === "x-forwarded-for") headers.set(name, `${known},${value}`);
    });
    if (byteLength > maxBytes)
      throw new ZpublishError("headers-too-long", `Headers: expected at most ${maxBytes} bytes`);
    this.#copy = { headers, query: this.query };
  }

  /** Lets go of uWebSockets.js's request. */
  detach(): void {
    this.#request = null;
  }
}

/** The body of a request while it arrives, bounded, and counted with the bodies of answers. */
class RequestBody implements BodyTaker {
  /** All bytes. Rejected with `too-large`, or when the request is over before. */
  readonly whole: Promise<Uint8Array>;
  bodyBytes = 0;
  readonly #load: Load;
  #parts: Uint8Array[] = [];
  #byteLength = 0;
  #isReleased = false;
  #reject: (error: ZpublishError) => void = () => undefined;

  /**
   * Begins to receive, and asks the client for the body if it waits to be asked. To be created in the callback of the request.
   * @param refuse Answers the request if the body turns out to be too long: one without a Content-Length.
   * @throws ZpublishError `too-large` if the Content-Length is, before anything is read; `overloaded` if bodies take too much memory.
   */
  constructor(
    source: Pick<Exchange, "res" | "header">,
    load: Load,
    maxBytes: number,
    refuse: (error: ZpublishError) => void,
  ) {
    this.#load = load;
    const announced = Number(source.header("content-length") ?? 0);
    if (announced > maxBytes) throw tooLarge(maxBytes, announced);
    if (!load.hasRoom()) throw noRoom();
    this.whole = new Promise((resolve, reject) => {
      this.#reject = reject;
      source.res.onData((part, isLast) => {
        if (this.#isReleased) return;
        this.#take(part);
        const isLong = this.#byteLength > maxBytes;
        if (isLong || !load.hasRoom()) {
          const error = isLong ? tooLarge(maxBytes, this.#byteLength) : noRoom();
          this.release(error);
          refuse(error);
        } else if (isLast) resolve(Buffer.concat(this.#parts.splice(0), this.#byteLength));
      });
    });
    // A handler need not ask for the body.
    this.whole.catch(() => undefined);
    if (source.header("expect")?.toLowerCase() === "100-continue") source.res.writeContinue();
  }

  /** Frees the memory. @param reason Rejects the body if it has not arrived. */
  release(reason: ZpublishError): void {
    this.#reject(reason);
    this.#parts = [];
    this.#isReleased = true;
    this.#load.setBodyBytes(this, 0);
  }

  /** Takes a copy of a part. */
  #take(part: ArrayBuffer | Uint8Array): void {
    if (part.byteLength === 0) return;
    this.#parts.push(new Uint8Array(part).slice());
    this.#byteLength += part.byteLength;
    this.#load.setBodyBytes(this, this.#byteLength);
  }
}

function noRoom(): ZpublishError {
  return new ZpublishError("overloaded", "bodies take all memory that they may");
}

function tooLarge(maxBytes: number, received: number): ZpublishError {
  return new ZpublishError("too-large", `Body: expected at most ${maxBytes} bytes, received ${received}`);
}

/** Counts of all requests of one server, whatever its app. */
export interface RequestMetrics {
  readonly counts: RequestCounts;
  readonly overdue: OverdueRequests;
  readonly logs: RequestLogs;
}

/** What all requests of one server share. */
export interface ExchangeContext extends HeaderContext {
  readonly load: Load;
  readonly sender: BodySender;
  readonly log: Log;
  /** Requests whose answer is not sent yet. */
  readonly open: LinkedList<UnansweredRequest>;
  readonly scheme: "http" | "https";
  /** Prefix of all paths: empty, or begins with a slash and ends without one. */
  readonly rootPath: string;
  readonly metrics: RequestMetrics;
  /** Limit of the headers that a waiting request keeps, in bytes. */
  readonly maxHeaderBytes: number;
}

/**
 * Writes status and headers of an answer.
 * @param more Lines that differ from answer to answer.
 * @throws ZpublishError as `checkLines`; nothing is written then.
 */
export function writeHead(
  exchange: Exchange,
  status: string,
  lines: HeaderLines,
  more: HeaderLines = NO_LINES,
): void {
  const { context, origin = "", res } = exchange;
  const { cors, state } = context;
  let own = more;
  if (state.isDraining) own = [...own, ["Connection", "close"]];
  if (exchange.isNamed) own = [...own, ["X-Request-Id", exchange.id]];
  res.writeHead(status, cors.byOrigin.get(origin) ?? cors.lines, lines, own);
  exchange.begin(status);
}

/** Returns lines with a `Vary` behind them, unless an answer depends on nothing. @param names Lists of request headers. */
export function withVary(lines: HeaderLines, ...names: readonly string[]): HeaderLines {
  const vary = names.filter((list) => list !== "").join(", ");
  return vary === "" ? lines : [...lines, ["Vary", vary]];
}
