import type { TemplatedApp, HttpResponse as UwsHttpResponse, us_listen_socket } from "uWebSockets.js";
import { setImmediate as nextIteration } from "node:timers/promises";
import { messageOf, ZpublishError } from "../../errors.js";
import { UWS_PACKAGES } from "../../observe/versions.js";
import { checkLines, type HeaderLines, NO_LINES } from "../headers.js";
import {
  type HttpResponse,
  type Listener,
  type ListenerOptions,
  listenFailure,
  probeAddress,
  type TlsFiles,
} from "./listener.js";

/** Header lines packed for one call into uWebSockets.js, which writes names and values as they are. */
interface PackedLines {
  /** The list before the one that this is kept for. */
  readonly first: HeaderLines;
  readonly name: string;
  /** Value of the first header, and all other lines. */
  readonly value: string | Uint8Array;
}

/** Packed forms of frozen lists, which never change, behind the list that was before them the last time. */
const packed = new WeakMap<HeaderLines, PackedLines>();
/** Texts of frozen lists that came first. */
const firstTexts = new WeakMap<HeaderLines, string>();

/** Packs two lists as one; undefined if both are empty. @throws ZpublishError as `checkLines` */
function packLines(first: HeaderLines, second: HeaderLines): PackedLines | undefined {
  const known = packed.get(second);
  if (known?.first === first) return known;
  let text = firstTexts.get(first);
  if (text === undefined) {
    text = textOf(first);
    if (Object.isFrozen(first)) firstTexts.set(first, text);
  }
  text += textOf(second);
  if (text === "") return undefined;
  const name = text.slice(2, text.indexOf(":"));
  const rest = text.slice(name.length + 4);
  const isConstant = Object.isFrozen(first) && Object.isFrozen(second);
  const lines = { first, name, value: isConstant ? Buffer.from(rest, "latin1") : rest };
  if (isConstant) packed.set(second, lines);
  return lines;
}

/** Returns lines as they are sent, each with its line break before it. */
function textOf(lines: HeaderLines): string {
  checkLines(lines);
  let text = "";
  for (const [name, value] of lines) text += `\r\n${name}: ${value}`;
  return text;
}

/** Most bytes of a body of unknown length that are written in one call. */
const MAX_CHUNK_BYTES = 256 * 1024;
/** Bytes that are offered to a socket that was full, to find out whether it still is. */
const PROBE_BYTES = 1024;

/** An answer of uWebSockets.js. */
class UwsResponse implements HttpResponse {
  readonly #res: UwsHttpResponse;
  /** Bytes of a body of unknown length that were written. */
  #written = 0;
  /** Whether uWebSockets.js holds some of them, because the socket did not take them. */
  #isFull = false;

  constructor(res: UwsHttpResponse) {
    this.#res = res;
  }

  writeHead(status: string, shared: HeaderLines, lines: HeaderLines, own: HeaderLines): void {
    const res = this.#res;
    // Packed before anything is written. Each call into uWebSockets.js costs more than a look at what is packed.
    const most = packLines(shared, lines);
    const rest = own.length === 0 ? undefined : packLines(NO_LINES, own);
    // uWebSockets.js writes 200 by itself.
    if (status !== "200 OK") res.writeStatus(status);
    if (most !== undefined) res.writeHeader(most.name, most.value);
    if (rest !== undefined) res.writeHeader(rest.name, rest.value);
  }

  cork(write: () => void): void {
    this.#res.cork(write);
  }

  tryEnd(bytes: Uint8Array, totalByteLength: number): readonly [boolean, boolean] {
    return this.#res.tryEnd(bytes, totalByteLength);
  }

  write(bytes: Uint8Array): boolean {
    // uWebSockets.js copies what the socket does not take, without a bound, and says so only at the next call. It sends its copy
    // only when more is written.
    const length = Math.min(bytes.byteLength, this.#isFull ? PROBE_BYTES : MAX_CHUNK_BYTES);
    this.#isFull = !this.#res.write(bytes.subarray(0, length));
    this.#written += length;
    return !this.#isFull;
  }

  getWriteOffset(): number {
    return this.#written || this.#res.getWriteOffset();
  }

  onWritable(handler: () => boolean): void {
    this.#res.onWritable(handler);
  }

  onData(handler: (part: ArrayBuffer, isLast: boolean) => void): void {
    this.#res.onData(handler);
  }

  writeContinue(): void {
    // uWebSockets.js did it before it called.
  }

  onAborted(handler: () => void): void {
    this.#res.onAborted(handler);
  }

  end(bytes?: Uint8Array, closeConnection?: boolean): void {
    this.#res.end(bytes, closeConnection);
  }

  endWithoutBody(byteLength?: number): void {
    // Not endWithoutBody(byteLength): uWebSockets.js then waits for as many bytes to be written, and drops the
    // connection at the next request on it. Without an argument it writes no Content-Length of its own.
    if (byteLength !== undefined) this.#res.writeHeader("Content-Length", String(byteLength));
    this.#res.endWithoutBody();
  }

  close(): void {
    this.#res.close();
  }

  getRemoteAddress(): ArrayBuffer {
    return this.#res.getRemoteAddress();
  }
}

/** Begins to listen with uWebSockets.js, like {@link OpenListener}. */
export async function openUwsListener(uws: Uws, options: ListenerOptions): Promise<Listener> {
  const { host, port } = options;
  let connections = 0;
  function note(res: UwsHttpResponse, change: number): void {
    connections += change;
    options.onConnection(change, () => res.close());
  }
  // Its types take numbers for objects.
  const app = createApp(uws, options.tls)
    .filter(note as unknown as Parameters<TemplatedApp["filter"]>[0])
    .any("/*", (res, req) => options.onRequest(new UwsResponse(res), req));
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

/** The uWebSockets.js module, with what its types leave out. */
export type Uws = typeof import("uWebSockets.js") & {
  readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number;
  /** Undocumented settings by undocumented keys. */
  readonly _cfg?: (key: string) => void;
};

/** Default of the bytes of request line and headers together. */
export const DEFAULT_MAX_HEADER_BYTES = 16 * 1024;

let loading: Promise<Uws> | undefined;

/**
 * Loads uWebSockets.js, once per process. It is native code, which an old system cannot load.
 * @param maxHeaderBytes Bytes of request line and headers that a client may send in pieces; more are answered 431. The value of
 * the first call holds for the process. Default 16 KiB.
 * @throws Error of the loader, which `explainLoadError` explains.
 */
export function loadUws(maxHeaderBytes = DEFAULT_MAX_HEADER_BYTES): Promise<Uws> {
  loading ??= importUws(maxHeaderBytes);
  return loading;
}

async function importUws(maxHeaderBytes: number): Promise<Uws> {
  // Read with getenv() when the library is loaded, 4 KiB by default: too little for a path parameter of the 1,024
  // bytes that are allowed, percent-encoded to three times that, beside ordinary headers.
  process.env.UWS_HTTP_MAX_HEADERS_SIZE = String(maxHeaderBytes);
  const [own, ofPlatform] = UWS_PACKAGES;
  const found = await import(own).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
    return import(ofPlatform);
  });
  // A CommonJS package: its exports are the default one, by name only what Node could guess.
  const uws = found.default as Uws;
  // Without this every answer says `uWebSockets: 20`.
  uws._cfg?.("999999990007");
  return uws;
}

/** Explains in one line why the native library could not be loaded: the loader's error, without the package's own text. */
export function explainLoadError(error: unknown): string {
  const lines = messageOf(error)
    .split("\n")
    .filter((line) => line.trim() !== "");
  const reason = lines.find((line) => line.startsWith("Error:")) ?? lines[0] ?? "unknown reason";
  const { platform, arch, versions } = process;
  return `uWebSockets.js cannot be loaded with Node.js ${versions.node} on ${platform} ${arch}: ${reason.trim()}`;
}
