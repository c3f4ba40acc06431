import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import type { Log } from "../../observe/log.js";
import { type ConnectionLimit, type ConnectionStats, createConnectionLimit } from "./connection-limit.js";
import { type Listener, type ListenerOptions, openListener } from "./listener.js";
import { fitOpenFiles } from "./open-file-limit.js";
import { checkPort, listenFailure, probeAddress } from "./probe-address.js";
import type { TlsFiles } from "./tls-files.js";
import { openTlsListener, type TlsListener } from "./tls-listener.js";
import { loadUws } from "./uws.js";

/** Handles a request; both objects belong to uWebSockets.js. */
export type OnRequest = (res: HttpResponse, req: HttpRequest) => void;

/** How a server listens. */
export interface ListenersOptions {
  readonly log: Log;
  /** Maximum of open connections; further ones are closed at once. Lower if the system allows fewer files. Default 10,000. */
  readonly maxConnections?: number;
  /**
   * Bytes of request line and headers that a client may send in pieces; more are answered 431. The value of the first server holds
   * for all servers of the process. Default 16 KiB.
   */
  readonly maxHeaderBytes?: number;
  /** Null, the default: plain HTTP. */
  readonly tls?: TlsFiles | null;
  /**
   * Whether other processes of the same user may listen on the same ports; Linux spreads connections over them. Default false: a
   * port that is in use is an error.
   */
  readonly sharesPort?: boolean;
}

/** The listener for clients and, without TLS, the one for admin endpoints. */
export interface Listeners {
  /** Connections of clients. */
  readonly stats: ConnectionStats;
  /** Expiry of the certificate in use, in milliseconds as `Date.now()` counts; undefined without TLS. */
  readonly certificateExpiresMs: number | undefined;
  /**
   * Begins to listen for clients.
   * @returns The port.
   * @throws ZpublishError `invalid-config` if the address cannot be listened on, `unsupported` if uWebSockets.js cannot be loaded.
   */
  listen(host: string, port: number, onRequest: OnRequest): Promise<number>;
  /** Begins to listen for admin endpoints, like `listen`. */
  listenAdmin(host: string, port: number, onRequest: OnRequest): Promise<number>;
  /** See {@link TlsListener.reload}; does nothing without TLS. */
  reloadTls(): Promise<void>;
  /** Stops accepting connections of clients. Open connections stay. */
  stopAccepting(): Promise<void>;
  /** Stops listening and drops all connections. */
  close(): void;
}

const DEFAULT_MAX_CONNECTIONS = 10_000;
/** Counted apart from those of clients, so that operators can connect when clients are at their limit. */
const MAX_ADMIN_CONNECTIONS = 64;

/** Creates listeners; none listens yet. */
export function createListeners(options: ListenersOptions): Listeners {
  const { log, tls = null, sharesPort = false } = options;
  const asked = options.maxConnections ?? DEFAULT_MAX_CONNECTIONS;
  const limit = createConnectionLimit(fitOpenFiles(asked, log), log);
  const adminLimit = createConnectionLimit(MAX_ADMIN_CONNECTIONS, log);
  let main: Listener | undefined;
  let secure: TlsListener | undefined;
  let admin: Listener | undefined;

  /** Prepares a listener without TLS whose connections count for a limit. */
  async function plain(host: string, port: number, onRequest: OnRequest, counted: ConnectionLimit) {
    checkPort(port);
    const uws = await loadUws(options.maxHeaderBytes);
    const onConnection: ListenerOptions["onConnection"] = (res, change) =>
      counted.note(change, () => res.close());
    return { uws, host, port, sharesPort, tls: null, onRequest, onConnection };
  }

  async function open(wanted: ListenerOptions): Promise<Listener> {
    if (tls === null) return openOrExplain(wanted);
    secure = await openTlsListener({ ...wanted, tls, log });
    return secure;
  }

  return {
    stats: limit.stats,
    get certificateExpiresMs() {
      return secure?.certificateExpiresMs;
    },
    async listen(host, port, onRequest) {
      main = await open(await plain(host, port, onRequest, limit));
      return main.port;
    },
    async listenAdmin(host, port, onRequest) {
      admin = await openOrExplain(await plain(host, port, onRequest, adminLimit));
      return admin.port;
    },
    async reloadTls() {
      await secure?.reload();
    },
    async stopAccepting() {
      await main?.stopAccepting();
    },
    close() {
      main?.close();
      admin?.close();
    },
  };
}

async function openOrExplain(options: ListenerOptions): Promise<Listener> {
  const listener = openListener(options);
  if (listener !== undefined) return listener;
  await probeAddress(options.host, options.port);
  throw listenFailure(options.host, options.port, undefined);
}
