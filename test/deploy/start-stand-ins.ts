import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from "node:http";
import type { Test } from "tap";
import { freePort } from "../../bench/free-port.js";

/** What a stand-in does with a request: answers, with this status, or closes the connection without a word. */
export type Conduct = 200 | 500 | 503 | "hang up";

/** A request as it arrived. */
export interface Arrived {
  readonly method: string;
  /** As it was sent. */
  readonly url: string;
  readonly httpVersion: string;
  readonly headers: IncomingHttpHeaders;
}

/** A server in the place of an instance, that says what reaches an instance and fails as it is told. */
export interface StandIn {
  readonly port: number;
  /** But for health checks, which are answered as all is well. */
  readonly arrived: Arrived[];
  conduct: Conduct;
  listen(): Promise<void>;
  /** Hangs up, and refuses connections from now on. */
  close(): Promise<void>;
}

/** Starts so many, each on a port of its own. */
export async function startStandIns(t: Test, count: number): Promise<StandIn[]> {
  const standIns = await Promise.all(Array.from({ length: count }, createStandIn));
  for (const standIn of standIns) {
    await standIn.listen();
    t.teardown(() => standIn.close());
  }
  return standIns;
}

async function createStandIn(): Promise<StandIn> {
  const port = await freePort();
  let server: Server | undefined;
  const standIn: StandIn = {
    port,
    arrived: [],
    conduct: 200,
    async listen() {
      server = createServer((request, response) => {
        if (request.url === "/readyz") return void response.end();
        standIn.arrived.push(arrivedOf(request));
        if (standIn.conduct === "hang up") return void request.socket.destroy();
        response.writeHead(standIn.conduct, {
          "Content-Type": "text/html",
          ETag: '"strong"',
          "Retry-After": "1",
        });
        response.end("<p>".repeat(1_000));
      });
      server.listen(port, "127.0.0.1");
      await once(server, "listening");
    },
    async close() {
      if (server?.listening !== true) return;
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
  return standIn;
}

function arrivedOf({ method = "", url = "", httpVersion, headers }: IncomingMessage): Arrived {
  return { method, url, httpVersion, headers };
}
