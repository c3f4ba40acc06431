import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { Test } from "tap";
import { freePort } from "../../bench/free-port.js";
import { rawRequest } from "../support/servers/raw-request.js";
import { startProgram } from "../support/servers/start-program.js";
import { makeDirectory } from "../support/write-store.js";

/** One of several programs that serve the same, each with a cache of its own. */
export type Instance = Awaited<ReturnType<typeof startInstance>>;

export interface InstanceOptions {
  /** Of a configuration file. */
  readonly config: object;
  readonly args?: readonly string[];
  /** Further variables of their environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts so many, and waits until they are ready. Ended with the test. */
export function startInstances(t: Test, count: number, options: InstanceOptions): Promise<Instance[]> {
  return Promise.all(Array.from({ length: count }, () => startInstance(t, options)));
}

async function startInstance(t: Test, options: InstanceOptions) {
  const directory = await makeDirectory(t);
  const port = await freePort();
  const args = ["--port", String(port), "--workers", "1", ...(options.args ?? [])];
  const { run } = await startProgram(t, { ...options, directory, args });
  while ((await rawRequest(port, "/readyz")).status === 503) await delay(20);
  return {
    port,
    directory,
    end(signal: "SIGTERM" | "SIGKILL") {
      run.child.kill(signal);
      return run.ended;
    },
    log: run.stderr,
  };
}

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
