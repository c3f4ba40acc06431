import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import { type AddressInfo, type ListenOptions, Server as NetServer, type Socket } from "node:net";
import { setImmediate as nextIteration } from "node:timers/promises";
import { ZpublishError } from "../../errors.js";
import type { HttpRequest, Listener, ListenerOptions } from "./listener.js";
import { IDLE_MS, NodeResponse } from "./node-response.js";
import { listenFailure } from "./probe-address.js";

const CHECK_IDLE_MS = 1_000;
/** Most answers that wait behind another one on a connection. */
const MAX_PIPELINED = 64;
/** About as many as uWebSockets.js takes. Node.js would leave out those beyond 1,000. */
const MAX_HEADER_LINES = 100;
/** Answers of uWebSockets.js to what is no HTTP/1.1 for a path. */
const REFUSED = "505 HTTP Version Not Supported";

/** Whether this Node.js can share a port with other processes: since 22.12. */
const CAN_SHARE_PORT = process.versions.node.localeCompare("22.12", undefined, { numeric: true }) >= 0;

/**
 * Begins to listen with `node:http`, like {@link OpenListener}, where uWebSockets.js cannot be loaded.
 * @throws ZpublishError `unsupported` if the port is to be shared and this Node.js cannot do that.
 */
export async function openNodeListener(options: ListenerOptions, maxHeaderBytes: number): Promise<Listener> {
  const { host, port, sharesPort, tls } = options;
  if (sharesPort && !CAN_SHARE_PORT) {
    throw new ZpublishError(
      "unsupported",
      `Several processes on one port: expected uWebSockets.js or Node.js 22.12, received Node.js ${process.versions.node} without it`,
    );
  }
  const limits = {
    maxHeaderSize: maxHeaderBytes,
    keepAliveTimeout: IDLE_MS,
    headersTimeout: IDLE_MS,
    requestTimeout: IDLE_MS,
    connectionsCheckingInterval: CHECK_IDLE_MS,
  };
  const server: Server | TlsServer =
    tls === null
      ? createServer(limits)
      : createTlsServer({ ...limits, handshakeTimeout: IDLE_MS, cert: tls.certPem, key: tls.keyPem });
  const sockets = new Set<Socket>();
  let accepted = 0;
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    accepted += 1;
    const close = () => void socket.destroy();
    socket.once("close", () => {
      sockets.delete(socket);
      options.onConnection(-1, close);
    });
    options.onConnection(1, close);
  });
  const latest = new WeakMap<Socket, NodeResponse>();
  function answer(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const before = response.socket === null ? latest.get(socket) : undefined;
    // Pipelined behind an answer that is not ready: as uWebSockets.js does. Otherwise answers that wait would fill the memory.
    if (before !== undefined && (!before.hasEnded || before.place === MAX_PIPELINED)) socket.destroy();
    if (socket.destroyed) return;
    const res = new NodeResponse(socket, response, before === undefined ? 0 : before.place + 1);
    latest.set(socket, res);
    const isKnown = request.httpVersion === "1.1" && request.url?.startsWith("/");
    if (isKnown && request.rawHeaders.length <= 2 * MAX_HEADER_LINES) {
      options.onRequest(res, requestOf(request));
      return;
    }
    res.writeStatus(isKnown ? "431 Request Header Fields Too Large" : REFUSED);
    res.end(undefined, true);
  }
  // Not answered with 100 first, as uWebSockets.js does.
  for (const event of ["request", "checkContinue", "checkExpectation"]) server.on(event, answer);
  server.on("connect", (_, socket) => void socket.end(`HTTP/1.1 ${REFUSED}\r\nConnection: close\r\n\r\n`));
  await new Promise<void>((resolve, reject) => {
    server.on("error", (reason) => reject(listenFailure(host, port, reason)));
    // Not in the types of Node.js 20.
    const shared = sharesPort ? ({ reusePort: true } as ListenOptions) : {};
    server.listen({ host, port, exclusive: true, ...shared }, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return sockets.size;
    },
    async stopAccepting() {
      // The system resets connections that wait to be accepted. Node.js accepts one in an iteration, and may be in the middle of one.
      for (let quiet = 0, before = accepted; quiet < 2; before = accepted) {
        await nextIteration();
        quiet = accepted === before ? quiet + 1 : 0;
      }
      // Its own `close` would drop idle connections, too.
      NetServer.prototype.close.call(server);
    },
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
    useCertificate({ certPem, keyPem }) {
      (server as TlsServer).setSecureContext({ cert: certPem, key: keyPem });
    },
  };
}

/** Reads a request. */
function requestOf({ method = "", url = "", rawHeaders }: IncomingMessage): HttpRequest {
  const [path = "", query] = fromUtf8(url).split(/\?(.*)/s, 2);
  const headers: [name: string, value: string][] = [];
  for (let i = 0; i < rawHeaders.length; i += 2)
    headers.push([rawHeaders[i]!.toLowerCase(), fromUtf8(rawHeaders[i + 1]!)]);
  return {
    getUrl: () => path,
    getQuery: () => query,
    getCaseSensitiveMethod: () => method,
    getHeader: (name) => headers.find(([other]) => other === name)?.[1] ?? "",
    forEach(call) {
      for (const [name, value] of headers) call(name, value);
    },
  };
}

/** Decodes text that Node.js has read as Latin-1. */
function fromUtf8(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII.
  return /^[\x00-\x7f]*$/.test(text) ? text : Buffer.from(text, "latin1").toString("utf8");
}
