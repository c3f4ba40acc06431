import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import { ZpublishError } from "../errors.js";
import type { Log } from "../observe/log.js";
import { type ConnectionLimit, type ConnectionStats, createConnectionLimit } from "./connection-limit.js";
import { type Listener, type ListenerOptions, openListener } from "./listener.js";
import { fitOpenFiles } from "./open-file-limit.js";
import { takePassedOn } from "./peer-address.js";
import { checkPort, listenFailure, probeAddress } from "./probe-address.js";
import { openProxyFront, type ProxyFront } from "./proxy-front.js";
import type { TlsFiles } from "./tls-files.js";
import { openTlsListener, type TlsListener } from "./tls-listener.js";
import { loadUws } from "./uws.js";

export type OnRequest = (res: HttpResponse, req: HttpRequest) => void;

export interface ListenersOptions {
  readonly log: Log;
  /** Open at once; another is closed at once. Fewer where the system allows fewer files. Default 10,000. */
  readonly maxConnections?: number;
  /**
   * Bytes of request line and headers that a client may send in pieces; more are answered 431. The first server of a process
   * settles it for all. Default 16 KiB.
   */
  readonly maxHeaderBytes?: number;
  /** Null, the default: plain HTTP. */
  readonly tls?: TlsFiles | null;
  /**
   * Takes headers of the PROXY protocol, version 1 or 2, from the beginning of connections, before TLS; connections without are
   * taken as they are. Needs Linux, and a port of its own. Default false.
   */
  readonly proxyProtocol?: boolean;
  /**
   * Other processes of the same user may listen on the ports, too, and Linux spreads connections over all of them.
   * Default false: a port that is taken is refused.
   */
  readonly sharesPort?: boolean;
}

/** Where requests come in: by one listener those of everybody, by another, plain HTTP, those of who runs the server. */
export interface Listeners {
  /** Of everybody's. */
  readonly stats: ConnectionStats;
  /** When the certificate in use expires, on the clock of `Date.now()`; undefined without TLS. */
  readonly certificateExpiresMs: number | undefined;
  /**
   * @returns The port.
   * @throws ZpublishError `invalid-config` where the address cannot be had, `unsupported` where uWebSockets.js cannot be loaded.
   */
  listen(host: string, port: number, onRequest: OnRequest): Promise<number>;
  /** The same for who runs the server. */
  listenAdmin(host: string, port: number, onRequest: OnRequest): Promise<number>;
  /** See {@link TlsListener.reload}. */
  reloadTls(): Promise<void>;
  /** Accepts nobody any more, but for who runs the server. */
  stopAccepting(): Promise<void>;
  /** Drops all connections, too. */
  close(): void;
}

const DEFAULT_MAX_CONNECTIONS = 10_000;
/** Not counted with the others: so that whoever runs the server gets through when those are at their limit. */
const MAX_ADMIN_CONNECTIONS = 64;

/**
 * Makes listeners; none listens yet.
 * @param stallTimeoutMs A client that takes nothing for so long is dropped. Asked again and again.
 */
export function createListeners(options: ListenersOptions, stallTimeoutMs: () => number): Listeners {
  const { log, tls = null, sharesPort = false, proxyProtocol = false } = options;
  if (proxyProtocol && (sharesPort || process.platform !== "linux")) {
    throw new ZpublishError(
      "invalid-config",
      `PROXY protocol: expected one process, on Linux; received ${sharesPort ? "several" : process.platform}`,
    );
  }
  const asked = options.maxConnections ?? DEFAULT_MAX_CONNECTIONS;
  const limit = createConnectionLimit(fitOpenFiles(asked, proxyProtocol ? 3 : 1, log), log);
  const adminLimit = createConnectionLimit(MAX_ADMIN_CONNECTIONS, log);
  let main: Listener | undefined;
  let secure: TlsListener | undefined;
  let front: ProxyFront | undefined;
  let admin: Listener | undefined;

  /** A listener without TLS whose connections count for a limit. */
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

  /** Behind a front of this process: nobody else is let in, and connections are counted there. */
  async function openBehindFront(wanted: ListenerOptions): Promise<number> {
    main = await open({
      ...wanted,
      host: "127.0.0.1",
      port: 0,
      onConnection: (res, change) => {
        if (change > 0 && !takePassedOn(res)) res.close();
      },
    });
    const { host, port } = wanted;
    try {
      front = await openProxyFront({ host, port, innerPort: main.port, limit, stallTimeoutMs });
    } catch (error) {
      main.close();
      main = undefined;
      throw error;
    }
    return front.port;
  }

  return {
    stats: limit.stats,
    get certificateExpiresMs() {
      return secure?.certificateExpiresMs;
    },
    async listen(host, port, onRequest) {
      const wanted = await plain(host, port, onRequest, limit);
      if (proxyProtocol) return openBehindFront(wanted);
      main = await open(wanted);
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
      await front?.stopAccepting();
      // Behind a front, what it has taken is passed on still.
      if (front === undefined) await main?.stopAccepting();
    },
    close() {
      front?.close();
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
