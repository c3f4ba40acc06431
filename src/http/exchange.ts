import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import type { Log } from "../observe/log.js";
import type { BodySender } from "./body-sender.js";
import type { Cors } from "./cors.js";
import { headerField } from "./header-field.js";
import type { KeptFields, KeptLine } from "./kept-fields.js";
import type { BodyTaker, Load } from "./load.js";
import type { Body, RouteRequest } from "./reply.js";

/** What all exchanges of one server share. */
export interface ExchangeContext {
  readonly cors: Cors;
  /** For replies that say nothing of it. */
  readonly cacheControl: string;
  readonly load: Load;
  readonly sender: BodySender;
  readonly log: Log;
  /** Requests whose answer is not sent yet. */
  readonly open: Set<Exchange>;
  /** True: connections end with their current answer. */
  draining: boolean;
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
  /** Of a body that is being made or on its way, counted by the load. */
  bodyBytes = 0;
  #isOpen = false;
  #body: Body | undefined;
  /** For CORS. */
  readonly #origin: string | undefined;
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
    this.#origin = context.cors.variesByOrigin ? req.getHeader("origin") : undefined;
    context.load.begin();
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

  /** Copies headers and query, for a handler that goes on after uWebSockets.js takes its request back. */
  keepHeaders(): void {
    if (this.#request === null) return;
    const headers = new Map<string, string>();
    this.#request.forEach((name, value) => {
      if (value !== "" && !headers.has(name)) headers.set(name, value);
    });
    this.#kept = { headers, query: this.query };
  }

  /**
   * To be called before uWebSockets.js takes its request back. Where the answer comes later, it is noted: most come at
   * once, and a set of them all, or an abort handler for each, would cost more than they do.
   */
  release(): void {
    this.#request = null;
    if (this.over) return;
    this.res.onAborted(() => this.end());
    this.#isOpen = true;
    this.context.open.add(this);
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
    let more = fields;
    if (context.cors.variesByOrigin) more += headerField("Vary", vary === "" ? "Origin" : `${vary}, Origin`);
    else if (vary !== "") more += headerField("Vary", vary);
    if (context.draining) more += headerField("Connection", "close");
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
  }

  #writeStatus(status: string): void {
    this.started = true;
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
    this.end();
  }

  /** Ends an answer with a small body. */
  endWith(body: string | Uint8Array, closeConnection = false): void {
    this.res.end(body, closeConnection);
    this.end();
  }

  /** Drops the connection: the only way to say that an answer which has begun is not whole. */
  drop(): void {
    if (!this.over) this.res.close();
  }

  /** The answer is sent, or nobody waits for it any more. Called again by uWebSockets.js when the server closes. */
  end(): void {
    if (this.over) return;
    this.over = true;
    this.#body?.release?.();
    this.#body = undefined;
    if (this.#isOpen) this.context.open.delete(this);
    this.context.load.end(this);
  }
}
