import type { z } from "zod";
import { ACCESS_OPTIONS, LIMIT_OPTIONS, OBSERVE_OPTIONS } from "../config/options.js";

/**
 * Limits, draining, access and observation of a server, with names, rules and defaults of the command line. Sizes are
 * bytes, or texts such as `512MiB`. Paths are relative to the working directory.
 */
export interface RuntimeOptions {
  /** Connections at a time; further ones are closed. Default 10,000. */
  readonly maxConnections?: number;
  /** Requests in flight at a time. Default 16,384. */
  readonly maxRequests?: number;
  /** Requests in flight from which on pages and metadata get 503. Default 8,192. */
  readonly maxPages?: number;
  /** Bodies that are being made or sent; at the bound, chunks wait. Default 1 GiB. */
  readonly maxResponseBytes?: number | string;
  /** Chunks that wait for a worker, or for the disk. Default 16,384. */
  readonly maxQueuedChunks?: number;
  /** Request line and headers that come in pieces; longer ones get 431. Default 16 KiB. */
  readonly maxHeaderSize?: number | string;
  /** Path and query of a request. Default 8 KiB. */
  readonly maxUrlLength?: number | string;
  /** Seconds until an answer begins; after it 503. Default 150. */
  readonly requestTimeout?: number;
  /** Seconds after which a client that reads nothing of its answer is dropped. Default 60. */
  readonly stallTimeout?: number;
  /** Seconds of one chunk in a worker; after it 500, and another worker. Default 120. */
  readonly chunkTimeout?: number;
  /** Seconds of one call to a source; after it 500. Default 30. */
  readonly sourceTimeout?: number;
  /** JavaScript heap of one worker. Default 512 MiB. */
  readonly workerMemory?: number | string;
  /** Datasets of collections and plugins that are open at a time. Default 1,000. */
  readonly maxOpenDatasets?: number;
  /** Decoded size of a chunk that is not passed through. Default 1 GiB. */
  readonly maxChunkSize?: number | string;
  /** Seconds in which the server, once `close()` is called, answers as before but is not ready. Default 0. */
  readonly drainDelay?: number;
  /** Seconds for requests in flight after that. Default 30. */
  readonly drainTimeout?: number;
  /** Proxies whose X-Forwarded-… headers are trusted: addresses, networks, `loopback`, `private`, with commas. Default: none. */
  readonly trustedProxies?: string;
  /** Certificate chain (PEM) for HTTPS, with `tlsKey`. Default: plain HTTP. */
  readonly tlsCert?: string;
  /** Private key (PEM) of the certificate. */
  readonly tlsKey?: string;
  /** File of bearer tokens, one per line; requests without one get 401. Default: no token is needed. */
  readonly tokenFile?: string;
  /** True if the server answers `/metrics` for Prometheus. Default true. */
  readonly metrics?: boolean;
  /** Another port for `/healthz`, `/readyz` and `/metrics`; 0 picks a free one. Default: the same port. */
  readonly adminPort?: number;
  /** Address of that port. Default `127.0.0.1`. */
  readonly adminHost?: string;
  /** Share of requests that are logged, 0 to 1; above 0, every 5xx is. Default 0. */
  readonly accessLog?: number;
  /** Header with the id that a balancer gave a request. Default `x-request-id`. */
  readonly requestIdHeader?: string;
}

const SPECS = { ...LIMIT_OPTIONS, ...ACCESS_OPTIONS, ...OBSERVE_OPTIONS };

type RuntimeShape = {
  readonly [K in keyof typeof SPECS & keyof RuntimeOptions]: z.ZodOptional<(typeof SPECS)[K]["schema"]>;
};

/** The schemas of {@link RuntimeOptions}: those of flags, variables and files. */
export const runtimeShape = Object.fromEntries(
  Object.entries(SPECS).map(([key, { schema }]) => [key, (schema as z.ZodType).optional()]),
) as RuntimeShape;
