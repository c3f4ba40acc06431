import { spawnSync } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import t from "tap";
import { createDocument } from "../../../src/http/create-document.js";
import { probeAddress } from "../../../src/http/listening/listener.js";
import { createHttpServer } from "../../../src/http/server.js";
import { openConnection, rawRequest, requestText } from "../../support/servers/raw-request.js";
import {
  bodyOf,
  bodyReplyOf,
  cannotSharePort,
  createTestLog,
  isNodeHttp,
  routeOf,
  startTestServer,
} from "../../support/servers/serve-routes.js";

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
  const { port } = await startTestServer(t, routes);
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
  const { lines } = await startTestServer(t, routes, { admin: { host: "127.0.0.1", port: 0 } });
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
  await t.rejects(startTestServer(t, routes), {
    code: "invalid-config",
    message: "ZPUBLISH_HTTP: expected node or nothing, received apache",
  });
});

t.test("a port is shared by servers that all agree to, and by no others", async (t) => {
  const { port } = await startTestServer(t, routes);
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

t.test("refuses invalid options", async (t) => {
  const { log } = createTestLog();
  const server = createHttpServer({ log });
  t.throws(() => server.use({ routes: [...routes, ...routes] }), { code: "invalid-config" });
  t.throws(() => server.use({ routes, corsOrigin: "a b" }), { code: "invalid-config" });
  t.throws(() => server.use({ routes, cacheControl: "a\r\nb" }), { code: "invalid-config" });
});

t.test("finishes what is under way when it closes, then drops every connection", async (t) => {
  const { server, port } = await startTestServer(t, routes);
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
  const { server, port } = await startTestServer(t, [never]);
  const connection = await openConnection(port);
  connection.send(requestText("/never"));
  await delay(50);
  const began = performance.now();
  await server.close(200);
  t.ok(performance.now() - began < 2000);
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
    import { createHttpServer } from ${JSON.stringify(new URL("../../../src/http/server.js", import.meta.url).href)};
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
