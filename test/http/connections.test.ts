import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import t from "tap";
import { createDocument } from "../../src/http/create-document.js";
import { eventually, openFiles } from "../support/servers/open-files.js";
import { openConnection, rawRequest, requestText } from "../support/servers/raw-request.js";
import { bodyReplyOf, routeOf, serveRoutes } from "../support/servers/serve-routes.js";
import { FIRST, makeTlsDirectory } from "../support/servers/tls-pairs.js";

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
      const { port, server, lines } = await serveRoutes(t, routes, {
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
      const told = lines.filter(({ msg }) => msg.startsWith("connections refused")).length;
      t.ok(told > 0 && told < 10, `${told} lines, not one for each`);
      const { answered } = await askAll(40, open);
      t.equal(answered, 40, "when there is room again, all are answered");
    },
  );
}

t.test(
  "endpoints for operators answer when clients have all connections, and open ones beside the routes",
  async (t) => {
    const { port, server } = await serveRoutes(t, routes, {
      maxConnections: 1,
      admin: { host: "127.0.0.1", port: 0 },
      endpoints: [
        {
          path: "/healthz",
          isOpen: true,
          answer: () => ({ status: "200 OK", contentType: "text/plain", body: "ok" }),
        },
        {
          path: "/metrics",
          isOpen: false,
          answer: () => ({ status: "200 OK", contentType: "text/plain", body: "ok" }),
        },
      ],
    });
    const admin = await server.listenAdmin();
    const held = await openConnection(port);
    for (const [path, status] of [
      ["/healthz", 200],
      ["/metrics", 404],
    ] as const) {
      held.send(requestText(path));
      t.equal((await held.answer()).status, status, path);
      t.equal(await (await fetch(admin?.url + path)).text(), "ok");
    }
    t.equal((await fetch(`${admin?.url}/page`)).status, 404, "and nothing else");
    t.equal(server.stats.connections, 1);
  },
);

t.test("no more connections are taken than the process may have files", async (t) => {
  const source = `
    import { createHttpServer } from ${JSON.stringify(new URL("../../src/http/server.js", import.meta.url).href)};
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

const content = Buffer.alloc(300_000, "0123456789");
const drainedRoutes = [
  routeOf("/page", () => ({ kind: "document", document })),
  routeOf(
    "/chunk",
    async () => {
      await delay(5);
      return bodyReplyOf(content, '"t"');
    },
    "chunk",
  ),
];

/** Asks without a pause on connections that are kept, until no new ones are accepted; says how each request ended. */
const CLIENT = `
  import { Agent, get } from "node:http";
  const port = Number(process.argv[1]);
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  const ended = { whole: 0, refused: 0, failed: 0 };
  let isRefused = false;
  function ask(path, byteLength) {
    return new Promise((resolve) => {
      const request = get({ host: "127.0.0.1", port, path, agent }, (response) => {
        let received = 0;
        response.on("data", (piece) => { received += piece.length; });
        response.on("error", () => {});
        response.on("close", () => {
          response.statusCode === 200 && received === byteLength ? ended.whole++ : ended.failed++;
          resolve();
        });
      });
      request.on("error", (error) => {
        if (error.code === "ECONNREFUSED") { isRefused = true; ended.refused++; }
        else { ended.failed++; console.error(error.code, request.reusedSocket); }
        resolve();
      });
    });
  }
  await ask("/page", 2);
  console.log("ready");
  await Promise.all(Array.from({ length: 8 }, async (_, i) => {
    while (!isRefused) await (i % 2 === 0 ? ask("/page", 2) : ask("/chunk", 300000));
  }));
  console.log(JSON.stringify(ended));
  agent.destroy();
`;

t.test("clients that keep connections lose no request when the server takes its leave", async (t) => {
  const { port, server } = await serveRoutes(t, drainedRoutes);
  const client = spawn(process.execPath, ["--input-type=module", "-e", CLIENT, String(port)], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  t.teardown(() => client.kill("SIGKILL"));
  let errors = "";
  client.stderr.on("data", (piece) => {
    errors += piece;
  });
  const said = createInterface({ input: client.stdout })[Symbol.asyncIterator]();
  await said.next();
  await eventually(() => server.stats.requests > 100);
  await server.close(5_000);
  const ended = JSON.parse((await said.next()).value) as Record<string, number>;
  t.ok(Number(ended.whole) > 100, JSON.stringify(ended));
  // One that the kernel had taken, and the server not yet, when it stopped listening: as in any server.
  t.ok(Number(ended.failed) <= 1, errors);
  t.match(server.stats, { requestsInFlight: 0, bodyBytesInFlight: 0, connections: 0 });
});

t.test(
  "no client is told to leave before the server listens no more: it would come again at once",
  async (t) => {
    const { port, server } = await serveRoutes(t, drainedRoutes);
    const connection = await openConnection(port);
    // It has come when the server begins to close, and is read before the server stops listening.
    connection.send(requestText("/page"));
    const closed = server.close(5_000);
    t.notMatch(await connection.answer(), { headers: { connection: "close" } });
    let isTold = false;
    while (!isTold) {
      connection.send(requestText("/page"));
      const { status, headers } = await connection.answer();
      t.equal(status, 200);
      isTold = headers.connection === "close";
    }
    await closed;
  },
);

t.test("does not wait without connections, and only shortly for idle ones", async (t) => {
  const alone = await serveRoutes(t, drainedRoutes);
  const beganMs = performance.now();
  await alone.server.close(60_000);
  const silent = await serveRoutes(t, drainedRoutes);
  const connection = await openConnection(silent.port);
  connection.send(requestText("/page"));
  await connection.answer();
  await silent.server.close(60_000);
  t.ok(await eventually(() => connection.closed()));
  t.ok(performance.now() - beganMs < 30_000, "not the minute that it may take");
});

t.test("operations are answered until all else is done", async (t) => {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const begun = routeOf("/held", async () => {
    await held;
    return { kind: "document", document };
  });
  const { port, server } = await serveRoutes(t, [begun], {
    admin: { host: "127.0.0.1", port: 0 },
    endpoints: [
      {
        path: "/readyz",
        isOpen: true,
        answer: () => ({ status: "503 Service Unavailable", contentType: "text/plain", body: "draining" }),
      },
    ],
  });
  const admin = await server.listenAdmin();
  const connection = await openConnection(port);
  connection.send(requestText("/held"));
  await eventually(() => server.stats.requestsInFlight === 1);
  const closed = server.close(60_000);
  t.equal(await (await fetch(`${admin?.url}/readyz`)).text(), "draining");
  release();
  t.equal((await connection.answer()).status, 200);
  await closed;
  await t.rejects(fetch(`${admin?.url}/readyz`));
});

/** Connects and asks when told to, and says how many were answered once all have ended. */
const WAITING_CLIENTS = `
  import { connect } from "node:net";
  const [port, count] = process.argv.slice(1).map(Number);
  let answered = 0, ended = 0;
  console.log("ready");
  process.stdin.once("data", () => {
    for (let i = 0; i < count; i += 1) {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => {});
      socket.once("data", (piece) => { if (/ 200 /.test(piece)) answered += 1; socket.destroy(); });
      socket.once("close", () => { ended += 1; if (ended === count) { console.log(answered); process.exit(); } });
      socket.write(${JSON.stringify(requestText("/page"))});
    }
  });
`;

t.test("clients that have connected when the server closes are answered", async (t) => {
  const { port, server } = await serveRoutes(t, drainedRoutes);
  const args = ["--input-type=module", "-e", WAITING_CLIENTS, String(port), "50"];
  const client = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  t.teardown(() => client.kill("SIGKILL"));
  const said = createInterface({ input: client.stdout })[Symbol.asyncIterator]();
  await said.next();
  await new Promise<void>((resolve) => client.stdin.write("go\n", () => resolve()));
  // This process accepts no connection in that time: all wait to be accepted.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
  await server.close(5_000);
  t.equal((await said.next()).value, "50");
});
