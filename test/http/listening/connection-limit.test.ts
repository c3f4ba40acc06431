import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { connect as connectTls } from "node:tls";
import t from "tap";
import { createDocument } from "../../../src/http/create-document.js";
import { eventually, openFiles } from "../../support/servers/open-files.js";
import { openConnection, rawRequest, requestText } from "../../support/servers/raw-request.js";
import { routeOf, startTestServer } from "../../support/servers/serve-routes.js";
import { FIRST, makeTlsDirectory } from "../../support/servers/tls-pairs.js";

const document = createDocument("{}", "application/json");
const routes = [routeOf("/page", () => ({ kind: "document", document }))];

/** Connects many times at once, asks on each, and counts who is answered and who is not. */
async function askAll(
  count: number,
  open: () => Socket,
): Promise<{ sockets: Socket[]; answered: number; closed: number }> {
  let answered = 0;
  let closed = 0;
  const sockets = Array.from({ length: count }, () => {
    const socket = open();
    socket.once("data", () => {
      answered += 1;
    });
    socket.on("error", () => {});
    socket.once("close", () => {
      closed += 1;
    });
    socket.write(requestText("/page"));
    return socket;
  });
  await eventually(() => answered + closed === count);
  return { sockets, answered, closed };
}

for (const isSecure of [false, true]) {
  t.test(
    `over the bound, connections ${isSecure ? "with TLS " : ""}are closed at once and counted`,
    async (t) => {
      const { certFile, keyFile } = await makeTlsDirectory(FIRST);
      const { port, server, lines } = await startTestServer(t, routes, {
        maxConnections: 40,
        tls: isSecure ? { certFile, keyFile } : null,
      });
      const open = () =>
        isSecure
          ? connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false })
          : connect({ port, host: "127.0.0.1" });
      const before = openFiles();
      for (let round = 1; round <= 2; round += 1) {
        const { sockets, answered, closed } = await askAll(300, open);
        t.strictSame({ answered, closed }, { answered: 40, closed: 260 });
        t.match(server.stats, { connections: 40, connectionsRefused: 260 * round });
        for (const socket of sockets) socket.destroy();
        t.ok(await eventually(() => server.stats.connections === 0));
      }
      t.ok(
        await eventually(() => (openFiles() ?? 0) <= (before ?? 0) + 2),
        `no file is left open: ${openFiles()}, ${before} before`,
      );
      t.equal(
        lines.filter(({ msg }) => msg.startsWith("connections refused")).length,
        1,
        "not a line for each",
      );
      const { answered } = await askAll(40, open);
      t.equal(answered, 40, "when there is room again, all are answered");
    },
  );
}

t.test("admin endpoints answer when clients have all connections", async (t) => {
  const { port, server } = await startTestServer(t, routes, {
    maxConnections: 1,
    admin: { host: "127.0.0.1", port: 0 },
    endpoints: [
      {
        path: "/healthz",
        isOpen: true,
        answer: () => ({ status: "200 OK", contentType: "text/plain", body: "ok" }),
      },
    ],
  });
  const admin = await server.listenAdmin();
  const held = await openConnection(port);
  held.send(requestText("/healthz"));
  t.equal((await held.answer()).status, 404, "only there");
  t.equal(await (await fetch(`${admin?.url}/healthz`)).text(), "ok");
  t.equal((await fetch(`${admin?.url}/page`)).status, 404, "and nothing else");
  t.equal(server.stats.connections, 1);
});

t.test("the admin port has the same limit for the length of paths", async (t) => {
  const { server } = await startTestServer(t, routes, { admin: { host: "127.0.0.1", port: 0 } });
  const admin = await server.listenAdmin();
  server.limit({ maxUrlBytes: 100 });
  t.equal((await rawRequest(admin?.port ?? 0, `/${"x".repeat(200)}`)).status, 414);
});

t.test("no more connections are taken than the process may have files", async (t) => {
  const source = `
    import { createHttpServer } from ${JSON.stringify(new URL("../../../src/http/server.js", import.meta.url).href)};
    const log = { isLevelEnabled: () => false, debug() {}, info() {}, error() {}, warn: (_, text) => console.log("warned " + text) };
    const server = createHttpServer({ log });
    server.use({ routes: [] });
    const { port } = await server.listen("127.0.0.1", 0);
    console.log("port " + port);
    process.stdin.once("data", async () => {
      const before = process.cpuUsage();
      await new Promise((resolve) => setTimeout(resolve, 500));
      const { user, system } = process.cpuUsage(before);
      console.log("busy " + (user + system) / 500_000 + " " + JSON.stringify(server.stats));
      process.stdin.once("data", () => process.exit(0));
    });
  `;
  const child = spawn(
    "bash",
    ["-c", `ulimit -n 120; exec "$0" --input-type=module -e "$1"`, process.execPath, source],
    {
      stdio: ["pipe", "pipe", "inherit"],
    },
  );
  t.teardown(() => child.kill("SIGKILL"));
  const said = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  t.match(
    (await said.next()).value,
    /^warned this process may have 120 files open: at most 60 connections, not 10000/,
  );
  const port = Number(String((await said.next()).value).split(" ")[1]);
  const { sockets, answered, closed } = await askAll(200, () => connect({ port, host: "127.0.0.1" }));
  t.strictSame({ answered, closed }, { answered: 60, closed: 140 });
  child.stdin.write("\n");
  t.match((await said.next()).value, /^warned connections refused/);
  const [, busy, stats] = String((await said.next()).value).split(" ");
  t.ok(Number(busy) < 0.5, `it does not spin: ${busy} of a core`);
  t.match(JSON.parse(stats ?? ""), { connections: 60, maxConnections: 60, connectionsRefused: 140 });
  for (const socket of sockets) socket.destroy();
  // The server may learn of a new connection before it learns that the others have ended.
  const askAgain = (): ReturnType<typeof rawRequest> => rawRequest(port, "/nothing").catch(askAgain);
  t.equal((await askAgain()).status, 404, "the server still answers");
  child.stdin.write("\n");
  await once(child, "exit");
});
