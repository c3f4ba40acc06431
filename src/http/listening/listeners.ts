import { readFileSync } from "node:fs";
import { messageOf, ZpublishError } from "../../errors.js";
import type { Log } from "../../observe/log.js";
import { createBurstLog } from "../request-log.js";
import {
  checkPort,
  type Listener,
  type ListenerOptions,
  type OpenListener,
  probeAddress,
  readTlsFiles,
  type TlsFiles,
  type TlsPair,
} from "./listener.js";
import { DEFAULT_MAX_HEADER_BYTES, explainLoadError, loadUws } from "./uws-listener.js";

/** Counts of connections. */
export interface ConnectionStats {
  /** Open connections. */
  readonly connections: number;
  /** Maximum of open connections: as configured, or lower if fewer files may be open. */
  readonly maxConnections: number;
  /** Connections closed so far because the maximum was reached. */
  readonly connectionsRefused: number;
}

/** Shortest time between two warnings that connections are refused. */
const WARN_EVERY_MS = 10_000;

/** Creates a limit of the number of connections, which several listeners may share. */
function createConnectionLimit(max: number, log: Log) {
  const stats = { connections: 0, maxConnections: max, connectionsRefused: 0 };
  const warn = (refused: number) =>
    log.warn({ max, refused }, `connections refused: at most ${max} are allowed at once`);
  const refused = createBurstLog(1, WARN_EVERY_MS, warn);
  return {
    stats,
    /** Counts a connection, as {@link ListenerOptions.onConnection}. One beyond the maximum is closed before anything is read from it. */
    note(change: number, close: () => void) {
      stats.connections += change;
      if (change < 0 || stats.connections <= max) return;
      stats.connectionsRefused += 1;
      close();
      refused("", () => warn(1));
    },
  };
}

/** File descriptors kept free for workers, datasets and cache; at most half of all. */
const RESERVED_FILES = 256;

/**
 * Returns how many connections this process can hold. Each is an open file; if files run out, uWebSockets.js uses a whole core to try
 * accepting again and again.
 * @param asked The configured maximum; a lower result is logged as a warning.
 */
function fitOpenFiles(asked: number, log: Log): number {
  const maxFiles = maxOpenFiles();
  if (maxFiles === undefined) return asked;
  const max = maxFiles - Math.min(RESERVED_FILES, Math.floor(maxFiles / 2));
  if (asked <= max) return asked;
  log.warn(
    { asked, max, maxFiles },
    `this process may have ${maxFiles} files open: at most ${max} connections, not ${asked} (raise ulimit -n)`,
  );
  return max;
}

/** Returns the soft limit, which Node.js has raised to the hard one; undefined if the system does not say. */
function maxOpenFiles(): number | undefined {
  try {
    const found = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1];
    return found === undefined ? undefined : Number(found);
  } catch {
    return undefined;
  }
}

/** A listener with TLS whose certificate can be replaced. */
interface TlsListener extends Listener {
  /** Expiry of the certificate in use, in milliseconds as `Date.now()` counts. */
  readonly certificateExpiresMs: number;
  /**
   * Reads certificate and key again and, if they have changed, uses them for new connections; open connections stay. Files that
   * cannot be used are logged, and the present certificate stays in use. Never throws.
   */
  reload(): Promise<void>;
}

/** A {@link ListenerOptions} with the paths of certificate and key. */
interface TlsListenerOptions extends Omit<ListenerOptions, "tls"> {
  readonly tls: TlsFiles;
  readonly log: Log;
  readonly openListener: OpenListener;
}

/**
 * Listens with TLS. uWebSockets.js cannot replace a certificate, so that each one has its own listener on the same shared port;
 * a listener of `node:http` replaces it.
 * @throws ZpublishError `invalid-config` if the address cannot be listened on, or certificate or key cannot be used.
 */
async function openTlsListener(options: TlsListenerOptions): Promise<TlsListener> {
  const { host, tls, log, openListener } = options;
  let pair = await readTlsFiles(tls);
  // A shared port may be taken already without an error: the probe finds that out.
  const port = options.sharesPort ? options.port : await probeAddress(host, options.port);
  let current = await open(pair);
  const listeners = [current];
  let reloading: Promise<void> = Promise.resolve();
  let isOpen = true;
  warnOfValidity(pair, log);

  function open(used: TlsPair): Promise<Listener> {
    return openListener({ ...options, port, tls: { ...tls, ...used } });
  }

  async function readAgain(): Promise<void> {
    try {
      const next = await readTlsFiles(tls);
      if (!isOpen || (next.certPem === pair.certPem && next.keyPem === pair.keyPem)) return;
      const last = current;
      if (last.useCertificate === undefined) {
        current = await open(next);
        listeners.push(current);
      } else last.useCertificate(next);
      pair = next;
      if (current !== last) await last.stopAccepting();
      log.info(described(next), "a new certificate is in use");
      warnOfValidity(next, log);
    } catch (error) {
      log.error({ err: error }, `the present certificate stays in use: ${messageOf(error)}`);
    }
  }

  return {
    port,
    get connections() {
      return listeners.reduce((sum, listener) => sum + listener.connections, 0);
    },
    get certificateExpiresMs() {
      return pair.validTo.getTime();
    },
    reload() {
      reloading = reloading.then(readAgain);
      return reloading;
    },
    async stopAccepting() {
      isOpen = false;
      await Promise.all(listeners.map((listener) => listener.stopAccepting()));
    },
    close() {
      isOpen = false;
      for (const listener of listeners) listener.close();
    },
  };
}

function warnOfValidity(pair: TlsPair, log: Log): void {
  const nowMs = Date.now();
  if (pair.validTo.getTime() < nowMs) {
    log.warn(described(pair), "the certificate has expired: clients will refuse it");
  } else if (pair.validFrom.getTime() > nowMs) {
    log.warn(described(pair), "the certificate is not valid yet: clients will refuse it");
  }
}

function described({ subject, validFrom, validTo }: TlsPair): object {
  return { subject, validFrom: validFrom.toISOString(), validTo: validTo.toISOString() };
}

/** Handles a request. */
type OnRequest = ListenerOptions["onRequest"];

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

const DEFAULT_MAX_CONNECTIONS = 10_000;
/** Counted apart from those of clients, so that operators can connect when clients are at their limit. */
const MAX_ADMIN_CONNECTIONS = 64;

/** Creates the listener for clients and, without TLS, the one for admin endpoints; none listens yet. */
export function createListeners(options: ListenersOptions) {
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
  function plain(host: string, port: number, onRequest: OnRequest, counted: typeof limit) {
    checkPort(port);
    return { host, port, sharesPort, tls: null, onRequest, onConnection: counted.note };
  }

  async function open(wanted: ListenerOptions): Promise<Listener> {
    if (tls === null) return openListener(wanted);
    secure = await openTlsListener({ ...wanted, tls, log, openListener });
    return secure;
  }

  return {
    /** Connections of clients. */
    stats: limit.stats as ConnectionStats,
    /** Expiry of the certificate in use, in milliseconds as `Date.now()` counts; undefined without TLS. */
    get certificateExpiresMs(): number | undefined {
      return secure?.certificateExpiresMs;
    },
    /**
     * Begins to listen for clients.
     * @returns The port.
     * @throws ZpublishError `invalid-config` if the address cannot be listened on, `unsupported` if the port cannot be shared.
     */
    async listen(host: string, port: number, onRequest: OnRequest): Promise<number> {
      main = await open(plain(host, port, onRequest, limit));
      return main.port;
    },
    /** Begins to listen for admin endpoints, like `listen`. */
    async listenAdmin(host: string, port: number, onRequest: OnRequest): Promise<number> {
      admin = await openListener(plain(host, port, onRequest, adminLimit));
      return admin.port;
    },
    /** See {@link TlsListener.reload}; does nothing without TLS. */
    async reloadTls() {
      await secure?.reload();
    },
    /** Stops accepting connections of clients. Open connections stay. */
    async stopAccepting() {
      await main?.stopAccepting();
    },
    /** Stops listening and drops all connections. */
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
