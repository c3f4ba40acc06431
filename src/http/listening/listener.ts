import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { messageOf, ZpublishError } from "../../errors.js";
import type { HeaderLines } from "../headers.js";

/** A request, as uWebSockets.js has it and `node-listener.ts` imitates it. Valid until the callback returns. */
export interface HttpRequest {
  /** The path as it came, percent-encoded. */
  getUrl(): string;
  /** Undefined without a question mark. */
  getQuery(): string | undefined;
  /** The first header of a lower-case name; empty if there is none. */
  getHeader(name: string): string;
  /** Calls with each header line, its name in lower case. */
  forEach(call: (name: string, value: string) => void): void;
  getCaseSensitiveMethod(): string;
}

/** An answer, as uWebSockets.js has it and `node-listener.ts` imitates it. Must not be touched once it is aborted or ended. */
export interface HttpResponse {
  /**
   * Writes the status line and headers: those of all answers, of this kind of answer, and of this answer alone.
   * @throws ZpublishError as `checkLines`; nothing is written then.
   */
  writeHead(status: string, shared: HeaderLines, lines: HeaderLines, own: HeaderLines): void;
  /** Runs `write`, and sends what it writes in as few packets as possible. */
  cork(write: () => void): unknown;
  /** Offers bytes of a body. @returns Whether they were taken, and whether the body is complete with them. */
  tryEnd(bytes: Uint8Array, totalByteLength: number): readonly [isTaken: boolean, isDone: boolean];
  /**
   * Writes bytes of a body of unknown length, in chunked coding: as many as it takes, which `getWriteOffset` tells. `end()` ends the body.
   * @returns Whether it takes more.
   */
  write(bytes: Uint8Array): boolean;
  /** Bytes of the body that were taken so far. */
  getWriteOffset(): number;
  onWritable(handler: () => boolean): unknown;
  /**
   * Calls the handler with each part of the request's body, valid until it returns. To be called before the callback of the request
   * returns; the body is ignored otherwise.
   */
  onData(handler: (part: ArrayBuffer | Uint8Array, isLast: boolean) => void): unknown;
  /** Tells a client that waits for it to send the body (100 Continue). */
  writeContinue(): void;
  /** Calls the handler if the connection closes before the answer has ended. */
  onAborted(handler: () => void): unknown;
  end(bytes?: Uint8Array, closeConnection?: boolean): unknown;
  /** @param byteLength Content-Length of an answer to HEAD. */
  endWithoutBody(byteLength?: number): unknown;
  /** Drops the connection. */
  close(): unknown;
  /** Address of the peer: 4 or 16 bytes, or a text. */
  getRemoteAddress(): ArrayBuffer | string;
}

/** What a listener listens on, and whom it calls. */
export interface ListenerOptions {
  readonly host: string;
  /** 0 picks a free port, which cannot be shared. */
  readonly port: number;
  /** Whether other listeners of the same user may use the port, here or in other processes. */
  readonly sharesPort: boolean;
  /** Null: plain HTTP. */
  readonly tls: (TlsFiles & TlsPair) | null;
  /** Called for each connection: with 1 when it opens, with -1 when it has closed. @param close Closes one that has opened. */
  readonly onConnection: (change: number, close: () => void) => void;
  readonly onRequest: (res: HttpResponse, req: HttpRequest) => void;
}

/** A listening socket and its connections. */
export interface Listener {
  readonly port: number;
  /** Number of open connections. */
  readonly connections: number;
  /** Stops accepting connections. Open connections stay. */
  stopAccepting(): Promise<void>;
  /** Stops listening and drops all connections. */
  close(): void;
  /** Uses another certificate for new connections; undefined if that takes another listener. */
  readonly useCertificate?: (pair: TlsPair) => void;
}

/** Begins to listen. @throws ZpublishError `invalid-config` if address, certificate or key cannot be used. */
export type OpenListener = (options: ListenerOptions) => Promise<Listener>;

/** Paths of certificate chain and private key, in PEM format. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Certificate chain and private key that belong together. */
export interface TlsPair {
  readonly certPem: string;
  readonly keyPem: string;
  /** Names that the server's own certificate, the first of the chain, is for. */
  readonly subject: string;
  readonly validFrom: Date;
  readonly validTo: Date;
}

/**
 * Reads certificate and key, and checks that they belong together. A certificate that has expired or is not valid yet is
 * accepted: clients that ignore that are served.
 * @throws ZpublishError `invalid-config`, naming the file and what is wrong with it.
 */
export async function readTlsFiles({ certFile, keyFile }: TlsFiles): Promise<TlsPair> {
  const [certPem, keyPem] = await Promise.all([read("certificate", certFile), read("key", keyFile)]);
  const certificate = parseChain(certPem, certFile);
  const key = parseKey(keyPem, keyFile);
  if (!certificate.checkPrivateKey(key)) {
    throw invalid(`expected the key of the certificate in ${certFile}, received another in ${keyFile}`);
  }
  return {
    certPem,
    keyPem,
    subject: certificate.subjectAltName ?? certificate.subject,
    validFrom: new Date(certificate.validFrom),
    validTo: new Date(certificate.validTo),
  };
}

async function read(what: string, file: string): Promise<string> {
  try {
    return await readFile(file, "latin1");
  } catch (error) {
    throw invalid(`the ${what} cannot be read: ${messageOf(error)}`, error);
  }
}

/** Parses all certificates, and returns the first one, which is the server's. */
function parseChain(pem: string, file: string): X509Certificate {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  try {
    const [first] = blocks.map((block) => new X509Certificate(block));
    if (first !== undefined) return first;
  } catch (error) {
    throw invalid(`expected certificates in ${file}, received one that cannot be read`, error);
  }
  throw invalid(`expected a certificate in PEM format in ${file}, found none`);
}

function parseKey(pem: string, file: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (error) {
    const isEncrypted = /ENCRYPTED/.test(pem);
    const received = isEncrypted ? "one that needs a passphrase" : "none that can be read";
    throw invalid(
      `expected a private key in PEM format without a passphrase in ${file}, received ${received}`,
      error,
    );
  }
}

function invalid(message: string, cause?: unknown): ZpublishError {
  return new ZpublishError("invalid-config", `TLS: ${message}`, { cause });
}

/** Checks a port number. @throws ZpublishError `invalid-config` if it is none. */
export function checkPort(port: number): void {
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return;
  throw new ZpublishError("invalid-config", `Port: expected 0 to 65535, received ${port}`);
}

/**
 * Finds out whether this process alone can listen on an address, by trying. uWebSockets.js does not say why it failed, and
 * accepts a port that others share.
 * @returns The port; a free one for 0.
 * @throws ZpublishError `invalid-config` with host and port among its details.
 */
export function probeAddress(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", (reason) => reject(listenFailure(host, port, reason)));
    probe.listen({ host, port, exclusive: true }, () => {
      const found = (probe.address() as AddressInfo).port;
      probe.close(() => resolve(found));
    });
  });
}

/** Creates the error that says why an address cannot be listened on. @param reason Error of the system; undefined if there is none. */
export function listenFailure(host: string, port: number, reason: unknown): ZpublishError {
  const code = (reason as NodeJS.ErrnoException | undefined)?.code ?? "unknown";
  const why = LISTEN_FAILURES[code] ?? (reason === undefined ? "the reason is not known" : messageOf(reason));
  return new ZpublishError("invalid-config", `Cannot listen on ${bracketed(host)}:${port}: ${why}`, {
    details: { host, port, reason: code },
    cause: reason,
  });
}

const LISTEN_FAILURES: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is in use by another program",
  EACCES: "this user may not use that port",
  EADDRNOTAVAIL: "this machine does not have that address",
  ENOTFOUND: "there is no host of that name",
};

const WILDCARDS: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "[::1]" };

/** Returns the host of a URL by which this machine reaches a server that listens on `host`. */
export function reachableHost(host: string): string {
  return WILDCARDS[host] ?? bracketed(host);
}

/** Returns a host as a URL has it: an IPv6 address in brackets. */
function bracketed(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
