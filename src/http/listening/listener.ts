import type { TlsFiles, TlsPair } from "./tls-files.js";

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
  writeStatus(status: string): unknown;
  /** Writes a header. More lines may follow in the value, each with its line break before it. */
  writeHeader(name: string, value: string | Uint8Array): unknown;
  /** Runs `write`, and sends what it writes in as few packets as possible. */
  cork(write: () => void): unknown;
  /** Offers bytes of a body. @returns Whether they were taken, and whether the body is complete with them. */
  tryEnd(bytes: Uint8Array, totalByteLength: number): readonly [isTaken: boolean, isDone: boolean];
  /** Bytes of the body that were taken so far. */
  getWriteOffset(): number;
  onWritable(handler: () => boolean): unknown;
  /** Calls the handler if the connection closes before the answer has ended. */
  onAborted(handler: () => void): unknown;
  end(bytes?: Uint8Array, closeConnection?: boolean): unknown;
  endWithoutBody(): unknown;
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
