import type { TemplatedApp, us_listen_socket } from "uWebSockets.js";
import { setImmediate as nextIteration } from "node:timers/promises";
import { ZpublishError } from "../../errors.js";
import type { HttpResponse, Listener, ListenerOptions } from "./listener.js";
import { listenFailure, probeAddress } from "./probe-address.js";
import type { TlsFiles } from "./tls-files.js";
import type { Uws } from "./uws.js";

/** Begins to listen with uWebSockets.js, like {@link OpenListener}. */
export async function openUwsListener(uws: Uws, options: ListenerOptions): Promise<Listener> {
  const { host, port } = options;
  let connections = 0;
  function note(res: HttpResponse, change: number): void {
    connections += change;
    options.onConnection(change, () => res.close());
  }
  // Its types take numbers for objects.
  const app = createApp(uws, options.tls)
    .filter(note as unknown as Parameters<TemplatedApp["filter"]>[0])
    .any("/*", options.onRequest);
  // With TLS, the next certificate gets a listener on the same port.
  const sharesPort = options.sharesPort || options.tls !== null;
  const socket = listenOn(app, host, port, sharesPort ? 0 : uws.LIBUS_LISTEN_EXCLUSIVE_PORT);
  if (socket === undefined) {
    // uWebSockets.js does not say why.
    await probeAddress(host, port);
    throw listenFailure(host, port, undefined);
  }
  let accepting: us_listen_socket | undefined = socket;
  return {
    port: uws.us_socket_local_port(socket),
    get connections() {
      return connections;
    },
    async stopAccepting() {
      await quietIteration();
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
 * Opens the listening socket. Without the exclusive option, uWebSockets.js shares a port with other servers that share it, and
 * each of them gets some of the connections. The overload with a host and options is not in its types.
 * @returns undefined if the address cannot be listened on.
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

/** Duration of an iteration of the event loop in which next to nothing happened. */
const QUIET_MS = 0.1;
/** Iterations to wait for a quiet one. */
const MAX_ITERATIONS = 50;

/**
 * Resolves right after an iteration of the event loop that left no connection waiting to be accepted: the kernel resets those that
 * wait when their listener closes. During 20 changes of a certificate 11 of 3,400 connections were reset, with this none of 6,500.
 */
async function quietIteration(): Promise<void> {
  await nextIteration();
  for (let count = 0; count < MAX_ITERATIONS; count += 1) {
    const beganMs = performance.now();
    await nextIteration();
    if (performance.now() - beganMs < QUIET_MS) return;
  }
}
