import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import { type AddressInfo, type ListenOptions, Server as NetServer, type Socket } from "node:net";
import { setImmediate as nextIteration } from "node:timers/promises";
import { ZpublishError } from "../../errors.js";
import { checkLines, type HeaderLines } from "../headers.js";
import {
  type HttpRequest,
  type HttpResponse,
  type Listener,
  type ListenerOptions,
  listenFailure,
} from "./listener.js";

/** Milliseconds for a connection to be idle, and for a request to arrive: those of uWebSockets.js, which has no option for it. */
export const IDLE_MS = 10_000;
/** Most bytes of a body that wait in memory for one client. */
const PIECE_BYTES = 64 * 1024;

/** Memory for the next piece. Belongs to a connection if that could not send the piece at once. */
let scratch = Buffer.allocUnsafeSlow(PIECE_BYTES);

/**
 * An answer. A socket of Node.js takes all that it is given and reads from there later, but a view of a body is valid only now. So
 * bodies are copied in pieces, and the next one is taken when the system has the last.
 */
class NodeResponse implements HttpResponse {
  /** Number of answers before it that the connection has not sent yet. */
  readonly place: number;
  hasEnded = false;
  readonly #socket: Socket;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  #status = "200 OK";
  #headers: string[] = [];
  /** Bytes of the body that the socket was given. */
  #offset = 0;
  /** Whether the socket holds some of them. */
  #isFull = false;
  #onWritable: (() => boolean) | undefined;
  #onAborted: (() => void) | undefined;

  constructor(request: IncomingMessage, response: ServerResponse, place: number) {
    this.place = place;
    this.#socket = request.socket;
    this.#request = request;
    this.#response = response;
    // A write just after the connection broke; its end is noticed otherwise.
    response.on("error", () => undefined);
  }

  writeHead(status: string, ...lists: readonly HeaderLines[]): void {
    for (const lines of lists) {
      checkLines(lines);
      for (const line of lines) this.#headers.push(...line);
    }
    this.#status = status;
  }

  cork(write: () => void): void {
    write();
  }

  tryEnd(bytes: Uint8Array, totalByteLength: number): readonly [boolean, boolean] {
    if (!this.#response.headersSent) this.#writeHead(totalByteLength);
    return this.#send(bytes, totalByteLength);
  }

  write(bytes: Uint8Array): boolean {
    // Without a Content-Length, Node.js writes in chunked coding.
    if (!this.#response.headersSent) this.#writeHead(undefined);
    return this.#send(bytes, Number.POSITIVE_INFINITY)[0];
  }

  /** Sends bytes in pieces, as long as the system takes them. */
  #send(bytes: Uint8Array, totalByteLength: number): readonly [boolean, boolean] {
    for (let at = 0; at < bytes.byteLength && !this.#isFull; at += PIECE_BYTES) {
      const piece = this.#copy(bytes.subarray(at, at + PIECE_BYTES));
      this.#offset += piece.byteLength;
      if (this.#offset === totalByteLength) {
        this.#finish(piece);
        return [true, true];
      }
      this.#response.write(piece, () => this.#flushed());
      // Node.js would wait for the end of this turn. Since version 26, the answer itself holds pieces in chunked coding.
      if (this.#response.writableCorked > 0) this.#response.uncork();
      this.#socket.uncork();
      this.#isFull = this.#keep(piece);
    }
    return [!this.#isFull, false];
  }

  /** Copies at most one piece: into the memory for it, if the system may take it at once. */
  #copy(bytes: Uint8Array): Buffer {
    if (this.#isPending()) return Buffer.from(bytes);
    scratch.set(bytes);
    return scratch.subarray(0, bytes.byteLength);
  }

  #flushed(): void {
    if (!this.#isFull || this.#isPending()) return;
    this.#isFull = false;
    this.#onWritable?.();
  }

  getWriteOffset(): number {
    return this.#offset;
  }

  onWritable(handler: () => boolean): void {
    this.#onWritable = handler;
  }

  onData(handler: (part: Uint8Array, isLast: boolean) => void): void {
    this.#request.on("data", (part: Buffer) => handler(part, false));
    this.#request.once("end", () => handler(new Uint8Array(), true));
    // A body that is cut off; the end of its connection is noticed otherwise.
    this.#request.on("error", () => undefined);
  }

  writeContinue(): void {
    this.#response.writeContinue();
  }

  onAborted(handler: () => void): void {
    this.#onAborted = handler;
    // One for each request that was pipelined.
    this.#socket.setMaxListeners(0).once("close", handler);
  }

  end(bytes: Uint8Array = new Uint8Array(), closeConnection = false): void {
    if (this.#response.headersSent) {
      this.#finish(undefined);
      return;
    }
    if (closeConnection) this.#headers.push("Connection", "close");
    this.#writeHead(bytes.byteLength);
    this.#finish(Buffer.from(bytes));
  }

  endWithoutBody(byteLength?: number): void {
    this.#writeHead(byteLength);
    this.#finish(undefined);
  }

  close(): void {
    this.#socket.destroy();
  }

  getRemoteAddress(): string {
    return this.#socket.remoteAddress ?? "";
  }

  #writeHead(byteLength: number | undefined): void {
    if (byteLength !== undefined) this.#headers.push("Content-Length", String(byteLength));
    this.#response.writeHead(Number(this.#status.slice(0, 3)), this.#status.slice(4), this.#headers);
  }

  #finish(piece: Buffer | undefined): void {
    this.#response.end(piece);
    this.hasEnded = true;
    if (this.#onAborted !== undefined) this.#socket.off("close", this.#onAborted);
    // The sender watches only what has not ended. Node.js sets another time when the client has taken all.
    if (this.#keep(piece)) this.#socket.setTimeout(IDLE_MS);
  }

  /** Whether the socket holds bytes. It then becomes the owner of the piece. */
  #keep(piece: Buffer | undefined): boolean {
    const isPending = this.#isPending();
    if (isPending && piece?.buffer === scratch.buffer) scratch = Buffer.allocUnsafeSlow(PIECE_BYTES);
    return isPending;
  }

  #isPending(): boolean {
    // Without a socket it waits for the answer to a request before it. A broken one takes nothing more.
    return this.#response.socket === null || this.#socket.writableLength > 0 || this.#socket.destroyed;
  }
}

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
    const res = new NodeResponse(request, response, before === undefined ? 0 : before.place + 1);
    latest.set(socket, res);
    const isKnown = request.httpVersion === "1.1" && request.url?.startsWith("/");
    if (isKnown && request.rawHeaders.length <= 2 * MAX_HEADER_LINES) {
      options.onRequest(res, requestOf(request));
      return;
    }
    res.writeHead(isKnown ? "431 Request Header Fields Too Large" : REFUSED, []);
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
