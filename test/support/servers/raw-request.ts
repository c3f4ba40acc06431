import { once } from "node:events";
import { connect } from "node:net";

/** An answer as it came over the wire. */
export interface RawAnswer {
  readonly status: number;
  /** By lower-case name; several of one name joined with a line break. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** A connection that sends what it is told and takes answers apart. */
export type RawConnection = Awaited<ReturnType<typeof openConnection>>;

export async function openConnection(port: number) {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  let received: Buffer = Buffer.alloc(0);
  let arrived: Buffer[] = [];
  let arrivedBytes = 0;
  let closed = false;
  let wake = () => {};
  socket.on("data", (chunk) => {
    arrived.push(chunk);
    arrivedBytes += chunk.byteLength;
    wake();
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    closed = true;
    wake();
  });

  /** Waits until there are at least so many bytes. */
  async function atLeast(byteLength: number): Promise<void> {
    while (received.byteLength + arrivedBytes < byteLength) await more();
    received = Buffer.concat([received, ...arrived]);
    arrived = [];
    arrivedBytes = 0;
  }

  async function more(): Promise<void> {
    if (closed)
      throw new Error(`connection closed; received so far: ${received.toString("latin1").slice(0, 300)}`);
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  }

  /** The next answer. @param bodiless Whether it is one to HEAD. Rejects if the connection ends before. */
  async function answer(bodiless = false): Promise<RawAnswer> {
    let end = received.indexOf("\r\n\r\n");
    while (end < 0) {
      await atLeast(received.byteLength + 1);
      end = received.indexOf("\r\n\r\n");
    }
    const [statusLine = "", ...lines] = received.toString("latin1", 0, end).split("\r\n");
    const headers: Record<string, string> = {};
    for (const line of lines) {
      const name = line.slice(0, line.indexOf(":")).toLowerCase();
      const value = line.slice(line.indexOf(":") + 1).trim();
      headers[name] = headers[name] === undefined ? value : `${headers[name]}\n${value}`;
    }
    const status = Number(statusLine.split(" ")[1]);
    const byteLength = bodiless || status === 304 || status === 204 ? 0 : Number(headers["content-length"]);
    await atLeast(end + 4 + byteLength);
    const body = received.subarray(end + 4, end + 4 + byteLength);
    received = received.subarray(end + 4 + byteLength);
    return { status, headers, body };
  }

  /** What has come and is not taken as an answer yet, as Latin-1. */
  const all = () => Buffer.concat([received, ...arrived]).toString("latin1");
  return {
    socket,
    received: all,
    closed: (): boolean => closed,
    send: (text: string) => void socket.write(text, "latin1"),
    answer,
  };
}

export interface RawRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The text of a request. */
export function requestText(path: string, { method = "GET", headers = {} }: RawRequest = {}): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\nHost: test\r\n${lines.join("")}\r\n`;
}

/** One request on a connection of its own, its path sent as it is. */
export async function rawRequest(port: number, path: string, request: RawRequest = {}): Promise<RawAnswer> {
  const connection = await openConnection(port);
  try {
    connection.send(requestText(path, request));
    return await connection.answer(request.method === "HEAD");
  } finally {
    connection.socket.destroy();
  }
}

/** The body as JSON. */
export function jsonOf(answer: RawAnswer): unknown {
  return JSON.parse(answer.body.toString("utf8"));
}
