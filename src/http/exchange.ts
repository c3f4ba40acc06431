import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import { randomUUID } from "node:crypto";
import { ZpublishError } from "../errors.js";
import type { LinkedList, ListEntry } from "../linked-list.js";
import type { Log } from "../observe/log.js";
import { parseTraceParent, type TraceParent } from "../observe/trace-parent.js";
import { isLogged, logRequest } from "./access-log.js";
import type { BodySender } from "./body-sender.js";
import type { Cors } from "./cors.js";
import { type Forwarded, forwardedOf } from "./forwarded.js";
import { headerField } from "./header-field.js";
import type { KeptFields, KeptLine } from "./kept-fields.js";
import type { BodyTaker, Load } from "./load.js";
import type { Body, RouteRequest } from "./reply.js";
import { countRequest, type MethodLabel, type RouteCounts } from "./request-counts.js";
import { isRequestId } from "./request-id.js";
import type { RequestWatch } from "./request-watch.js";
import type { Route } from "./route.js";
import { forwardedPrefix, serviceUrlOf } from "./service-url.js";
import type { SiteEdge } from "./site-edge.js";
import { joinVary } from "./vary.js";

/** What all exchanges of one server share. */
export interface ExchangeContext {
  readonly cors: Cors;
  /** For replies that say nothing of it. */
  readonly cacheControl: string;
  readonly load: Load;
  readonly sender: BodySender;
  readonly log: Log;
  /** Requests whose answer is not sent yet. */
  readonly open: LinkedList<Exchange>;
  /** True: connections end with their current answer. */
  readonly draining: boolean;
  /** How requests come to this server. */
  readonly scheme: "http" | "https";
  /** Of the site: empty, or begins with a slash and ends without one. */
  readonly rootPath: string;
  readonly edge: SiteEdge;
  readonly watch: RequestWatch;
  /** Of the headers of a request that is kept while it waits. */
  readonly maxHeaderBytes: number;
}

/** Of headers that are kept one by one: longer ones are none that make sense. */
const MAX_HEADER_CHARS = 1_024;

/** A header that may be kept; empty where there is none, or none that makes sense. */
function shortHeader(request: HttpRequest, name: string): string {
  const value = request.getHeader(name);
  return value.length > MAX_HEADER_CHARS ? "" : value;
}

const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({});

/**
 * One request and its answer: what uWebSockets.js gives, guarded. Its request may be read only until the handler it
 * calls has returned; its response not at all once it is aborted or answered, or it throws.
 *
 * A class, as there is one object of the same shape per request.
 */
export class Exchange implements RouteRequest, BodyTaker {
  readonly method: "GET" | "HEAD";
  /** As it came, root path included. */
  readonly fullPath: string;
  readonly res: HttpResponse;
  readonly context: ExchangeContext;
  rawPath: string;
  params: Readonly<Record<string, string>> = NO_PARAMS;
  /** Aborted or answered: the response must not be touched. */
  over = false;
  /** Part of the answer is written: there can be no other. */
  started = false;
  /** Whether the reply was kept of an earlier request, and what it takes to give it is worth keeping too. */
  isRepeated = false;
  /** Of the route, once that is known. */
  weight: Route["weight"] = "page";
  /** Of a body that is being made or on its way, counted by the load. */
  bodyBytes = 0;
  methodLabel: MethodLabel;
  /** Of the route, once that is known. */
  counts: RouteCounts;
  /** On the clock of `performance.now()`. */
  readonly beganMs = performance.now();
  /** When the answer began; 0: it did not, or within the callback of uWebSockets.js. */
  firstByteMs = 0;
  /** Of the answer, once it began; empty before. */
  status = "";
  /** Of the body that is sent. */
  byteLength = 0;
  /** Whether the whole answer was handed to uWebSockets.js or the system. */
  isWhole = false;
  /** Whether there will be a line in the access log. */
  isLogged = false;
  /** Of the body that is sent, where it has some. */
  bodyHeaders: Body["headers"] | undefined;
  /** Among those whose answer is not sent yet. */
  #place: ListEntry<Exchange> | undefined;
  #body: Body | undefined;
  /** For CORS. */
  readonly #origin: string | undefined;
  /** What a balancer or the client calls the request, or it was called here; empty: it has no name yet. */
  #id: string;
  /** Whether the answer says it. */
  #tellsId: boolean;
  #traceParent = "";
  #forwarded: Forwarded | undefined;
  /** What uWebSockets.js gave, until it takes it back. */
  #request: HttpRequest | null;
  /** What was copied of it. */
  #kept: { readonly headers: ReadonlyMap<string, string>; readonly query: string } | null = null;

  constructor(res: HttpResponse, req: HttpRequest, context: ExchangeContext, method: "GET" | "HEAD") {
    this.res = res;
    this.context = context;
    this.#request = req;
    this.method = method;
    this.fullPath = req.getUrl();
    this.rawPath = this.fullPath;
    this.#origin = context.cors.variesByOrigin ? shortHeader(req, "origin") : undefined;
    this.methodLabel = method;
    this.counts = context.watch.counts.unmatched;
    const id = req.getHeader(context.edge.requestIdHeader);
    this.#tellsId = id !== "" && isRequestId(id);
    this.#id = this.#tellsId ? id : "";
    const { accessLogShare } = context.edge;
    if (accessLogShare > 0 && isLogged(this, accessLogShare)) this.noteForLog();
    context.load.begin();
  }

  /** The name of this request in the log, made up where nobody gave it one. */
  get id(): string {
    if (this.#id === "") this.#id = randomUUID();
    return this.#id;
  }

  /** Has the request logged when it is over. To be called before it is: the client's address is gone with the connection. */
  noteForLog(): void {
    this.isLogged = true;
    this.#forwarded ??= forwardedOf(this, this.context.edge.proxies);
  }

  /** Whether a balancer or the client has named it, or is told its name. */
  get isNamed(): boolean {
    return this.#tellsId;
  }

  /** Has the answer say what the request is called in the log, as it does anyhow where somebody gave it its name. */
  tellId(): void {
    this.#tellsId = true;
  }

  /** Where the request stands in a distributed trace, if it does. */
  get traceParent(): TraceParent | undefined {
    const header = this.#request === null ? this.#traceParent : this.#request.getHeader("traceparent");
    return header === "" ? undefined : parseTraceParent(header);
  }

  /** Who asks, and whether through a proxy whose word counts. */
  get forwarded(): Forwarded {
    this.#forwarded ??= forwardedOf(this, this.context.edge.proxies);
    return this.#forwarded;
  }

  get serviceUrl(): string {
    const { scheme, rootPath } = this.context;
    return serviceUrlOf({ scheme, rootPath, ...this.#whence() });
  }

  /** The path under which clients see the service: a trusted proxy's, or the root path. */
  get publicPrefix(): string {
    const { rootPath } = this.context;
    return forwardedPrefix({ rootPath, ...this.#whence() }) ?? rootPath;
  }

  #whence() {
    const { trusted } = this.context.edge.proxies;
    const isTrusted = !trusted.isEmpty && this.forwarded.isTrusted;
    return { isTrusted, header: (name: string) => this.header(name) };
  }

  get query(): string {
    // Undefined where there is no question mark, whatever the types say.
    if (this.#request !== null) return this.#request.getQuery() ?? "";
    if (this.#kept === null) throw new Error("The query was asked for after the reply was there");
    return this.#kept.query;
  }

  header(name: string): string | undefined {
    if (this.#request !== null) {
      const value = this.#request.getHeader(name);
      return value === "" ? undefined : value;
    }
    if (this.#kept === null) throw new Error(`Header '${name}' was asked for after the reply was there`);
    return this.#kept.headers.get(name);
  }

  /** A request header that is a list, of which there may be several: all of them, in their order. */
  listHeader(name: string): string | undefined {
    if (this.#request === null) return this.#kept?.headers.get(name);
    const values: string[] = [];
    this.#request.forEach((other, value) => {
      if (other === name && value !== "") values.push(value);
    });
    return values.length === 0 ? undefined : values.join(",");
  }

  /** How often a header was sent, by its name in lower case. To be called before uWebSockets.js takes its request back. */
  countHeader(name: string): number {
    let count = 0;
    this.#request?.forEach((other) => {
      if (other === name) count += 1;
    });
    return count;
  }

  /**
   * Copies headers and query, for a handler that goes on after uWebSockets.js takes its request back.
   * @throws ZpublishError `headers-too-long`: uWebSockets.js bounds only what comes in pieces.
   */
  keepHeaders(): void {
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
    const { maxHeaderBytes } = this.context;
    if (byteLength > maxHeaderBytes) {
      throw new ZpublishError("headers-too-long", `Headers: expected at most ${maxHeaderBytes} bytes`);
    }
    this.#kept = { headers, query: this.query };
  }

  /**
   * To be called before uWebSockets.js takes its request back. Where the answer comes later, it is noted: most come at
   * once, and a set of them all, or an abort handler for each, would cost more than they do.
   */
  release(): void {
    const request = this.#request;
    this.#request = null;
    if (this.over) return;
    const { context, res } = this;
    if (request !== null) this.#traceParent = shortHeader(request, "traceparent");
    if (this.started) this.firstByteMs = performance.now();
    res.onAborted(() => this.end());
    this.#place = context.open.add(this);
    context.watch.overdue.begin();
  }

  /** Notes from which body the answer is, in place of another: it is released when the answer is sent or given up. */
  hold(body: Body): void {
    if (this.over) {
      body.release?.();
      return;
    }
    if (this.#body !== body) this.#body?.release?.();
    this.#body = body;
  }

  /** Writes everything in `write` in as few packets as possible. Does nothing where the client has gone. */
  cork(write: () => void): void {
    if (this.over) return;
    // uWebSockets.js corks what is written before its own callback returns.
    if (this.#request !== null) write();
    else this.res.cork(write);
  }

  /**
   * Writes status and headers.
   * @param fields Header lines, each with its line break before it.
   * @param vary What the answer depends on besides the origin.
   */
  writeHead(status: string, fields: string, vary = ""): void {
    const { context, res } = this;
    const { edge } = context;
    let more = fields + edge.fields;
    const varies = joinVary(vary, edge.vary);
    if (varies !== "") more += headerField("Vary", varies);
    if (context.draining) more += headerField("Connection", "close");
    if (this.#tellsId) more += headerField("X-Request-Id", this.id);
    this.#writeStatus(status);
    // uWebSockets.js writes names and values as they are, so that one call into it writes all lines.
    res.writeHeader("X-Content-Type-Options", `nosniff${context.cors.fields(this.#origin)}${more}`);
  }

  /** The same of lines that are sent often. @param more Lines of this answer only. */
  writeKeptHead(status: string, fields: KeptFields, more?: KeptLine): void {
    const encoded = fields.encoded(this.context);
    if (encoded === undefined) {
      this.writeHead(status, fields.text() + (more === undefined ? "" : more.text), fields.vary);
      return;
    }
    this.#writeStatus(status);
    // Uint8Array is as good as text, and need not be encoded; the types know ArrayBuffer only.
    this.res.writeHeader("X-Content-Type-Options", encoded as unknown as ArrayBuffer);
    if (more !== undefined) this.res.writeHeader(more.name, more.value as unknown as ArrayBuffer);
    if (this.#tellsId) this.res.writeHeader("X-Request-Id", this.id);
  }

  #writeStatus(status: string): void {
    this.started = true;
    this.status = status;
    if (this.#request === null) this.firstByteMs = performance.now();
    // uWebSockets.js writes this one by itself.
    if (status !== "200 OK") this.res.writeStatus(status);
  }

  /** The answer to HEAD, or one that never has a body and says how long the one of GET would be. */
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

  /** Ends an answer with a body that is all there: now, or when the client has taken it. */
  endWith(bytes: Uint8Array): void {
    this.context.sender.sendWhole(this, bytes);
  }

  /** Ends an answer with an empty body. */
  endEmpty(): void {
    this.res.end();
    this.endWhole();
  }

  /** Ends an answer, and with it the connection: nothing that comes on it is answered any more. */
  endAndClose(bytes: Uint8Array): void {
    this.res.end(bytes, true);
    this.byteLength = bytes.byteLength;
    this.endWhole();
  }

  /** Drops the connection: the only way to say that an answer which has begun is not whole. */
  drop(): void {
    if (this.over) return;
    this.res.close();
    // Nobody is told where it is dropped before its answer was waited for.
    this.end();
  }

  /** The whole answer is sent. */
  endWhole(): void {
    this.isWhole = true;
    this.end();
  }

  /** The answer is sent, or nobody waits for it any more. Called again by uWebSockets.js when the server closes. */
  end(): void {
    if (this.over) return;
    this.over = true;
    this.#body?.release?.();
    this.#body = undefined;
    const { context } = this;
    if (this.#place !== undefined) context.open.remove(this.#place);
    context.load.end(this);
    const nowMs = performance.now();
    countRequest(this, nowMs);
    if (this.isLogged) logRequest(this, nowMs);
  }
}
