import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { HttpResponse } from "./listener.js";

/** Milliseconds for a connection to be idle, and for a request to arrive: those of uWebSockets.js, which has no option for it. */
export const IDLE_MS = 10_000;
/** Most bytes of a body that wait in memory for one client. */
const PIECE_BYTES = 64 * 1024;

/** Names and values of lines that were packed into bytes, which are sent again and again. */
const unpacked = new WeakMap<Uint8Array, readonly string[]>();

/** Memory for the next piece. Belongs to a connection if that could not send the piece at once. */
let scratch = Buffer.allocUnsafeSlow(PIECE_BYTES);

/**
 * An answer. A socket of Node.js takes all that it is given and reads from there later, but a view of a body is valid only now. So
 * bodies are copied in pieces, and the next one is taken when the system has the last.
 */
export class NodeResponse implements HttpResponse {
  /** Number of answers before it that the connection has not sent yet. */
  readonly place: number;
  hasEnded = false;
  readonly #socket: Socket;
  readonly #response: ServerResponse;
  #status = "200 OK";
  #headers: string[] = [];
  /** Bytes of the body that the socket was given. */
  #offset = 0;
  /** Whether the socket holds some of them. */
  #isFull = false;
  #onWritable: (() => boolean) | undefined;
  #onAborted: (() => void) | undefined;

  constructor(socket: Socket, response: ServerResponse, place: number) {
    this.place = place;
    this.#socket = socket;
    this.#response = response;
    // A write just after the connection broke; its end is noticed otherwise.
    response.on("error", () => undefined);
  }

  writeStatus(status: string): void {
    this.#status = status;
  }

  writeHeader(name: string, value: string | Uint8Array): void {
    if (typeof value === "string") {
      this.#headers.push(...unpack(name, value));
      return;
    }
    let lines = unpacked.get(value);
    if (lines === undefined) {
      lines = unpack(name, Buffer.from(value).toString("latin1"));
      unpacked.set(value, lines);
    }
    this.#headers.push(...lines);
  }

  cork(write: () => void): void {
    write();
  }

  tryEnd(bytes: Uint8Array, totalByteLength: number): readonly [boolean, boolean] {
    if (!this.#response.headersSent) this.#writeHead(totalByteLength);
    for (let at = 0; at < bytes.byteLength && !this.#isFull; at += PIECE_BYTES) {
      const piece = this.#copy(bytes.subarray(at, at + PIECE_BYTES));
      this.#offset += piece.byteLength;
      if (this.#offset === totalByteLength) {
        this.#finish(piece);
        return [true, true];
      }
      this.#response.write(piece, () => this.#flushed());
      // Node.js would wait for the end of this turn.
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

  onAborted(handler: () => void): void {
    this.#onAborted = handler;
    // One for each request that was pipelined.
    this.#socket.setMaxListeners(0).once("close", handler);
  }

  end(bytes: Uint8Array = new Uint8Array(), closeConnection = false): void {
    if (closeConnection) this.#headers.push("Connection", "close");
    this.#writeHead(bytes.byteLength);
    this.#finish(Buffer.from(bytes));
  }

  endWithoutBody(): void {
    this.#writeHead(undefined);
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

function unpack(name: string, value: string): string[] {
  return `${name}: ${value}`.split("\r\n").flatMap((line) => {
    const colon = line.indexOf(": ");
    return [line.slice(0, colon), line.slice(colon + 2)];
  });
}
