import { type AddressInfo, createServer } from "node:net";
import { messageOf, ZpublishError } from "../../errors.js";

/** Checks a port number. @throws ZpublishError `invalid-config` if it is none. */
export function checkPort(port: number): void {
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return;
  throw new ZpublishError("invalid-config", `Port: expected 0 to 65535, received ${port}`);
}

/**
 * Finds out whether this process alone can listen on an address, by trying. uWebSockets.js does not say why it failed, and
 * accepts a port that others share.
 * @returns The port; a free one for 0.
 * @throws ZpublishError `invalid-config` with host and port among its details.
 */
export function probeAddress(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", (reason) => reject(listenFailure(host, port, reason)));
    probe.listen({ host, port, exclusive: true }, () => {
      const found = (probe.address() as AddressInfo).port;
      probe.close(() => resolve(found));
    });
  });
}

/** Creates the error that says why an address cannot be listened on. @param reason Error of the system; undefined if there is none. */
export function listenFailure(host: string, port: number, reason: unknown): ZpublishError {
  const code = (reason as NodeJS.ErrnoException | undefined)?.code ?? "unknown";
  const why = LISTEN_FAILURES[code] ?? (reason === undefined ? "the reason is not known" : messageOf(reason));
  return new ZpublishError("invalid-config", `Cannot listen on ${bracketed(host)}:${port}: ${why}`, {
    details: { host, port, reason: code },
    cause: reason,
  });
}

const LISTEN_FAILURES: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is in use by another program",
  EACCES: "this user may not use that port",
  EADDRNOTAVAIL: "this machine does not have that address",
  ENOTFOUND: "there is no host of that name",
};

const WILDCARDS: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "[::1]" };

/** Returns the host of a URL by which this machine reaches a server that listens on `host`. */
export function reachableHost(host: string): string {
  return WILDCARDS[host] ?? bracketed(host);
}

/** Returns a host as a URL has it: an IPv6 address in brackets. */
function bracketed(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
