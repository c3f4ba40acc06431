import { ZpublishError } from "../errors.js";
import type { HttpRequest } from "./listening/listener.js";

/** Visible ASCII: valid as the value of a header and in a log line. */
const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;

/** Headers that contain secrets; ids are written to logs and answers. */
const SECRET = new Set(["authorization", "cookie", "proxy-authorization"]);

/** Whether an id from a balancer or client can be used: at most 128 visible ASCII characters. */
export function isRequestId(text: string): boolean {
  return REQUEST_ID.test(text);
}

/** Checks the name of the header of request ids. @throws ZpublishError `invalid-config` if that header contains secrets. */
export function checkRequestIdHeader(name: string): void {
  if (!SECRET.has(name)) return;
  throw new ZpublishError(
    "invalid-config",
    `Header of request ids: expected one such as 'x-request-id', received '${name}', which is never logged`,
  );
}

/** Position of a request in a distributed trace. */
interface TraceParent {
  /** 32 hexadecimal digits, lower case. */
  readonly traceId: string;
  /** Id of the caller's span, 16 hexadecimal digits. */
  readonly parentId: string;
}

/** Version, trace id, parent id, flags, and what later versions may put behind them. */
const FORMAT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const MAX_LENGTH = 512;

/**
 * Parses a `traceparent` header (W3C Trace Context, level 1, §3.2): version 00 strictly, later ones as far as they agree with it.
 * @returns undefined if the header is not valid, and so is to be ignored.
 */
export function parseTraceParent(header: string): TraceParent | undefined {
  if (header.length > MAX_LENGTH) return undefined;
  const match = FORMAT.exec(header);
  if (match === null) return undefined;
  const [, version = "", traceId = "", parentId = "", , rest] = match;
  if (version === "ff" || (version === "00" && rest !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(parentId)) return undefined;
  return { traceId, parentId };
}

/** Longest header that is copied one by one, in characters; a longer one makes no sense. */
const MAX_HEADER_CHARS = 1_024;

/**
 * Path, query and headers of one request. uWebSockets.js's own request may be read only until its callback returns;
 * before that, `copy` takes what is needed later.
 */
export class RequestHead {
  /** The path as it came, root path included. */
  readonly path: string;
  /** uWebSockets.js's request, until its callback returns. */
  #request: HttpRequest | null;
  #copy: { readonly headers: ReadonlyMap<string, string>; readonly query: string } | null = null;
  #traceParent = "";

  constructor(request: HttpRequest) {
    this.#request = request;
    this.path = request.getUrl();
  }

  /** Whether uWebSockets.js's callback has not returned yet. */
  get isAttached(): boolean {
    return this.#request !== null;
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

  /** A header; undefined if it is missing, or too long to make sense. */
  shortHeader(name: string): string | undefined {
    const value = this.header(name);
    return value === undefined || value.length > MAX_HEADER_CHARS ? undefined : value;
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

  /** Position of the request in a distributed trace. */
  get traceParent(): TraceParent | undefined {
    const header = this.#request === null ? this.#traceParent : this.#request.getHeader("traceparent");
    return header === "" ? undefined : parseTraceParent(header);
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

  /** Lets go of uWebSockets.js's request. @param keepsTrace Whether `traceParent` is read later. */
  detach(keepsTrace: boolean): void {
    if (keepsTrace) this.#traceParent = this.shortHeader("traceparent") ?? "";
    this.#request = null;
  }
}
