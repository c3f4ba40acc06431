import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A server as far away as a delay says. */
export interface DelayProxy {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Listens, and hands on bytes to and from a port of this machine. What the server sends comes later by the delay, in
 * its order: each round trip takes so much longer, whatever the bandwidth.
 */
export async function startDelayProxy(port: number, delayMs: number): Promise<DelayProxy> {
  const sockets = new Set<Socket>();
  const proxy = createServer({ noDelay: true }, (client) => {
    const server = connect({ host: "127.0.0.1", port, noDelay: true });
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => sockets.delete(socket));
    }
    client.pipe(server);
    // Timers of one length end in the order of their beginning.
    server.on("data", (bytes) => setTimeout(() => client.write(bytes), delayMs));
    server.on("close", () => setTimeout(() => client.destroy(), delayMs));
    client.on("close", () => server.destroy());
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  return {
    port: (proxy.address() as AddressInfo).port,
    async close() {
      proxy.close();
      for (const socket of sockets) socket.destroy();
      await once(proxy, "close");
    },
  };
}
