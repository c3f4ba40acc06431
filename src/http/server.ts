import type { HttpRequest, HttpResponse, TemplatedApp, us_listen_socket } from "uWebSockets.js";
import { setTimeout as delay } from "node:timers/promises";
import { ZpublishError } from "../errors.js";
import type { Log } from "../observe/log.js";
import { createRecentMap } from "../recent-map.js";
import { settlesWithin } from "../settles-within.js";
import { type Answering, answer } from "./answer.js";
import { createBodySender } from "./body-sender.js";
import { ALLOWED_METHODS, createCors } from "./cors.js";
import { Exchange, type ExchangeContext } from "./exchange.js";
import { headerField, isHeaderValue } from "./header-field.js";
import { createLoad, DEFAULT_LOAD_LIMITS, type LoadLimits, type LoadStats } from "./load.js";
import { bracketed, listenFailure, probeAddress } from "./probe-address.js";
import type { Route } from "./route.js";
import { createRouter } from "./router.js";
import { createSeenPaths } from "./seen-paths.js";
import { sendError } from "./send-error.js";
import { loadUws, type Uws } from "./uws.js";

/** What a server is made of. */
export interface HttpServerOptions {
  readonly routes: readonly Route[];
  readonly log: Log;
  /** Prefix of all paths: empty (the default), or begins with a slash and ends without one. */
  readonly rootPath?: string;
  /** `*` (the default), origins separated by commas, or empty: other origins may read nothing. */
  readonly corsOrigin?: string;
  /** `Cache-Control` of replies that say nothing of it. Default: `public, max-age=0, must-revalidate`. */
  readonly cacheControl?: string;
  readonly limits?: Partial<LoadLimits>;
  /** A request other than GET whose body is longer has its connection closed, not its body read away. Default 1 MiB. */
  readonly maxRequestBodyBytes?: number;
  /** A client that takes nothing of its answer for so long is dropped. Default 60 s. */
  readonly stallTimeoutMs?: number;
  /**
   * Other processes of the same user may listen on the port, too, and Linux spreads connections over all of them.
   * Default false: a port that is taken is refused.
   */
  readonly sharesPort?: boolean;
}

/** Where a server listens. */
export interface HttpAddress {
  readonly host: string;
  readonly port: number;
  /** How this machine reaches it, root path included, without a slash behind it. */
  readonly url: string;
}

/** A server; listens once. */
export interface HttpServer {
  /**
   * Begins to listen.
   * @param port 0 picks a free one.
   * @throws ZpublishError `invalid-config` where the address cannot be had, `unsupported` where uWebSockets.js cannot be loaded.
   */
  listen(host: string, port: number): Promise<HttpAddress>;
  /**
   * Stops listening, lets answers that are under way be finished, then drops all connections. Chunks asked for on
   * connections that are open are still answered meanwhile; pages are answered 503.
   * @param graceMs How long to wait; what is not begun then is answered 503. Default 5,000.
   */
  close(graceMs?: number): Promise<void>;
  /** Lets go of replies that are kept: for when they are not current any more, and hold what is old in memory. */
  forgetReplies(): void;
  readonly stats: LoadStats;
}

export const DEFAULT_CACHE_CONTROL = "public, max-age=0, must-revalidate";
const DEFAULT_MAX_REQUEST_BODY_BYTES = 2 ** 20;
const DEFAULT_STALL_TIMEOUT_MS = 60_000;
const DEFAULT_GRACE_MS = 5_000;
/** Replies that are kept for later requests of their paths: about a kilobyte each. */
const MAX_KEPT_REPLIES = 4_096;
/** Fewer than are kept: whoever reads more paths than this one after the other asks for none of them again soon. */
const SEEN_PATHS = 2_048;
/** For what the kernel has not taken from uWebSockets.js yet when the last answer is written. */
const FLUSH_MS = 50;

/**
 * Makes a server of routes. It does not listen yet, and has loaded nothing native.
 * @throws ZpublishError `invalid-config` where routes conflict or an option is no good.
 */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { log, rootPath = "" } = options;
  const maxRequestBodyBytes = options.maxRequestBodyBytes ?? DEFAULT_MAX_REQUEST_BODY_BYTES;
  if (rootPath !== "" && !/^(?:\/[A-Za-z0-9\-._~]+)+$/.test(rootPath)) {
    throw new ZpublishError(
      "invalid-config",
      `Root path: expected '' or one like '/data', received '${rootPath}'`,
    );
  }
  const cacheControl = options.cacheControl ?? DEFAULT_CACHE_CONTROL;
  if (!isHeaderValue(cacheControl)) {
    const received = JSON.stringify(cacheControl);
    throw new ZpublishError(
      "invalid-config",
      `Cache-Control: expected printable ASCII, received ${received}`,
    );
  }
  const answering: Answering = {
    router: createRouter(options.routes),
    rootPath,
    kept: createRecentMap(MAX_KEPT_REPLIES),
    seen: createSeenPaths(SEEN_PATHS),
  };
  const load = createLoad({ ...DEFAULT_LOAD_LIMITS, ...options.limits });
  const sender = createBodySender(options.stallTimeoutMs ?? DEFAULT_STALL_TIMEOUT_MS);
  const cors = createCors(options.corsOrigin ?? "*");
  const context: ExchangeContext = {
    cors,
    cacheControl,
    load,
    sender,
    log,
    open: new Set(),
    draining: false,
  };

  let app: TemplatedApp | undefined;
  let uws: Uws | undefined;
  let listening: us_listen_socket | undefined;
  let closing: Promise<void> | undefined;

  function onRequest(res: HttpResponse, req: HttpRequest): void {
    const method = req.getCaseSensitiveMethod();
    const exchange = new Exchange(res, req, context, method === "HEAD" ? "HEAD" : "GET");
    try {
      if (method === "GET" || method === "HEAD") {
        const pending = answer(exchange, answering);
        pending?.catch((error: unknown) => sendError(exchange, error));
      } else if (method === "OPTIONS") {
        exchange.writeHead("204 No Content", headerField("Allow", ALLOWED_METHODS) + cors.preflight);
        exchange.endBodiless();
      } else {
        const error = new ZpublishError("method-not-allowed", `Method ${method} is not allowed`);
        sendError(exchange, error, isLongBody(exchange, maxRequestBodyBytes));
      }
    } catch (error) {
      sendError(exchange, error);
    } finally {
      exchange.release();
    }
  }

  async function listen(host: string, port: number): Promise<HttpAddress> {
    if (app !== undefined || closing !== undefined) throw new Error("A server listens once");
    if (!Number.isInteger(port) || port < 0 || port > 65_535) {
      throw new ZpublishError("invalid-config", `Port: expected 0 to 65535, received ${port}`);
    }
    uws = await loadUws();
    app = uws.App().any("/*", onRequest);
    const socket = listenOn(app, host, port, options.sharesPort ? 0 : uws.LIBUS_LISTEN_EXCLUSIVE_PORT);
    if (socket === undefined) {
      app = undefined;
      await probeAddress(host, port);
      throw listenFailure(host, port, undefined);
    }
    listening = socket;
    const actualPort = uws.us_socket_local_port(socket);
    return { host, port: actualPort, url: `http://${reachableHost(host)}:${actualPort}${rootPath}` };
  }

  async function closeNow(graceMs: number): Promise<void> {
    context.draining = true;
    if (uws !== undefined && listening !== undefined) uws.us_listen_socket_close(listening);
    listening = undefined;
    await settlesWithin(load.idle(), graceMs);
    // An answer that has begun can only be cut off; the others are told, so that a proxy asks another server.
    for (const exchange of [...context.open]) {
      if (!exchange.started)
        sendError(exchange, new ZpublishError("draining", "The server is shutting down"));
    }
    if (app !== undefined) await delay(FLUSH_MS);
    app?.close();
    sender.close();
  }

  return {
    listen,
    close(graceMs = DEFAULT_GRACE_MS) {
      closing ??= closeNow(graceMs);
      return closing;
    },
    forgetReplies: () => answering.kept.clear(),
    stats: load.stats,
  };
}

/**
 * Without the exclusive option, uWebSockets.js shares a taken port with whoever else shares it, and each of the two
 * servers gets some of the connections. The overload with a host and options is not in its types.
 * @returns undefined where the address cannot be had.
 */
function listenOn(
  app: TemplatedApp,
  host: string,
  port: number,
  options: number,
): us_listen_socket | undefined {
  const { listen } = app as unknown as {
    listen(
      host: string,
      port: number,
      options: number,
      callback: (socket: us_listen_socket | false) => void,
    ): void;
  };
  let listening: us_listen_socket | undefined;
  listen.call(app, host, port, options, (socket) => {
    // Called before listen() returns.
    if (socket) listening = socket;
  });
  return listening;
}

const WILDCARDS: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "[::1]" };

function reachableHost(host: string): string {
  return WILDCARDS[host] ?? bracketed(host);
}

function isLongBody(exchange: Exchange, maxBytes: number): boolean {
  return (
    exchange.header("transfer-encoding") !== undefined ||
    Number(exchange.header("content-length") ?? 0) > maxBytes
  );
}
