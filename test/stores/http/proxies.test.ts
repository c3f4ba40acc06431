import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer, request } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import t, { type Test } from "tap";
import { startFaultyOrigin } from "../../origins/faulty-origin.js";

const READER = fileURLToPath(new URL("proxied-reads.js", import.meta.url));

interface Proxy {
  readonly url: string;
  /** First lines of the requests that came: `GET http://…`, `CONNECT …`. */
  readonly received: string[];
  /** Headers that were for the proxy. */
  readonly authorizations: (string | undefined)[];
}

/** Starts a proxy that forwards requests, and makes tunnels to one origin whatever they are asked for. */
async function startProxy(t: Test, originPort: number): Promise<Proxy> {
  const received: string[] = [];
  const authorizations: (string | undefined)[] = [];
  const server = createServer((message, response) => {
    received.push(`${message.method} ${message.url}`);
    authorizations.push(message.headers["proxy-authorization"]);
    const { pathname } = new URL(message.url ?? "");
    const forwarded = request({
      port: originPort,
      host: "127.0.0.1",
      path: pathname,
      method: message.method,
    });
    forwarded.on("response", (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    forwarded.end();
  });
  server.on("connect", (message, socket) => {
    received.push(`CONNECT ${message.url}`);
    authorizations.push(message.headers["proxy-authorization"]);
    const tunnel = connect(originPort, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      tunnel.pipe(socket).pipe(tunnel);
    });
    for (const end of [tunnel, socket]) end.on("error", () => {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `127.0.0.1:${port}`, received, authorizations };
}

/** Reads objects in a process with other variables. @returns One line each. */
async function readWith(variables: NodeJS.ProcessEnv, ...urls: readonly string[]): Promise<string[]> {
  const names = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];
  const none = Object.fromEntries(
    names.flatMap((name) => [
      [name, undefined],
      [name.toLowerCase(), undefined],
    ]),
  );
  const env = { ...process.env, ...none, NODE_OPTIONS: "", ...variables };
  const { stdout } = await promisify(execFile)(process.execPath, [READER, ...urls], { env });
  return stdout.trimEnd().split("\n");
}

t.test("http:// goes through HTTP_PROXY, which gets its own credentials", async (t) => {
  const origin = await startFaultyOrigin(t, { objects: { a: "bytes" } });
  const proxy = await startProxy(t, origin.port);
  const url = `http://data.example:8080/a`;
  for (const name of ["HTTP_PROXY", "http_proxy"]) {
    proxy.received.length = 0;
    t.same(await readWith({ [name]: `http://user:s3cr3t@${proxy.url}` }, url), ["bytes"]);
    t.same(proxy.received, [`GET ${url}`], "no tunnel, which many proxies grant for port 443 alone");
    t.equal(proxy.authorizations.at(-1), `Basic ${Buffer.from("user:s3cr3t").toString("base64")}`);
  }
  t.ok(origin.requests.every(({ headers }) => headers["proxy-authorization"] === undefined));
});

t.test("https:// goes through a tunnel of HTTPS_PROXY", async (t) => {
  const origin = await startFaultyOrigin(t);
  const proxy = await startProxy(t, origin.port);
  // The origin speaks no TLS: it is enough that the tunnel was asked for.
  const [line = ""] = await readWith(
    { HTTPS_PROXY: `http://user:s3cr3t@${proxy.url}` },
    "https://data.example/a",
  );
  t.match(line, "cannot be read");
  t.notMatch(line, "s3cr3t");
  t.equal(proxy.received[0], "CONNECT data.example:443");
  t.equal(origin.count(), 0);
});

t.test("hosts of NO_PROXY are reached without one", async (t) => {
  const origin = await startFaultyOrigin(t, { objects: { a: "bytes" } });
  const proxy = await startProxy(t, origin.port);
  const variables = { HTTP_PROXY: `http://${proxy.url}`, NO_PROXY: "example.org,127.0.0.1" };
  t.same(await readWith(variables, `${origin.url}/a`, `${origin.url}/none`), ["bytes", "absent"]);
  t.same(proxy.received, []);
});

t.test("a proxy that is gone or refuses is a failure", async (t) => {
  const origin = await startFaultyOrigin(t, { objects: { a: "bytes" } });
  origin.setFault(() => ({ status: 407 }));
  const url = `${origin.url}/a`;
  const [refused = ""] = await readWith({ HTTP_PROXY: origin.url }, url);
  t.match(refused, /^'a': .*407/);
  await origin.stop();
  const [gone = ""] = await readWith({ HTTP_PROXY: `http://user:s3cr3t@127.0.0.1:${origin.port}` }, url);
  t.match(gone, /^'a': .*ECONNREFUSED/);
  t.notMatch(gone, "s3cr3t");
});
