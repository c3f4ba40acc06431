import { createServer, type Server } from "node:net";
import { listenFailure, probeAddress } from "../http/listening/listener.js";

/** A port that only the processes of this server share. */
export interface PortClaim {
  readonly port: number;
  /** Lets another server claim it once no process listens on it. */
  release(): void;
}

/**
 * Checks that a port is free, before processes listen on it with SO_REUSEPORT and would share it with any program. Two servers that
 * start in one instant would both find it free. So it first binds a name, an abstract socket of Linux, which the system removes with
 * the process.
 * @param port 0 picks a free one, which another program may still take before this server listens on it.
 * @throws ZpublishError `invalid-config` if the address is not available, as `HttpServer.listen` throws it.
 */
export async function claimPort(host: string, port: number): Promise<PortClaim> {
  // uWebSockets.js does not share a port that it was not given by its number.
  const claimed = port === 0 ? await probeAddress(host, 0) : port;
  const holder = await hold(`\0zpublish/${host}/${claimed}`);
  if (holder === "taken") throw listenFailure(host, claimed, { code: "EADDRINUSE" });
  try {
    if (port !== 0) await probeAddress(host, port);
  } catch (error) {
    holder?.close();
    throw error;
  }
  return { port: claimed, release: () => void holder?.close() };
}

/** Binds the name. Undefined if the system has no such sockets: then only the port is checked. */
function hold(name: string): Promise<Server | "taken" | undefined> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", (error: NodeJS.ErrnoException) => {
      resolve(error.code === "EADDRINUSE" ? "taken" : undefined);
    });
    server.listen({ path: name }, () => resolve(server.unref()));
  });
}
