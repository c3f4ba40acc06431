import { ZpublishError } from "../../errors.js";
import type { Log } from "../../observe/log.js";
import { type ConnectionLimit, type ConnectionStats, createConnectionLimit } from "./connection-limit.js";
import type { Listener, ListenerOptions, OpenListener } from "./listener.js";
import { fitOpenFiles } from "./open-file-limit.js";
import { checkPort } from "./probe-address.js";
import type { TlsFiles } from "./tls-files.js";
import { openTlsListener, type TlsListener } from "./tls-listener.js";
import { DEFAULT_MAX_HEADER_BYTES, explainLoadError, loadUws } from "./uws.js";

/** Handles a request. */
export type OnRequest = ListenerOptions["onRequest"];

/** How a server listens. */
export interface ListenersOptions {
  readonly log: Log;
  /** Maximum of open connections; further ones are closed at once. Lower if the system allows fewer files. Default 10,000. */
  readonly maxConnections?: number;
  /**
   * Bytes of request line and headers that a client may send in pieces; more are answered 431. With uWebSockets.js, the value
   * of the first server holds for all servers of the process. Default 16 KiB.
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
   * @throws ZpublishError `invalid-config` if the address cannot be listened on, `unsupported` if the port cannot be shared.
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
  let loading: Promise<OpenListener> | undefined;

  const openListener: OpenListener = async (wanted) => {
    loading ??= loadListener(options);
    return (await loading)(wanted);
  };

  /** Prepares a listener without TLS whose connections count for a limit. */
  function plain(host: string, port: number, onRequest: OnRequest, counted: ConnectionLimit) {
    checkPort(port);
    return { host, port, sharesPort, tls: null, onRequest, onConnection: counted.note };
  }

  async function open(wanted: ListenerOptions): Promise<Listener> {
    if (tls === null) return openListener(wanted);
    secure = await openTlsListener({ ...wanted, tls, log, openListener });
    return secure;
  }

  return {
    stats: limit.stats,
    get certificateExpiresMs() {
      return secure?.certificateExpiresMs;
    },
    async listen(host, port, onRequest) {
      main = await open(plain(host, port, onRequest, limit));
      return main.port;
    },
    async listenAdmin(host, port, onRequest) {
      admin = await openListener(plain(host, port, onRequest, adminLimit));
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

/**
 * Loads what connections come in by: uWebSockets.js or, if that cannot be loaded here or the variable `ZPUBLISH_HTTP` says so,
 * `node:http`. The log says which.
 */
async function loadListener({ log, maxHeaderBytes }: ListenersOptions): Promise<OpenListener> {
  const asked = process.env.ZPUBLISH_HTTP ?? "";
  if (asked !== "" && asked !== "node")
    throw new ZpublishError("invalid-config", `ZPUBLISH_HTTP: expected node or nothing, received ${asked}`);
  try {
    if (asked === "") {
      const [uws, { openUwsListener }] = await Promise.all([
        loadUws(maxHeaderBytes),
        import("./uws-listener.js"),
      ]);
      return (wanted) => openUwsListener(uws, wanted);
    }
    log.info("ZPUBLISH_HTTP=node: served by node:http");
  } catch (error) {
    log.info(`${explainLoadError(error)}; served by node:http, which is slower`);
  }
  const { openNodeListener } = await import("./node-listener.js");
  return (wanted) => openNodeListener(wanted, maxHeaderBytes ?? DEFAULT_MAX_HEADER_BYTES);
}
