import { ZpublishError } from "../errors.js";
import type { HttpRequest } from "./listening/listener.js";
import { parseTraceParent, type TraceParent } from "./metrics/request-id.js";

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
