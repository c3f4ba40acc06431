import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { createRequire } from "node:module";
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { buildConnector, Dispatcher } from "undici";
import { ZpublishError } from "../errors.js";
import {
  type ObjectRange,
  type ObjectVersion,
  type ReadObjectOptions,
  resolveObjectRange,
  shortObject,
} from "./byte-store.js";
import { allocateOwn, sourceTimeoutMs } from "./file-calls.js";

/** Connections to one host at a time, of all stores together. */
const MAX_CONNECTIONS_PER_HOST = 64;
const CONNECT_TIMEOUT_MS = 5_000;
/** Time without progress after which an exchange counts as hanging. */
const IDLE_TIMEOUT_MS = 10_000;
/** Idle connections stay open for less time than usual servers keep them. */
const KEEP_ALIVE_MS = 4_000;
/** Memory in which sockets receive, one after the other: what one reads at a time. */
const RECEIVED_BYTES = 64 * 1024;
/** From this size on, a read has the whole head of an answer, or none of it: undici refuses longer heads. */
const MIN_SHARED_BYTES = 16 * 1024;
/** Bytes of an error's body that are kept: enough for the code of an S3 error. */
const MAX_ERROR_BYTES = 16 * 1024;

/** A request for (part of) one object. */
interface ExchangeRequest {
  readonly method: "GET" | "HEAD";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** Status and header lines of an answer. */
export interface AnswerHead {
  readonly status: number;
  /** By lower-case name; the last of several. */
  header(name: string): string | undefined;
}

/** An answer as it was received: all of it. */
export interface Answer extends AnswerHead {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Bytes that were received, also those that were not kept. */
  readonly receivedByteLength: number;
}

/** Decision about the body of an answer, made from its head. */
export interface BodyPlan {
  /** Exact number of bytes to receive; undefined if the server does not announce it. */
  readonly byteLength: number | undefined;
  /** Part of a body of known length that is kept. Default: all of it. */
  readonly kept?: { readonly offset: number; readonly byteLength: number } | undefined;
  /** Bound if the server does not announce the length. */
  readonly maxByteLength: number;
  /** Returns the error for a body beyond that. @param received Bytes so far */
  readonly overlong: (received: number) => Error;
  readonly allocate?: ((byteLength: number) => Uint8Array<ArrayBuffer>) | undefined;
}

/** The connection failed, or the body had another length than was announced. Another attempt may succeed. */
export class ExchangeFailed extends Error {}

/** Plan for an answer without a body. */
export const NO_BODY: BodyPlan = {
  byteLength: 0,
  maxByteLength: 0,
  overlong: () => new ExchangeFailed("expected no body, received one"),
};

type Undici = typeof import("undici");

let agent: Dispatcher | undefined;

/** Returns the connections of this process, through the proxies that the environment names. */
function connections(): Dispatcher {
  if (agent !== undefined) return agent;
  // Loaded when there is a first request: it would be a sixth of the time that the program takes to start.
  const { Agent, buildConnector, EnvHttpProxyAgent } = createRequire(import.meta.url)("undici") as Undici;
  const options = {
    connections: MAX_CONNECTIONS_PER_HOST,
    pipelining: 1,
    headersTimeout: IDLE_TIMEOUT_MS,
    bodyTimeout: IDLE_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
  };
  const { env } = process;
  // Without proxyTunnel, undici would ask for a tunnel for http:// too, which many proxies grant for port 443 alone.
  const hasProxy = env.http_proxy || env.HTTP_PROXY || env.https_proxy || env.HTTPS_PROXY;
  agent = hasProxy
    ? new EnvHttpProxyAgent({ ...options, connect: { timeout: CONNECT_TIMEOUT_MS }, proxyTunnel: false })
    : new Agent({ ...options, connect: connectorOf(buildConnector) });
  return agent;
}

/**
 * Creates what opens connections whose sockets all receive in the same memory. Node.js would allocate 64 KiB for each read, which
 * takes twice as long, and which the allocator of the system keeps. undici takes bytes from `read` when `readable` is emitted, and
 * each exchange copies those of a body at once. Of a head that comes in several reads, undici keeps views, so short reads are copied.
 */
function connectorOf(build: Undici["buildConnector"]): buildConnector.connector {
  const parts = new WeakMap<Socket, Buffer>();
  const onread = {
    buffer: Buffer.allocUnsafeSlow(RECEIVED_BYTES),
    callback(this: Socket, byteLength: number, memory: Uint8Array): boolean {
      const received = Buffer.from(memory.buffer, memory.byteOffset, byteLength);
      parts.set(this, byteLength < MIN_SHARED_BYTES ? Buffer.from(received) : received);
      // What came before has to be taken first.
      if (this.readableLength === 0) this.emit("readable");
      const left = parts.get(this);
      parts.delete(this);
      return left === undefined || this.push(Buffer.from(left));
    },
  };
  const connect = build({ timeout: CONNECT_TIMEOUT_MS, onread } as buildConnector.BuildOptions);
  return (options, done) => {
    const socket = connect(options, done) as unknown as Socket;
    const { read } = socket;
    socket.read = function takePart(size) {
      const part = parts.get(this);
      parts.delete(this);
      return part ?? read.call(this, size);
    };
  };
}

/**
 * Sends one request and receives the whole answer. Bytes go from the socket into their final memory.
 * @throws ExchangeFailed; the signal's reason; what `plan` throws, and its `overlong`
 */
export function exchange(request: ExchangeRequest, plan: (head: AnswerHead) => BodyPlan): Promise<Answer> {
  const { method, url, headers, signal } = request;
  return new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | undefined;
    let head: AnswerHead | undefined;
    let sink: Sink | undefined;
    let receivedByteLength = 0;

    /** Ends the exchange before the whole answer is there. */
    function end(reason: Error): void {
      signal.removeEventListener("abort", onAbort);
      // Its memory may be used again.
      sink = undefined;
      reject(reason);
      controller?.abort(reason);
    }
    function onAbort(): void {
      end(signal.reason as Error);
    }
    function attempt(work: () => void): void {
      try {
        work();
      } catch (error) {
        end(error as Error);
      }
    }

    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener("abort", onAbort);
    connections().dispatch(
      { method, origin: url.origin, path: url.pathname + url.search, headers: { ...headers } },
      {
        onRequestStart(started) {
          controller = started;
          if (signal.aborted) started.abort(signal.reason as Error);
        },
        onResponseStart(_controller, status, lines) {
          attempt(() => {
            head = headOf(status, lines);
            const isFound = status === 200 || status === 206;
            sink = isFound ? createSink(method === "HEAD" ? NO_BODY : plan(head)) : createErrorSink();
          });
        },
        onResponseData(_controller, part) {
          receivedByteLength += part.length;
          attempt(() => sink?.write(part));
        },
        onResponseEnd() {
          attempt(() => {
            if (sink === undefined) return;
            const bytes = sink.end();
            signal.removeEventListener("abort", onAbort);
            resolve({ ...(head as AnswerHead), bytes, receivedByteLength });
          });
        },
        onResponseError: (_controller, error) => end(new ExchangeFailed(problemOf(error), { cause: error })),
      },
    );
  });
}

function headOf(status: number, lines: IncomingHttpHeaders): AnswerHead {
  return {
    status,
    header(name) {
      const value = lines[name];
      return Array.isArray(value) ? value.at(-1) : value;
    },
  };
}

/** Returns the code of a network error. Messages may contain addresses and queries. */
function problemOf(error: Error): string {
  const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
  if (code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT")
    return `no answer within ${IDLE_TIMEOUT_MS / 1_000} s`;
  if (code === "UND_ERR_CONNECT_TIMEOUT") return `no connection within ${CONNECT_TIMEOUT_MS / 1_000} s`;
  if (code === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH" || code === "UND_ERR_SOCKET")
    return "the answer was cut short";
  if (code === "UND_ERR_INVALID_ARG" && error.message.includes("407"))
    return "the proxy wants other credentials (407)";
  const known = typeof code === "string" ? code : cause?.code;
  return typeof known === "string" ? known : "the connection failed";
}

/** Receiver of a body. */
interface Sink {
  /** @throws ExchangeFailed if there are too many bytes */
  write(part: Uint8Array): void;
  /** @throws ExchangeFailed if there are too few bytes */
  end(): Uint8Array<ArrayBuffer>;
}

function createSink({ byteLength, kept, allocate = allocateOwn, ...bounds }: BodyPlan): Sink {
  if (byteLength === undefined) return createGrowingSink(bounds, allocate);
  const { offset, byteLength: keptByteLength } = kept ?? { offset: 0, byteLength };
  const bytes = allocate(keptByteLength);
  let filled = 0;
  return {
    write(part) {
      if (filled + part.length > byteLength)
        throw new ExchangeFailed(`expected ${byteLength} bytes, received more`);
      const start = Math.max(0, offset - filled);
      const end = Math.min(part.length, offset + keptByteLength - filled);
      if (start < end) bytes.set(part.subarray(start, end), filled + start - offset);
      filled += part.length;
    },
    end() {
      if (filled < byteLength) throw new ExchangeFailed(`expected ${byteLength} bytes, received ${filled}`);
      return bytes;
    },
  };
}

/** Creates the receiver of a body whose length is not announced. */
function createGrowingSink(
  { maxByteLength, overlong }: Pick<BodyPlan, "maxByteLength" | "overlong">,
  allocate: (byteLength: number) => Uint8Array<ArrayBuffer>,
): Sink {
  const parts: Uint8Array[] = [];
  let filled = 0;
  return {
    write(part) {
      filled += part.length;
      if (filled > maxByteLength) throw overlong(filled);
      parts.push(Uint8Array.from(part));
    },
    end() {
      const bytes = allocate(filled);
      let at = 0;
      for (const part of parts) {
        bytes.set(part, at);
        at += part.length;
      }
      return bytes;
    },
  };
}

/** Creates the receiver of an error's body, of which only the beginning is kept. */
function createErrorSink(): Sink {
  let kept: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  return {
    write(part) {
      if (kept.length < MAX_ERROR_BYTES)
        kept = new Uint8Array(Buffer.concat([kept, part.subarray(0, MAX_ERROR_BYTES - kept.length)]));
    },
    end: () => kept,
  };
}

/** Longest object that is read whole for a part of it, if a server ignores ranges. */
export const MAX_WHOLE_BYTES = 64 * 2 ** 20;

/** Length of an object, and which of its bytes an answer has. */
interface AnsweredBytes {
  /** Length of the body; undefined if the server does not announce it. */
  readonly byteLength: number | undefined;
  /** Undefined if the server does not announce it. */
  readonly objectByteLength: number | undefined;
  /** Part of the body to keep; undefined for all of it. */
  readonly kept?: { readonly offset: number; readonly byteLength: number };
}

/**
 * Finds out which bytes an answer of 200 or 206 has: those asked for, fewer from the same place on, or the whole object.
 * @throws ZpublishError `source-unreadable` if it has other bytes, or is a longer object than is read whole.
 */
export function answeredBytes(
  head: AnswerHead,
  range: ObjectRange | undefined,
  label: string,
): AnsweredBytes {
  assertStoredBytes(head, label);
  const announced = lengthOf(head.header("content-length"));
  if (head.status === 200) {
    if (announced === undefined && head.header("transfer-encoding") === undefined)
      throw unreadableObject(label, "expected a Content-Length or chunked encoding, received neither");
    const whole = { byteLength: announced, objectByteLength: announced };
    // The whole object is what was asked for, or the server does not know ranges.
    if (range === undefined || announced === undefined || isWhole(range, announced)) return whole;
    if (announced > MAX_WHOLE_BYTES) throw wholeError(label, range);
    return { ...whole, kept: resolveObjectRange(label, announced, { range }) };
  }
  const found = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(head.header("content-range") ?? "");
  if (range === undefined || found === null)
    throw unreadableObject(label, `expected ${describe(range)}, received a part without its Content-Range`);
  const [first, last, total] = found.slice(1).map(Number) as [number, number, number];
  const offset = "last" in range ? Math.max(0, total - range.last) : range.offset;
  const end = "last" in range ? total : Math.min(total, range.offset + range.byteLength);
  const isTail = "last" in range && last === end - 1 && first > offset;
  if ((first !== offset && !isTail) || last < first || last >= end)
    throw unreadableObject(
      label,
      `expected bytes ${offset}-${end - 1} of ${total}, received ${first}-${last}`,
    );
  const answered = { byteLength: last - first + 1, objectByteLength: total };
  // The beginning of a suffix is missing: all of it is asked for by its place.
  return isTail ? { ...answered, kept: { offset: 0, byteLength: 0 } } : answered;
}

/** Returns the error for a server that ignores ranges of an object that is too long to be read whole. */
export function wholeError(label: string, range: ObjectRange): ZpublishError {
  const limit = `${MAX_WHOLE_BYTES / 2 ** 20} MiB`;
  return unreadableObject(
    label,
    `expected ${describe(range)} (206), received the whole object (200), above ${limit}`,
  );
}

/**
 * Asserts that an answer is about an object as it is stored.
 * @throws ZpublishError `source-unreadable` if it was compressed on its way, or is a page, such as one of a network that wants a
 * sign-in, or one that a web server sends for every path.
 */
export function assertStoredBytes(head: AnswerHead, label: string): void {
  const encoding = head.header("content-encoding");
  if (encoding !== undefined && encoding !== "identity")
    throw unreadableObject(
      label,
      `expected the stored bytes, received them with Content-Encoding ${encoding}`,
    );
  if (/^(?:text\/html|application\/xhtml\+xml)\b/i.test(head.header("content-type") ?? ""))
    throw unreadableObject(label, "expected the stored bytes, received a page (HTML)");
}

function isWhole(range: ObjectRange, announced: number): boolean {
  return "last" in range ? announced <= range.last : range.offset === 0 && announced === range.byteLength;
}

function describe(range: ObjectRange | undefined): string {
  if (range === undefined) return "the whole object";
  if ("last" in range) return `the last ${range.last} bytes`;
  return `bytes ${range.offset}-${range.offset + range.byteLength - 1}`;
}

/** Returns the Range header of a part (RFC 9110, 14.1.2). */
export function rangeHeader(range: ObjectRange): string {
  if ("last" in range) return `bytes=-${range.last}`;
  return `bytes=${range.offset}-${range.offset + range.byteLength - 1}`;
}

/** Returns the version of an object from an answer: of its entity tag, else of its time and length, else of its length. */
export function versionOfAnswer(head: AnswerHead, byteLength: number | undefined): ObjectVersion {
  const etag = head.header("etag");
  const lastModified = head.header("last-modified");
  const length = (byteLength ?? 0).toString(36);
  // A weak tag may become strong when the object is a second old (Apache), and is the same version then.
  if (etag !== undefined)
    return { token: `e${digestOf(etag.replace(/^W\//, ""))}.${length}`, etag, lastModified };
  const time = lastModified === undefined ? Number.NaN : Date.parse(lastModified);
  if (Number.isNaN(time)) return { token: `n${length}` };
  return { token: `t${time.toString(36)}.${length}`, lastModified };
}

/** Returns the entity tag with which a request can be made conditional on a version; undefined if it has none. */
export function strongTag({ etag }: ObjectVersion): string | undefined {
  return etag?.startsWith('"') ? etag : undefined;
}

/** Tells whether another attempt may have another answer. */
export function isTransient(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || (status >= 500 && status !== 501);
}

/** Parses a length in a header; undefined if there is none. */
export function lengthOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** Returns the error for an object that cannot be read, with its name. */
export function unreadableObject(label: string, problem: string, cause?: unknown): ZpublishError {
  return new ZpublishError("source-unreadable", `'${label}': ${problem}`, { details: { key: label }, cause });
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 20);
}

/** Returns the error for an answer that has no object. @param reason Why the server refuses it. */
export function refusalError(
  request: ReadObjectOptions & { readonly key: string },
  answer: Answer,
  location: string,
  reason: string,
): ZpublishError {
  const { key, version, ifMatch, range } = request;
  const { status } = answer;
  if (status === 412 && version !== undefined) return changed(key);
  if (status === 412 && ifMatch !== undefined)
    return unreadableObject(key, `${location} has changed: expected the ETag ${ifMatch}, received another`);
  if (status === 416 && range !== undefined) {
    const total = /^bytes \*\/(\d{1,15})$/.exec(answer.header("content-range") ?? "")?.[1];
    if (total === undefined) return unreadableObject(key, `expected ${describe(range)}, received none (416)`);
    const received = Number(total);
    const isOther = version !== undefined && versionOfAnswer(answer, received).token !== version.token;
    return isOther && answer.header("etag") !== undefined ? changed(key) : shortObject(key, range, received);
  }
  if (status >= 300 && status < 400 && status !== 304)
    return unreadableObject(
      key,
      `${location} redirects to ${targetOf(answer)}: expected a location that does not`,
    );
  return unreadableObject(key, `${location} refuses it (${reason})`);
}

/** Returns the error for an object that is longer than it may be. */
export function overlongError(key: string, expected: number, received: number): ZpublishError {
  const message = `'${key}': expected at most ${expected} bytes, received more`;
  return new ZpublishError("corrupt-chunk", message, { details: { key, expected, received } });
}

/** Returns the error for an object that has another version than its reader expects. */
export function changed(key: string): ZpublishError {
  return new ZpublishError("source-changed", `'${key}' changed while it was being read`, {
    details: { key },
  });
}

/** Returns where a redirect leads, without its query, which may have credentials. */
function targetOf({ header }: Answer): string {
  try {
    const { origin, pathname } = new URL(header("location") ?? "");
    return origin + pathname;
  } catch {
    return "another path";
  }
}

/** Attempts at one request within the time limit. */
const MAX_ATTEMPTS = 5;
const FIRST_PAUSE_MS = 100;

/** A failure after which another attempt may succeed. */
export class Transient extends Error {
  /** Milliseconds that the server asks to wait; undefined if it does not say. */
  readonly retryAfterMs: number | undefined;

  constructor(problem: string, retryAfterMs?: number, cause?: unknown) {
    super(problem, { cause });
    this.retryAfterMs = retryAfterMs;
  }
}

/** Options of {@link withRetries}. */
interface RetryOptions {
  /** Aborts when no caller waits for the result any more. */
  readonly signal: AbortSignal | undefined;
  /** Called before every further attempt. */
  readonly onRetry: () => void;
  /** Runs all attempts when it is their turn, unless the signal is aborted before. Waiting counts, too. */
  readonly inTurn: <T>(run: () => Promise<T>, signal: AbortSignal) => Promise<T>;
}

/**
 * Runs `attempt` until it does not fail with {@link Transient}, with growing pauses, within the time limit of sources
 * (`--source-timeout`).
 * @throws the last Transient; the reason of the signal; what `attempt` throws.
 */
export async function withRetries<T>(
  attempt: (signal: AbortSignal) => Promise<T>,
  { signal, onRetry, inTurn }: RetryOptions,
): Promise<T> {
  // Before the clock runs: for the first request, code is loaded.
  connections();
  const limitMs = sourceTimeoutMs();
  const deadlineMs = performance.now() + limitMs;
  const controller = new AbortController();
  const onAbort = () => controller.abort(signal?.reason);
  if (signal?.aborted) onAbort();
  else signal?.addEventListener("abort", onAbort, { once: true });
  const expire = () => controller.abort(new Transient(`no answer within ${limitMs / 1_000} s`));
  const timer = setTimeout(expire, limitMs);

  async function run(): Promise<T> {
    for (let count = 1; ; count++) {
      try {
        return await attempt(controller.signal);
      } catch (error) {
        if (!(error instanceof Transient) || controller.signal.aborted || count === MAX_ATTEMPTS) throw error;
        // Spread, so that requests that failed together do not come back together.
        const grown = FIRST_PAUSE_MS * 2 ** (count - 1) * (0.5 + Math.random());
        const pauseMs = Math.max(grown, error.retryAfterMs ?? 0);
        if (performance.now() + pauseMs >= deadlineMs) throw error;
        await delay(pauseMs, undefined, { signal: controller.signal }).catch(() => undefined);
        controller.signal.throwIfAborted();
        onRetry();
      }
    }
  }

  try {
    return await inTurn(run, controller.signal);
  } catch (error) {
    throw controller.signal.aborted ? controller.signal.reason : error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}

/** Parses `Retry-After`, which has seconds or a date; undefined if it has neither. @returns Milliseconds */
export function parseRetryAfter(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  const time = Date.parse(text);
  return Number.isNaN(time) ? undefined : Math.max(0, time - Date.now());
}
