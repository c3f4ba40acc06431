import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import { setTimeout as delay } from "node:timers/promises";
import { ZpublishError } from "../errors.js";
import { LinkedList } from "../linked-list.js";
import { createBodySender, type SenderStats } from "./body-sender.js";
import type { ConnectionStats } from "./connection-limit.js";
import { Exchange, type ExchangeContext } from "./exchange.js";
import { type HttpSite, type PreparedSite, prepareSite } from "./http-site.js";
import { createListeners, type Listeners, type ListenersOptions } from "./listeners.js";
import { createLoad, DEFAULT_LOAD_LIMITS, type LoadLimits, type LoadStats } from "./load.js";
import { type Operation, operationsBeside } from "./operation.js";
import { createOverdueRequests } from "./overdue-requests.js";
import { reachableHost } from "./probe-address.js";
import { createRequestCounts } from "./request-counts.js";
import type { RequestWatch } from "./request-watch.js";
import { type Responding, respond } from "./respond.js";
import { sendError } from "./send-error.js";
import { createTurnedAway } from "./turned-away.js";
import { untilAnswered } from "./until-answered.js";
import { untilQuiet } from "./until-quiet.js";
import { DEFAULT_MAX_HEADER_BYTES } from "./uws.js";

/** What a server is made of. */
export interface HttpServerOptions extends ListenersOptions {
  readonly limits?: Partial<RequestLimits>;
  /** One of a method that is not allowed whose body is longer has its connection closed, not its body read away. Default 1 MiB. */
  readonly maxRequestBodyBytes?: number;
  /** Where operations are answered; null, the default: beside the routes. */
  readonly admin?: { readonly host: string; readonly port: number } | null;
  /** What is asked of a server by those who run it; answered before there is a site, too. Default: nothing. */
  readonly operations?: readonly Operation[];
}

/** What requests may take. */
export interface RequestLimits extends LoadLimits {
  /** Of path and query; a longer one is answered 414. Default 8 KiB. */
  readonly maxUrlBytes: number;
  /** A client that takes less than 1 KiB for each second of so long a time is dropped. Default 60 s. */
  readonly stallTimeoutMs: number;
  /** A request whose answer does not begin for so long is answered 503. Default 150 s. */
  readonly requestTimeoutMs: number;
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
   * Answers with this site from now on. Requests in flight are answered with the one they began with; replies that are
   * kept go with theirs. Until the first one every request is answered 503.
   * @returns When the last request of the site before is answered.
   * @throws ZpublishError `invalid-config` where routes conflict or an option is no good: the present site stays.
   */
  use(site: HttpSite): Promise<void>;
  /** Bounds requests otherwise from now on. What is not said stays. */
  limit(limits: Partial<RequestLimits>): void;
  /**
   * Begins to listen.
   * @param port 0 picks a free one.
   * @throws ZpublishError `invalid-config` where the address cannot be had, `unsupported` where uWebSockets.js cannot be loaded.
   */
  listen(host: string, port: number): Promise<HttpAddress>;
  /**
   * Begins to listen where operations are answered, if that is a place of its own: may be called before there is a site.
   * @returns undefined where it is none.
   * @throws ZpublishError as `listen` does.
   */
  listenAdmin(): Promise<HttpAddress | undefined>;
  /**
   * Looks whether there is another certificate, and uses it for connections from now on; one that is no good is logged. Never
   * throws. Happens by itself, within seconds, when the files change.
   */
  reloadTls(): Promise<void>;
  /**
   * Stops listening, answers what is asked on connections that are open until nobody asks any more, then drops them; the
   * listener of operations last.
   * @param graceMs How long to wait; what is not begun then is answered 503. Default 5,000.
   * @returns How many requests were cut off.
   */
  close(graceMs?: number): Promise<number>;
  /** Lets go of replies that are kept: for when they are not current any more, and hold what is old in memory. */
  forgetReplies(): void;
  readonly stats: HttpServerStats;
  readonly watch: RequestWatch;
}

/** Counts of one server. */
export interface HttpServerStats extends LoadStats, ConnectionStats, SenderStats {
  /** When the certificate in use expires, on the clock of `Date.now()`; undefined without TLS. */
  readonly certificateExpiresMs: number | undefined;
}

const DEFAULT_MAX_REQUEST_BODY_BYTES = 2 ** 20;
const DEFAULT_REQUEST_LIMITS: RequestLimits = {
  ...DEFAULT_LOAD_LIMITS,
  maxUrlBytes: 8 * 1024,
  stallTimeoutMs: 60_000,
  requestTimeoutMs: 150_000,
};
const DEFAULT_GRACE_MS = 5_000;
/** For what the kernel has not taken from uWebSockets.js yet when the last answer is written. */
const FLUSH_MS = 50;

/** A site, with what its exchanges share. */
interface SiteInUse {
  readonly answering: PreparedSite["answering"];
  readonly responding: Responding;
  readonly context: ExchangeContext;
}

/** Of requests that come in by a listener of their own. */
type OwnParts = Partial<
  Pick<ExchangeContext, "load" | "scheme"> & { readonly operations: readonly Operation[] }
>;

/** Makes a server without a site. It does not listen yet, and has loaded nothing native. */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { log, admin = null, operations = [] } = options;
  const maxRequestBodyBytes = options.maxRequestBodyBytes ?? DEFAULT_MAX_REQUEST_BODY_BYTES;
  const limits = { ...DEFAULT_REQUEST_LIMITS, ...options.limits };
  const load = createLoad(limits);
  const sender = createBodySender(load, () => limits.stallTimeoutMs);
  /** Requests whose answer is not sent yet, of whatever site. */
  const open = new LinkedList<Exchange>();
  const watch = {
    counts: createRequestCounts(),
    overdue: createOverdueRequests(open, () => limits.requestTimeoutMs),
    turnedAway: createTurnedAway(log),
  };
  const listeners = createListeners(options, () => limits.stallTimeoutMs);
  const scheme = options.tls == null ? "http" : "https";
  const atMain = admin === null ? operations : [];
  let draining = false;
  let site = inUse({ routes: [] }, false);

  /** @param own What is another's than that of requests from everybody. */
  function inUse(next: HttpSite, isSite: boolean, own: OwnParts = {}): SiteInUse {
    const { answering, cors, cacheControl, edge } = prepareSite(next);
    const context: ExchangeContext = {
      cors,
      cacheControl,
      load: own.load ?? load,
      sender,
      log,
      open,
      get draining() {
        return draining;
      },
      scheme: own.scheme ?? scheme,
      rootPath: answering.rootPath,
      edge,
      watch,
      maxHeaderBytes: options.maxHeaderBytes ?? DEFAULT_MAX_HEADER_BYTES,
    };
    const responding: Responding = {
      answering: isSite ? answering : undefined,
      operations: operationsBeside(own.operations ?? atMain, next.routes, answering.rootPath),
      maxRequestBodyBytes,
      get maxUrlBytes() {
        return limits.maxUrlBytes;
      },
    };
    return { answering, responding, context };
  }

  let hasListened = false;
  let closing: Promise<number> | undefined;

  function onRequest(res: HttpResponse, req: HttpRequest): void {
    take(res, req, site);
  }

  /** Requests of who runs the server are none that closing has to wait for. */
  function adminSite(): SiteInUse {
    const own: OwnParts = { load: createLoad(DEFAULT_LOAD_LIMITS), scheme: "http", operations };
    // No page of a browser on the same machine is to read them.
    return inUse({ routes: [], cacheControl: "no-store", corsOrigin: "" }, true, own);
  }

  async function listen(host: string, port: number): Promise<HttpAddress> {
    if (hasListened || closing !== undefined) throw new Error("A server listens once");
    hasListened = true;
    const actualPort = await listeners.listen(host, port, onRequest).catch((error: unknown) => {
      hasListened = false;
      throw error;
    });
    if (closing !== undefined) {
      listeners.close();
      throw new ZpublishError("draining", "The server was closed while it began to listen");
    }
    const { rootPath } = site.answering;
    return { host, port: actualPort, url: `${scheme}://${reachableHost(host)}:${actualPort}${rootPath}` };
  }

  async function listenAdmin(): Promise<HttpAddress | undefined> {
    if (admin === null) return undefined;
    const { host } = admin;
    const operating = adminSite();
    const port = await listeners.listenAdmin(host, admin.port, (res, req) => take(res, req, operating));
    const url = `http://${reachableHost(host)}:${port}`;
    log.info({ url }, "health and metrics are answered here");
    return { host, port, url };
  }

  async function closeNow(graceMs: number): Promise<number> {
    draining = true;
    await listeners.stopAccepting();
    await untilQuiet(load, () => listeners.stats.connections, graceMs);
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
      const { context } = site;
      site = inUse(next, true);
      return untilAnswered(open, context);
    },
    limit: (next) => void Object.assign(limits, next),
    listen,
    listenAdmin,
    reloadTls: () => listeners.reloadTls(),
    close(graceMs = DEFAULT_GRACE_MS) {
      closing ??= closeNow(graceMs);
      return closing;
    },
    forgetReplies: () => site.answering.kept.clear(),
    stats: statsOf([load.stats, listeners.stats, sender.stats], listeners),
    watch,
  };
}

/** Answers a request by a site, at once or later. */
function take(
  res: HttpResponse,
  req: HttpRequest,
  { context, responding }: Omit<SiteInUse, "answering">,
): void {
  const method = req.getCaseSensitiveMethod();
  const exchange = new Exchange(res, req, context, method === "HEAD" ? "HEAD" : "GET");
  respond(exchange, method, responding);
  exchange.release();
}

/** The counts of all parts in one object, read when they are asked for. */
function statsOf(parts: readonly object[], listeners: Listeners): HttpServerStats {
  const stats: Partial<HttpServerStats> = {};
  for (const part of parts) {
    for (const name of Object.keys(part)) {
      Object.defineProperty(stats, name, { enumerable: true, get: () => part[name as keyof typeof part] });
    }
  }
  return Object.defineProperty(stats, "certificateExpiresMs", {
    enumerable: true,
    get: () => listeners.certificateExpiresMs,
  }) as HttpServerStats;
}
