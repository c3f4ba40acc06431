import { createServer, type Server } from "node:net";
import { listenFailure, probeAddress } from "../http/probe-address.js";

/** A port that this server's processes may share, and no other server's. */
export interface PortClaim {
  readonly port: number;
  /** Lets another server have it as soon as nobody listens on it any more. */
  release(): void;
}

/**
 * Makes sure that a port is free, before processes listen on it that would share it with anybody. Two servers that start
 * in one instant would both find it free: so who looks holds a name meanwhile and until the end, an abstract socket of Linux, which
 * goes away with its process.
 * @param port 0 picks a free one; that somebody else picks it before it is listened on is unlikely, and not impossible.
 * @throws ZpublishError `invalid-config` where the address cannot be had, as `HttpServer.listen` throws it.
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

/** Undefined where the system has no such sockets: it stays with the look at the port. */
function hold(name: string): Promise<Server | "taken" | undefined> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", (error: NodeJS.ErrnoException) => {
      resolve(error.code === "EADDRINUSE" ? "taken" : undefined);
    });
    server.listen({ path: name }, () => resolve(server.unref()));
  });
}
