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
