import type { HttpRequest, HttpResponse, TemplatedApp, us_listen_socket } from "uWebSockets.js";
import { ZpublishError } from "../errors.js";
import { quietTurn } from "./quiet-turn.js";
import type { TlsFiles } from "./tls-files.js";
import type { Uws } from "./uws.js";

export interface ListenerOptions {
  readonly uws: Uws;
  readonly host: string;
  /** 0 picks a free one, which cannot be shared. */
  readonly port: number;
  /** Whether other listeners of the same user may have the port, too, here or in other processes. */
  readonly sharesPort: boolean;
  /** Null: plain HTTP. */
  readonly tls: TlsFiles | null;
  /** Hears of each connection: 1 where it has come and may be closed; -1 where it is gone and must not be touched. */
  readonly onConnection: (res: HttpResponse, change: number) => void;
  readonly onRequest: (res: HttpResponse, req: HttpRequest) => void;
}

/** A socket that connections come in by, and those connections. */
export interface Listener {
  readonly port: number;
  /** Open now. */
  readonly connections: number;
  /** Accepts nobody any more. What is open stays open. */
  stopAccepting(): Promise<void>;
  /** Drops all connections, too. */
  close(): void;
}

/**
 * Begins to listen.
 * @returns undefined where the address cannot be had; uWebSockets.js does not say why.
 * @throws ZpublishError `invalid-config` where OpenSSL takes certificate or key for no good.
 */
export function openListener(options: ListenerOptions): Listener | undefined {
  const { uws, host, port } = options;
  let connections = 0;
  function note(res: HttpResponse, change: number): void {
    connections += change;
    options.onConnection(res, change);
  }
  // Its types take numbers for objects.
  const app = createApp(uws, options.tls)
    .filter(note as Parameters<TemplatedApp["filter"]>[0])
    .any("/*", options.onRequest);
  const socket = listenOn(app, host, port, options.sharesPort ? 0 : uws.LIBUS_LISTEN_EXCLUSIVE_PORT);
  if (socket === undefined) return undefined;
  let accepting: us_listen_socket | undefined = socket;
  return {
    port: uws.us_socket_local_port(socket),
    get connections() {
      return connections;
    },
    async stopAccepting() {
      await quietTurn();
      if (accepting !== undefined) uws.us_listen_socket_close(accepting);
      accepting = undefined;
    },
    close() {
      accepting = undefined;
      app.close();
    },
  };
}

function createApp(uws: Uws, tls: TlsFiles | null): TemplatedApp {
  if (tls === null) return uws.App();
  try {
    // TLS 1.2 and 1.3; no ALPN, so that clients speak HTTP/1.1.
    return uws.SSLApp({ cert_file_name: tls.certFile, key_file_name: tls.keyFile });
  } catch (error) {
    throw new ZpublishError(
      "invalid-config",
      `TLS: expected a certificate and key that OpenSSL takes, received ${tls.certFile} and ${tls.keyFile}`,
      { cause: error },
    );
  }
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
