import { spawn, spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import t from "tap";
import { createDocument } from "../../src/http/create-document.js";
import { probeAddress } from "../../src/http/listening/listener.js";
import { explainLoadError } from "../../src/http/listening/uws-listener.js";
import { createHttpServer } from "../../src/http/server.js";
import { eventually } from "../support/servers/open-files.js";
import { openConnection, rawRequest, requestText } from "../support/servers/raw-request.js";
import {
  bodyOf,
  bodyReplyOf,
  cannotSharePort,
  createTestLog,
  isNodeHttp,
  routeOf,
  serveRoutes,
} from "../support/servers/serve-routes.js";
import { EXPIRED, FIRST, LOCKED_KEY, makeTlsDirectory, SECOND } from "../support/servers/tls-pairs.js";

const document = createDocument("{}", "application/json");
const routes = [
  routeOf("/page", () => ({ kind: "document", document })),
  routeOf(
    "/slow",
    () =>
      bodyReplyOf(new Uint8Array(10), '"t"', {
        open: async () => {
          await delay(300);
          return bodyOf(new Uint8Array(10));
        },
      }),
    "chunk",
  ),
];

t.test("says where it listens", async (t) => {
  for (const [host, url] of [
    ["127.0.0.1", "http://127.0.0.1"],
    ["0.0.0.0", "http://127.0.0.1"],
    ["localhost", "http://localhost"],
    ["::1", "http://[::1]"],
    ["::", "http://[::1]"],
  ] as const) {
    const server = createHttpServer({ log: createTestLog().log });
    server.use({ routes });
    t.teardown(() => server.close(0));
    const address = await server.listen(host, 0);
    t.strictSame(address, { host, port: address.port, url: `${url}:${address.port}` });
    t.ok(address.port > 0);
    t.equal((await fetch(`${address.url}/page`)).status, 200, address.url);
  }
});

t.test("refuses an address it cannot have, and says why", async (t) => {
  const { port } = await serveRoutes(t, routes);
  for (const [host, on, message] of [
    ["127.0.0.1", port, `Cannot listen on 127.0.0.1:${port}: the port is in use by another program`],
    ["203.0.113.1", 0, "Cannot listen on 203.0.113.1:0: this machine does not have that address"],
    ["127.0.0.1", 65_536, "Port: expected 0 to 65535, received 65536"],
    ["127.0.0.1", -1, "Port: expected 0 to 65535, received -1"],
  ] as const) {
    const server = createHttpServer({ log: createTestLog().log });
    await t.rejects(server.listen(host, on), { code: "invalid-config", message });
    await server.close();
  }
});

t.test("the log says which library serves, and why, in one line", async (t) => {
  const { lines } = await serveRoutes(t, routes, { admin: { host: "127.0.0.1", port: 0 } });
  const said = lines.filter(({ msg }) => msg.includes("served by node:http"));
  t.equal(said.length, isNodeHttp ? 1 : 0);
  for (const { msg } of said) t.match(msg, /^(ZPUBLISH_HTTP=node: |uWebSockets\.js )/);
});

t.test("a variable that names no library is refused", async (t) => {
  const { ZPUBLISH_HTTP } = process.env;
  process.env.ZPUBLISH_HTTP = "apache";
  t.teardown(() => {
    if (ZPUBLISH_HTTP === undefined) delete process.env.ZPUBLISH_HTTP;
    else process.env.ZPUBLISH_HTTP = ZPUBLISH_HTTP;
  });
  await t.rejects(serveRoutes(t, routes), {
    code: "invalid-config",
    message: "ZPUBLISH_HTTP: expected node or nothing, received apache",
  });
});

t.test("a port is shared by servers that all agree to, and by no others", async (t) => {
  const { port } = await serveRoutes(t, routes);
  const { log } = createTestLog();
  const sharing = () => createHttpServer({ log, sharesPort: true });
  if (cannotSharePort) {
    await t.rejects(sharing().listen("127.0.0.1", 0), { code: "unsupported", message: /Node\.js 22\.12/ });
    return;
  }
  await t.rejects(sharing().listen("127.0.0.1", port), { message: /in use by another program/ });
  const free = await probeAddress("127.0.0.1", 0);
  const servers = [sharing(), sharing()];
  for (const server of servers) {
    t.teardown(() => server.close(0));
    t.equal((await server.listen("127.0.0.1", free)).port, free);
  }
  await t.rejects(probeAddress("127.0.0.1", free), { message: /in use by another program/ });
  await t.rejects(createHttpServer({ log }).listen("127.0.0.1", free), { code: "invalid-config" });
});

t.test("finishes what is under way when it closes, then drops every connection", async (t) => {
  const { server, port } = await serveRoutes(t, routes);
  const idle = await openConnection(port);
  const busy = await openConnection(port);
  const second = await openConnection(port);
  busy.send(requestText("/slow"));
  await delay(50);
  const closed = server.close();
  t.equal(server.close(), closed, "closing twice is closing once");
  await delay(20);
  await t.rejects(rawRequest(port, "/page"), /ECONNREFUSED/, "new connections are refused");
  second.send(requestText("/page"));
  const page = await second.answer();
  t.equal(page.status, 200, "what is asked on connections that are open is answered");
  t.equal(page.headers.connection, "close");
  idle.send(requestText("/slow"));
  const late = await idle.answer();
  t.equal(late.status, 200);
  t.equal(late.headers.connection, "close");
  t.equal((await busy.answer()).body.byteLength, 10);
  await closed;
  await delay(20);
  t.ok(idle.closed() && busy.closed() && second.closed());
});

t.test("waits no longer than it is told, and answers requests that still wait with 503", async (t) => {
  const never = routeOf("/never", () => new Promise(() => {}), "chunk");
  const { server, port } = await serveRoutes(t, [never]);
  const connection = await openConnection(port);
  connection.send(requestText("/never"));
  await delay(50);
  const began = performance.now();
  await server.close(200);
  t.ok(performance.now() - began < 20_000);
  const turnedAway = await connection.answer();
  t.equal(turnedAway.status, 503, "answered, and not cut off: a proxy asks another server then");
  t.match(turnedAway.headers, {
    "retry-after": /^\d+$/,
    connection: "close",
    "access-control-allow-origin": "*",
  });
  await delay(20);
  t.ok(connection.closed());
  t.equal(server.stats.requestsInFlight, 0);
});

t.test("a process with a closed server ends", async (t) => {
  const source = `
    import { createHttpServer } from ${JSON.stringify(new URL("../../src/http/server.js", import.meta.url).href)};
    const log = { isLevelEnabled: () => false, info() {}, warn() {} };
    const server = createHttpServer({ log });
    server.use({ routes: [] });
    const { url } = await server.listen("127.0.0.1", 0);
    const response = await fetch(url + "/x");
    await response.text();
    await server.close();
    console.log(response.status);
  `;
  const run = spawnSync(process.execPath, ["--input-type=module", "-e", source], {
    encoding: "utf8",
    timeout: 20_000,
  });
  t.equal(run.stdout.trim(), "404", run.stderr);
  t.equal(run.stderr, "", "nothing is warned about");
  t.equal(run.status, 0);
});

const secureRoutes = [routeOf("/page", () => ({ kind: "document", document }))];

function open(port: number, options: ConnectionOptions = {}): TLSSocket {
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ...options });
  socket.on("error", () => {});
  return socket;
}

/** Asks once, on a connection that is open or new. @returns What came; empty where the connection was lost. */
function ask(socket: TLSSocket): Promise<string> {
  return new Promise((resolve) => {
    socket.once("data", (piece) => resolve(String(piece)));
    socket.once("close", () => resolve(""));
    socket.write(requestText("/page"));
  });
}

/** Whom the certificate is for. */
async function nameOf(port: number): Promise<string | undefined> {
  const socket = open(port);
  await ask(socket);
  const { CN } = socket.getPeerCertificate().subject;
  socket.destroy();
  return String(CN);
}

t.test("answers with TLS 1.2 and 1.3, and nothing older", async (t) => {
  const files = await makeTlsDirectory(FIRST);
  const { port, url, server } = await serveRoutes(t, secureRoutes, { tls: files });
  t.equal(url, `https://127.0.0.1:${port}`);
  t.match(new Date(server.stats.certificateExpiresMs ?? 0).toISOString(), /^21/);
  for (const version of ["TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"] as const) {
    const socket = open(port, {
      minVersion: version,
      maxVersion: version,
      ciphers: "DEFAULT:@SECLEVEL=0",
      ALPNProtocols: ["h2", "http/1.1"],
    });
    const text = await ask(socket);
    if (version < "TLSv1.2") t.equal(text, "", `${version} is refused`);
    else {
      t.match(text, /^HTTP\/1\.1 200 OK/, version);
      t.equal(socket.alpnProtocol, isNodeHttp && "http/1.1", "HTTP/1.1 is what there is");
    }
    socket.destroy();
  }
});

t.test("an unusable certificate or key is named, with what is wrong with it", async (t) => {
  const directory = t.testdir();
  const at = (name: string) => join(directory, name);
  const contents = {
    first: FIRST.cert,
    firstKey: FIRST.key,
    secondKey: SECOND.key,
    locked: LOCKED_KEY,
    text: "nothing of the kind\n",
    broken: FIRST.cert.replace(/[A-Z]{3}/, "===="),
    badChain: `${FIRST.cert}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`,
  };
  for (const [name, text] of Object.entries(contents)) await writeFile(at(name), text);
  for (const [cert, key, message] of [
    ["none", "firstKey", /^TLS: the certificate cannot be read: ENOENT.*none/],
    ["first", "none", /^TLS: the key cannot be read: ENOENT.*none/],
    ["text", "firstKey", /^TLS: expected a certificate in PEM format in .*text, found none/],
    ["badChain", "firstKey", /^TLS: expected certificates in .*badChain, received one that cannot be read/],
    ["first", "text", /^TLS: expected a private key .* in .*text, received none that can be read/],
    ["first", "locked", /^TLS: expected a private key .* in .*locked, received one that needs a passphrase/],
    [
      "first",
      "secondKey",
      /^TLS: expected the key of the certificate in .*first, received another in .*secondKey/,
    ],
  ] as const) {
    const tls = { certFile: at(cert), keyFile: at(key) };
    const server = createHttpServer({ log: createTestLog().log, tls });
    await t.rejects(server.listen("127.0.0.1", 0), { code: "invalid-config", message });
    await server.close(0);
  }
});

t.test("a certificate that has expired is used, with a warning", async (t) => {
  const { port, lines } = await serveRoutes(t, secureRoutes, { tls: await makeTlsDirectory(EXPIRED) });
  t.equal(await nameOf(port), "expired.test");
  t.ok(lines.some(({ level, msg }) => level === 40 && /has expired/.test(msg)));
});

t.test("a port that is taken is refused with TLS, too", async (t) => {
  const tls = await makeTlsDirectory(FIRST);
  const { port } = await serveRoutes(t, secureRoutes, { tls });
  for (const options of [{ tls }, {}]) {
    const server = createHttpServer({ log: createTestLog().log, ...options });
    await t.rejects(server.listen("127.0.0.1", port), { message: /in use by another program/ });
    await server.close(0);
  }
});

t.test(
  "another certificate is used when asked to, for new connections; those that are open go on",
  async (t) => {
    const files = await makeTlsDirectory(FIRST);
    const { port, server, lines } = await serveRoutes(t, secureRoutes, { tls: files });
    const kept = open(port);
    t.match(await ask(kept), /200 OK/);
    await server.reloadTls();
    t.equal(await nameOf(port), "first.test", "nothing has changed");

    await files.put({ cert: SECOND.cert, key: FIRST.key });
    await server.reloadTls();
    t.ok(
      lines.some(
        ({ level, msg }) => level === 50 && /present certificate stays in use.*the key of/.test(msg),
      ),
    );
    t.equal(await nameOf(port), "first.test");

    await files.put(SECOND);
    await server.reloadTls();
    for (let i = 0; i < 20; i += 1) t.equal(await nameOf(port), "second.test");
    t.match(await ask(kept), /200 OK/);
    t.equal(server.stats.connections, 1, "the old one is counted with the new ones");
    await server.close(0);
    t.ok(await eventually(() => kept.closed), "and closed with them");
    t.equal(await probeAddress("127.0.0.1", port), port, "the port is free again");
  },
);

t.test("connections are made while certificates change under load", async (t) => {
  const files = await makeTlsDirectory(FIRST);
  const { port, server } = await serveRoutes(t, secureRoutes, { tls: files });
  // Not of this process: between two looks at who wants to connect, it would have connected itself.
  const client = spawn(process.execPath, ["--input-type=module", "-e", CLIENT, String(port)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  t.teardown(() => client.kill("SIGKILL"));
  const said = createInterface({ input: client.stdout })[Symbol.asyncIterator]();
  await said.next();
  for (let i = 0; i < 10; i += 1) {
    await delay(50);
    await files.put(i % 2 === 0 ? SECOND : FIRST);
    await server.reloadTls();
  }
  client.stdin.end();
  const { answered, lost } = JSON.parse((await said.next()).value) as Record<string, number>;
  t.ok(Number(answered) > 20, `${answered} connections`);
  t.ok(Number(lost) <= 10, `${lost} lost: no more than were on their way at each change`);
});

/** Connects and asks, again and again, until its input ends. */
const CLIENT = `
  import { connect } from "node:tls";
  const port = Number(process.argv[1]);
  let isDone = false, answered = 0, lost = 0;
  function ask() {
    return new Promise((resolve) => {
      let isAnswered = false;
      const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false });
      socket.on("error", () => {});
      socket.once("data", () => { isAnswered = true; socket.destroy(); });
      socket.once("close", () => { isAnswered ? answered++ : lost++; resolve(); });
      socket.write("GET /page HTTP/1.1\\r\\nHost: test\\r\\n\\r\\n");
    });
  }
  process.stdin.on("end", () => { isDone = true; }).resume();
  await ask();
  console.log("ready");
  await Promise.all(Array.from({ length: 6 }, async () => { while (!isDone) await ask(); }));
  console.log(JSON.stringify({ answered, lost }));
`;

t.test("gives any other reason in one line", async (t) => {
  const message = explainLoadError(
    new Error(
      "This version of uWS.js supports only …\n\nError: Cannot find module './uws_linux_x64_99.node'\nRequire stack:\n- /srv/uws.js",
    ),
  );
  t.match(message, /^uWebSockets\.js cannot be loaded with Node\.js .*: /);
  t.notMatch(message, "\n");
  t.match(message, "uws_linux_x64_99.node");
});
