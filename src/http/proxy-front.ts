import { createServer, type Socket } from "node:net";
import type { ConnectionLimit } from "./connection-limit.js";
import { createPassedConnections } from "./passed-connections.js";
import { listenFailure } from "./probe-address.js";
import { parseProxyHeader } from "./proxy-header.js";
import { quietTurn } from "./quiet-turn.js";

/** Until a header of the PROXY protocol has come, or what is none: as long as uWebSockets.js waits for a request. */
const HEADER_TIMEOUT_MS = 10_000;

/** Takes connections of the PROXY protocol, and passes them on. */
export interface ProxyFront {
  readonly port: number;
  /** Accepts nobody any more. */
  stopAccepting(): Promise<void>;
  /** Drops all connections, too. */
  close(): void;
}

export interface ProxyFrontOptions {
  readonly host: string;
  readonly port: number;
  /** On 127.0.0.1: where connections are passed on to, without their header. */
  readonly innerPort: number;
  readonly limit: ConnectionLimit;
  /** A client that takes nothing of what is there for it for so long is dropped. Asked at each look. */
  readonly stallTimeoutMs: () => number;
}

/**
 * Takes the header of the PROXY protocol from the beginning of each connection, where there is one, and passes on the rest as it
 * comes. uWebSockets.js knows version 2 itself, but only where the request comes in the same piece: of 1,000 connections of
 * HAProxy 2.6, 126 were answered 505, of 1,000 that it passes on as TCP, 413. And it believes any later header of the
 * connection, which is the client's; and no version 1; and none before TLS.
 * @throws ZpublishError `invalid-config` where the address cannot be had.
 */
export function openProxyFront(options: ProxyFrontOptions): Promise<ProxyFront> {
  const { host, port, innerPort, limit, stallTimeoutMs } = options;
  const open = new Set<Socket>();
  const passed = createPassedConnections(innerPort, stallTimeoutMs);
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (outer) => {
    open.add(outer);
    outer.on("error", () => outer.destroy());
    outer.once("close", () => {
      open.delete(outer);
      limit.note(-1, () => {});
    });
    limit.note(1, () => outer.resetAndDestroy());
    if (!outer.destroyed) takeHeader(outer, (address, rest) => passed.add(outer, address, rest));
  });
  return new Promise((resolve, reject) => {
    const refuse = (reason: unknown) => reject(listenFailure(host, port, reason));
    server.once("error", refuse);
    server.listen({ host, port, exclusive: true, backlog: 512 }, () => {
      server.off("error", refuse);
      // Of accepting, where files run out: it is tried again.
      server.on("error", () => {});
      resolve({
        port: (server.address() as { port: number }).port,
        async stopAccepting() {
          await quietTurn();
          server.close();
        },
        close() {
          server.close();
          passed.close();
          for (const outer of open) outer.destroy();
        },
      });
    });
  });
}

/** @param then Called once, with the client's address and what came behind the header. */
function takeHeader(outer: Socket, then: (address: string | undefined, rest: Buffer) => void): void {
  let received: Buffer = Buffer.alloc(0);
  const giveUp = () => void outer.destroy();
  const timer = setTimeout(giveUp, HEADER_TIMEOUT_MS);
  outer.once("close", () => clearTimeout(timer));
  outer.once("end", giveUp);
  outer.on("data", look);

  function look(piece: Buffer): void {
    received = received.length === 0 ? piece : Buffer.concat([received, piece]);
    const header = parseProxyHeader(received);
    if (header.kind === "incomplete") return;
    clearTimeout(timer);
    outer.off("data", look).off("end", giveUp).pause();
    if (header.kind === "broken") outer.destroy();
    else if (header.kind === "none") then(undefined, received);
    else then(header.address, received.subarray(header.byteLength));
  }
}
