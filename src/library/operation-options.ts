import type { z } from "zod";
import { EDGE_OPTIONS } from "../config/edge-options.js";
import { LIMIT_OPTIONS } from "../config/limit-options.js";
import { OBSERVE_OPTIONS } from "../config/observe-options.js";

/**
 * How a server is bounded, takes its leave, stands at the edge and is seen from outside: by the names, rules and defaults of
 * the command line. Sizes are bytes, or texts such as `512MiB`; paths are relative to the working directory.
 */
export interface OperationOptions {
  /** Connections at once; another is closed at once. Default 10,000. */
  readonly maxConnections?: number;
  /** Requests being answered at once. Default 16,384. */
  readonly maxRequests?: number;
  /** The same of pages and metadata, which are shed first. Default 8,192. */
  readonly maxPages?: number;
  /** Bodies being made or not taken yet by clients; beyond it chunks wait. Default 1 GiB. */
  readonly maxResponseBytes?: number | string;
  /** Chunks that wait for a worker, or for the disk. Default 16,384. */
  readonly maxQueuedChunks?: number;
  /** Request line and headers that come in pieces; beyond it 431. Default 16 KiB. */
  readonly maxHeaderSize?: number | string;
  /** Path and query of a request. Default 8 KiB. */
  readonly maxUrlLength?: number | string;
  /** Seconds until an answer begins; beyond it 503. Default 150. */
  readonly requestTimeout?: number;
  /** Seconds after which a client that takes nothing of its answer is dropped. Default 60. */
  readonly stallTimeout?: number;
  /** Seconds for one chunk in a worker; beyond it 500, and another worker. Default 120. */
  readonly chunkTimeout?: number;
  /** Seconds for one look at, or read from, a source; beyond it 500. Default 30. */
  readonly sourceTimeout?: number;
  /** JavaScript heap of one worker. Default 512 MiB. */
  readonly workerMemory?: number | string;
  /** What a chunk that is not served as stored may decode to. Default 1 GiB. */
  readonly maxChunkSize?: number | string;
  /** Seconds that `close()` goes on as before, but not ready. Default 0. */
  readonly drainDelay?: number;
  /** Seconds that it then finishes what is in flight for, at most. Default 30. */
  readonly drainTimeout?: number;
  /** Whose X-Forwarded-… headers and PROXY headers count: addresses, networks, `loopback`, `private`, with commas. Default: nobody's. */
  readonly trustedProxies?: string;
  /** Take the client's address from the PROXY protocol (versions 1 and 2) of trusted proxies. Default false. */
  readonly proxyProtocol?: boolean;
  /** Certificate chain (PEM) for HTTPS, with `tlsKey`. Default: plain HTTP. */
  readonly tlsCert?: string;
  /** Its private key (PEM). */
  readonly tlsKey?: string;
  /** File of bearer tokens, one per line, without one of which nothing is answered. Default: everybody may read. */
  readonly tokenFile?: string;
  /** Answer `/metrics` for Prometheus. Default true. */
  readonly metrics?: boolean;
  /** A port of its own for `/healthz`, `/readyz` and `/metrics`; 0 picks a free one. Default: the same port. */
  readonly adminPort?: number;
  /** Address to listen on for that. Default `127.0.0.1`. */
  readonly adminHost?: string;
  /** Share of requests that are logged, 0 to 1; above 0, every 5xx is. Default 0. */
  readonly accessLog?: number;
  /** Header with the id that a balancer gave a request. Default `x-request-id`. */
  readonly requestIdHeader?: string;
}

const SPECS = { ...LIMIT_OPTIONS, ...EDGE_OPTIONS, ...OBSERVE_OPTIONS };

type OperationShape = {
  readonly [K in keyof typeof SPECS & keyof OperationOptions]: z.ZodOptional<(typeof SPECS)[K]["schema"]>;
};

/** The schemas of {@link OperationOptions}: those of flags, variables and files. */
export const operationShape = Object.fromEntries(
  Object.entries(SPECS).map(([key, { schema }]) => [key, (schema as z.ZodType).optional()]),
) as OperationShape;
