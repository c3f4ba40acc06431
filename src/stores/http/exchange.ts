import { Agent, type Dispatcher, EnvHttpProxyAgent } from "undici";
import { allocateOwn } from "../open-file.js";

/** Connections to one host at a time, of all stores together. */
const MAX_CONNECTIONS_PER_HOST = 64;
const CONNECT_TIMEOUT_MS = 5_000;
/** Time without progress after which an exchange counts as hanging. */
const IDLE_TIMEOUT_MS = 10_000;
/** Idle connections stay open for less time than usual servers keep them. */
const KEEP_ALIVE_MS = 4_000;
/** Bytes of an error's body that are kept: enough for the code of an S3 error. */
const MAX_ERROR_BYTES = 16 * 1024;

/** A request for (part of) one object. */
export interface ExchangeRequest {
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

let agent: Dispatcher | undefined;

/** Returns the connections of this process, through the proxies that the environment names. */
function connections(): Dispatcher {
  const options = {
    connections: MAX_CONNECTIONS_PER_HOST,
    pipelining: 1,
    connect: { timeout: CONNECT_TIMEOUT_MS },
    headersTimeout: IDLE_TIMEOUT_MS,
    bodyTimeout: IDLE_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
  };
  const { env } = process;
  // Without proxyTunnel, undici would ask for a tunnel for http:// too, which many proxies grant for port 443 alone.
  const hasProxy = env.http_proxy || env.HTTP_PROXY || env.https_proxy || env.HTTPS_PROXY;
  agent ??= hasProxy ? new EnvHttpProxyAgent({ ...options, proxyTunnel: false }) : new Agent(options);
  return agent;
}

/**
 * Sends one request and receives the whole answer. Bytes go from the socket into their final memory.
 * @param plan Called with the head of an answer of 200 or 206; what it throws ends the exchange.
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
            head = {
              status,
              header(name) {
                const value = lines[name];
                return Array.isArray(value) ? value.at(-1) : value;
              },
            };
            sink =
              status === 200 || status === 206
                ? createSink(method === "HEAD" ? NO_BODY : plan(head))
                : createErrorSink();
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
