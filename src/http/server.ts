import { setTimeout as delay } from "node:timers/promises";
import { LinkedList } from "../collections/linked-list.js";
import { ZpublishError } from "../errors.js";
import { settlesWithin } from "../event-loop/settles-within.js";
import { type AdminEndpoint, adminEndpointsBeside } from "./admin-endpoint.js";
import { sendError } from "./error-reply.js";
import type { Exchange, ExchangeContext, RequestMetrics } from "./exchange.js";
import { answerWith, type HttpApp, prepareApp, type RunningApp } from "./handle-request.js";
import { reachableHost } from "./listening/listener.js";
import { type ConnectionStats, createListeners, type ListenersOptions } from "./listening/listeners.js";
import { DEFAULT_MAX_HEADER_BYTES } from "./listening/uws-listener.js";
import {
  createLoad,
  createOverdueRequests,
  createRequestCounts,
  DEFAULT_LOAD_LIMITS,
  type Load,
  type LoadLimits,
  type LoadStats,
} from "./load-limits.js";
import { createRequestLogs } from "./request-log.js";
import { createBodySender, type SenderStats } from "./stream-body.js";

/** Idle time after which remaining connections are dropped. Clients that saw `Connection: close` have left by then. */
const QUIET_MS = 500;
const LOOK_MS = 20;
/** How often the requests of a former app are counted. */
const LOOK_AT_REQUESTS_MS = 100;

/**
 * Waits, after a server has stopped accepting connections, until no request is in flight and no connection is left or in use.
 * @param connections Returns the number of open connections.
 * @param graceMs The longest time to wait.
 */
async function drainConnections(load: Load, connections: () => number, graceMs: number): Promise<void> {
  const endMs = performance.now() + graceMs;
  let { requests } = load.stats;
  let sinceMs = performance.now();
  for (;;) {
    const inTime = await settlesWithin(load.idle(), Math.max(0, endMs - performance.now()));
    if (!inTime || connections() === 0) return;
    const nowMs = performance.now();
    if (load.stats.requests !== requests) {
      requests = load.stats.requests;
      sinceMs = nowMs;
    }
    if (nowMs >= endMs || nowMs - sinceMs >= QUIET_MS) return;
    await delay(Math.min(LOOK_MS, endMs - nowMs));
  }
}

/** Waits until no request is left that is answered in this context. */
async function drainRequests(open: Iterable<Exchange>, context: ExchangeContext): Promise<void> {
  while (hasRequestOf(open, context)) await delay(LOOK_AT_REQUESTS_MS);
}

function hasRequestOf(open: Iterable<Exchange>, context: ExchangeContext): boolean {
  // The oldest come first: if one is left, it is among them.
  for (const exchange of open) if (exchange.context === context) return true;
  return false;
}

/** Limits of requests. */
export interface RequestLimits extends LoadLimits {
  /** Bytes of path and query; a longer one is answered 414. Default 8 KiB. */
  readonly maxUrlBytes: number;
  /** Time after which a client is dropped that took less than 1 KiB per second of it. Default 60 s. */
  readonly stallTimeoutMs: number;
  /** Time after which a request is answered 503 if its answer has not begun. Default 150 s. */
  readonly requestTimeoutMs: number;
}

/** Defaults of {@link RequestLimits}. */
const DEFAULT_REQUEST_LIMITS: RequestLimits = {
  ...DEFAULT_LOAD_LIMITS,
  maxUrlBytes: 8 * 1024,
  stallTimeoutMs: 60_000,
  requestTimeoutMs: 150_000,
};

/** What a server listens with and is limited by. */
export interface HttpServerOptions extends ListenersOptions {
  readonly limits?: Partial<RequestLimits>;
  /** Listener of all admin endpoints, of which then only the open ones are answered beside the routes. Default: null, all are. */
  readonly admin?: { readonly host: string; readonly port: number } | null;
  /** Endpoints for operators, answered while the server starts, too. Default: none. */
  readonly endpoints?: readonly AdminEndpoint[];
  /** Renders errors for browsers before the first app. Default: they get JSON. */
  readonly errorPage?: HttpApp["errorPage"];
}

/** Where a server listens. */
interface HttpAddress {
  readonly host: string;
  readonly port: number;
  /** How this machine reaches it, root path included, without a slash behind it. */
  readonly url: string;
}

/** A server; listens once. */
export interface HttpServer {
  /**
   * Answers with this app from now on. Requests in flight are answered with the one they began with. Until the first app
   * every request is answered 503.
   * @returns When the last request of the previous app is answered.
   * @throws ZpublishError `invalid-config` if routes conflict or an option is invalid: the present app stays.
   */
  use(app: HttpApp): Promise<void>;
  /** Updates the request limits; omitted ones keep their values. */
  limit(limits: Partial<RequestLimits>): void;
  /**
   * Begins to listen.
   * @param port 0 picks a free one.
   * @throws ZpublishError `invalid-config` if the address cannot be listened on, `unsupported` if the port cannot be shared.
   */
  listen(host: string, port: number): Promise<HttpAddress>;
  /**
   * Begins to listen for admin endpoints, also before the first app.
   * @returns undefined if they are answered beside the routes.
   * @throws ZpublishError as `listen` does.
   */
  listenAdmin(): Promise<HttpAddress | undefined>;
  /** See {@link TlsListener.reload}; does nothing without TLS. */
  reloadTls(): Promise<void>;
  /**
   * Stops listening, answers requests on open connections until none comes any more, then drops them; the listener of
   * admin endpoints last.
   * @param graceMs Time limit in milliseconds; requests not begun then are answered 503. Default 5,000.
   * @returns Number of requests that were cut off.
   */
  close(graceMs?: number): Promise<number>;
  readonly stats: HttpServerStats;
  readonly metrics: RequestMetrics;
}

/** Counts of one server. */
interface HttpServerStats extends LoadStats, ConnectionStats, SenderStats {
  /** When the certificate in use expires, on the clock of `Date.now()`; undefined without TLS. */
  readonly certificateExpiresMs: number | undefined;
}

const DEFAULT_GRACE_MS = 5_000;
/** For what the kernel has not taken from uWebSockets.js yet when the last answer is written. */
const FLUSH_MS = 50;

/** What all apps of a server share, and what their requests are answered with. */
interface SharedParts
  extends Omit<ExchangeContext, "cors" | "cacheControl" | "access" | "errorPage" | "rootPath"> {
  readonly limits: RequestLimits;
  /** Endpoints for operators that are answered beside the routes. */
  readonly endpoints: readonly AdminEndpoint[];
}

/** Creates a server without an app. It does not listen yet, and has loaded nothing native. */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { log, admin = null, endpoints = [] } = options;
  const limits = { ...DEFAULT_REQUEST_LIMITS, ...options.limits };
  const load = createLoad(limits);
  const sender = createBodySender(load, () => limits.stallTimeoutMs);
  /** Requests whose answer is not sent yet. */
  const open = new LinkedList<Exchange>();
  const metrics = {
    counts: createRequestCounts(),
    overdue: createOverdueRequests(open, () => limits.requestTimeoutMs, sendError),
    logs: createRequestLogs(log),
  };
  const listeners = createListeners(options);
  const scheme = options.tls == null ? "http" : "https";
  const state = { isDraining: false };
  const shared: SharedParts = {
    ...{
      load,
      scheme,
      limits,
      endpoints: admin === null ? endpoints : endpoints.filter(({ isOpen }) => isOpen),
    },
    ...{ sender, log, open, state, metrics },
    maxHeaderBytes: options.maxHeaderBytes ?? DEFAULT_MAX_HEADER_BYTES,
  };
  /** The app that answers requests of now. */
  const current = { app: runApp({ routes: [], errorPage: options.errorPage }, false, shared) };
  let hasListened = false;
  let closing: Promise<number> | undefined;

  async function listen(host: string, port: number): Promise<HttpAddress> {
    if (hasListened || closing !== undefined) throw new Error("A server listens once");
    hasListened = true;
    const actualPort = await listeners.listen(host, port, answerWith(current)).catch((error: unknown) => {
      hasListened = false;
      throw error;
    });
    if (closing !== undefined) {
      listeners.close();
      throw new ZpublishError("draining", "The server was closed while it began to listen");
    }
    const { rootPath } = current.app.routing;
    return { host, port: actualPort, url: `${scheme}://${reachableHost(host)}:${actualPort}${rootPath}` };
  }

  async function listenAdmin(): Promise<HttpAddress | undefined> {
    if (admin === null) return undefined;
    const { host } = admin;
    const app = runAdmin({ ...shared, endpoints });
    const port = await listeners.listenAdmin(host, admin.port, answerWith({ app }));
    const url = `http://${reachableHost(host)}:${port}`;
    log.info({ url }, "health and metrics are answered here");
    return { host, port, url };
  }

  async function closeNow(graceMs: number): Promise<number> {
    // Before clients are told that their connections close: they would connect again at once, and the system resets what has connected
    // but is not accepted when a server stops listening.
    await listeners.stopAccepting();
    state.isDraining = true;
    await drainConnections(load, () => listeners.stats.connections, graceMs);
    const cutOff = [...open].filter((exchange) => exchange.context.load === load).length;
    // An answer that has begun can only be cut off; the others are told, so that a proxy asks another server.
    for (const exchange of [...open]) {
      if (!exchange.started)
        sendError(exchange, new ZpublishError("draining", "The server is shutting down"));
    }
    if (listeners.stats.connections > 0) await delay(FLUSH_MS);
    listeners.close();
    sender.close();
    return cutOff;
  }

  return {
    use(next) {
      const { context } = current.app;
      current.app = runApp(next, true, shared);
      return drainRequests(open, context);
    },
    limit: (next) => void Object.assign(limits, next),
    listen,
    listenAdmin,
    reloadTls: () => listeners.reloadTls(),
    close(graceMs = DEFAULT_GRACE_MS) {
      closing ??= closeNow(graceMs);
      return closing;
    },
    get stats() {
      const { certificateExpiresMs } = listeners;
      return { ...load.stats, ...listeners.stats, ...sender.stats, certificateExpiresMs };
    },
    metrics,
  };
}

/**
 * Prepares an app to answer requests.
 * @param isPublished False before the first app: then only admin endpoints are answered.
 * @throws ZpublishError as `prepareApp`
 */
function runApp(app: HttpApp, isPublished: boolean, shared: SharedParts): RunningApp {
  const { limits, endpoints, ...common } = shared;
  const { routing, ...answering } = prepareApp(app);
  const { rootPath } = routing;
  return {
    routing,
    dispatching: {
      routing: isPublished ? routing : undefined,
      admin: adminEndpointsBeside(endpoints, app.routes, rootPath),
      limits,
    },
    context: { ...common, ...answering, rootPath },
  };
}

/** Prepares the admin listener. Its requests have a load of their own: closing does not wait for them. */
function runAdmin(shared: SharedParts): RunningApp {
  // A web page opened on the same machine must not read them.
  const app: HttpApp = { routes: [], cacheControl: "no-store", corsOrigin: "" };
  return runApp(app, true, { ...shared, load: createLoad(DEFAULT_LOAD_LIMITS), scheme: "http" });
}
