import { connect, type Socket } from "node:net";

/** One answer, whole. */
export interface RawAnswer {
  readonly status: number;
  /** By name in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  /** Bytes of status line and headers, with the empty line after them. */
  readonly headByteLength: number;
  readonly body: Buffer;
}

const HEAD_END = Buffer.from("\r\n\r\n");

/**
 * Asks for one path on `count` connections that are all open before the first request is sent, and sends all requests in
 * one turn of the loop.
 * @throws Error where an answer does not come whole.
 */
export async function askAtOnce(
  baseUrl: string,
  path: string,
  count: number,
  headers: Readonly<Record<string, string>> = {},
): Promise<RawAnswer[]> {
  const target = targetOf(baseUrl);
  const sockets = await Promise.all(
    Array.from({ length: count }, () => openSocket(target.host, target.port)),
  );
  try {
    const answers = sockets.map((socket) => readAnswer(socket, path));
    const request = target.requestBytes(path, headers);
    for (const socket of sockets) socket.write(request);
    return await Promise.all(answers);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
}

function openSocket(host: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true }, () => {
      socket.off("error", reject);
      resolve(socket);
    });
    socket.once("error", reject);
  });
}

function readAnswer(socket: Socket, path: string): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let received = 0;
    let head: Omit<RawAnswer, "body"> | undefined;
    let expected = Number.POSITIVE_INFINITY;
    socket.on("data", (part) => {
      parts.push(part);
      received += part.length;
      if (head === undefined) {
        const all = Buffer.concat(parts);
        parts.splice(0, parts.length, all);
        const headEnd = all.indexOf(HEAD_END);
        if (headEnd < 0) return;
        head = parseHead(all.toString("latin1", 0, headEnd), headEnd + HEAD_END.length);
        const length = head.status === 304 ? 0 : Number(head.headers.get("content-length"));
        if (Number.isNaN(length)) return reject(new Error(`${path}: expected a Content-Length`));
        expected = head.headByteLength + length;
      }
      if (received >= expected) {
        resolve({ ...head, body: Buffer.concat(parts).subarray(head.headByteLength) });
      }
    });
    socket.once("error", reject);
    socket.once("close", () => reject(new Error(`${path}: the server closed the connection`)));
  });
}

function parseHead(text: string, headByteLength: number): Omit<RawAnswer, "body"> {
  const [statusLine, ...lines] = text.split("\r\n");
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
    }),
  );
  return { status: Number(statusLine!.split(" ")[1]), headers, headByteLength };
}

/** Where the requests of a generator go. */
export interface Target {
  readonly host: string;
  readonly port: number;
  /** A GET request as it is sent. */
  requestBytes(path: string, headers?: Readonly<Record<string, string>>): Buffer;
}

/** @param baseUrl An http URL; its path is put before every path. */
export function targetOf(baseUrl: string): Target {
  const { hostname, port, host, pathname } = new URL(baseUrl);
  const prefix = pathname.replace(/\/+$/, "");
  return {
    host: hostname,
    port: Number(port || 80),
    requestBytes(path, headers = {}) {
      const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
      return Buffer.from(
        `GET ${prefix}${path} HTTP/1.1\r\nHost: ${host}\r\n${fields.join("")}\r\n`,
        "latin1",
      );
    },
  };
}

const STATUS = /^HTTP\/1\.[01] (\d{3})/;
const CONTENT_LENGTH = /\r\ncontent-length: *(\d+)/i;

/** Follows the answers on one connection, without keeping their bodies. */
export interface AnswerReader {
  /**
   * Takes bytes as they come, which may be overwritten afterwards.
   * @returns The status of the answer that ends with them; `more`; or `broken` where it cannot be followed (in chunks,
   * say), or more came than was asked for.
   */
  take(bytes: Buffer): number | "more" | "broken";
}

/** Follows the answers of one connection. */
export function createAnswerReader(): AnswerReader {
  let head: Buffer | undefined;
  let status = 0;
  /** Bytes of the body still to come; undefined while the head is. */
  let missing: number | undefined;
  return {
    take(bytes) {
      if (missing === undefined) {
        const all = head === undefined ? bytes : Buffer.concat([head, bytes]);
        const headEnd = all.indexOf(HEAD_END);
        if (headEnd < 0) {
          head = Buffer.from(all);
          return "more";
        }
        head = undefined;
        const text = all.toString("latin1", 0, headEnd);
        status = Number(STATUS.exec(text)?.[1]);
        const length = status === 304 ? "0" : CONTENT_LENGTH.exec(text)?.[1];
        if (length === undefined) return "broken";
        missing = Number(length) - (all.length - headEnd - HEAD_END.length);
      } else {
        missing -= bytes.length;
      }
      if (missing > 0) return "more";
      if (missing < 0) return "broken";
      missing = undefined;
      return status;
    },
  };
}
