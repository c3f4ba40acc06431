import { spawn } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { connect as connectTls } from "node:tls";
import t from "tap";
import { createDocument } from "../../src/http/create-document.js";
import type { Exchange } from "../../src/http/exchange.js";
import { peerAddress, proxiedAddress } from "../../src/http/peer-address.js";
import { parseProxyHeader } from "../../src/http/proxy-header.js";
import { createHttpServer } from "../../src/http/server.js";
import { eventually } from "./open-files.js";
import { jsonOf, openConnection, requestText } from "./raw-request.js";
import { bodyReplyOf, createTestLog, routeOf, startTestServer } from "./start-test-server.js";
import { FIRST, makeTlsDirectory } from "./tls-pairs.js";

const SIGNATURE = "0d0a0d0a000d0a515549540a";

/** A header of version 2, as Latin-1 text. */
function version2(command: number, family: number, addresses: number[], fields = ""): string {
  const rest = Buffer.from([...addresses, ...Buffer.from(fields)]);
  const length = [rest.length >>> 8, rest.length & 255];
  return Buffer.concat([
    Buffer.from(SIGNATURE, "hex"),
    Buffer.from([0x20 | command, family, ...length]),
    rest,
  ]).toString("latin1");
}

const IPV4 = [192, 0, 2, 7, 127, 0, 0, 1, 4, 210, 0, 80];
const IPV6 = [0x20, 1, 0xd, 0xb8, ...Array(11).fill(0), 9, ...Array(16).fill(0), 4, 210, 0, 80];
const MAPPED = [...Array(10).fill(0), 255, 255, 192, 0, 2, 8, ...Array(16).fill(0), 4, 210, 0, 80];

/** Headers, and whom each names. */
const HEADERS: readonly (readonly [name: string, header: string, client: string | undefined])[] = [
  ["version 2, IPv4", version2(1, 0x11, IPV4), "192.0.2.7"],
  ["version 2, IPv6", version2(1, 0x21, IPV6), "2001:db8::9"],
  ["version 2, IPv4 within IPv6", version2(1, 0x21, MAPPED), "192.0.2.8"],
  ["version 2, with fields", version2(1, 0x11, IPV4, "x".repeat(300)), "192.0.2.7"],
  ["version 2, the proxy itself", version2(0, 0x00, []), undefined],
  ["version 2, a local socket", version2(1, 0x31, Array(216).fill(0)), undefined],
  ["version 1, IPv4", "PROXY TCP4 192.0.2.7 127.0.0.1 1234 80\r\n", "192.0.2.7"],
  ["version 1, IPv6", "PROXY TCP6 2001:0DB8::9 ::1 1234 80\r\n", "2001:db8::9"],
  ["version 1, IPv6 of one link", "PROXY TCP6 fe80::1%eth0 ::1 1234 80\r\n", "fe80::1"],
  ["version 1, unknown", "PROXY UNKNOWN\r\n", undefined],
  ["none", "", undefined],
];

const BROKEN = [
  version2(1, 0x11, [1, 2, 3]),
  version2(2, 0x11, IPV4),
  version2(1, 0x11, IPV4, "x".repeat(5000)),
  `${Buffer.from(SIGNATURE, "hex").toString("latin1")}\x11\x11\x00\x00`,
  "PROXY TCP4 nonsense 127.0.0.1 1 2\r\n",
  "PROXY TCP4 ::1 127.0.0.1 1 2\r\n",
  `PROXY ${"x".repeat(200)}`,
];

t.test("a header is told from what is none, however much of it is there", (t) => {
  for (const [name, header, address] of HEADERS) {
    if (header === "") continue;
    const bytes = Buffer.from(`${header}GET / HTTP/1.1\r\n\r\n`, "latin1");
    for (let length = 0; length < header.length; length += 1) {
      t.equal(parseProxyHeader(bytes.subarray(0, length)).kind, "incomplete", `${name}, ${length} bytes`);
    }
    t.strictSame(parseProxyHeader(bytes), { kind: "header", byteLength: header.length, address }, name);
  }
  for (const text of BROKEN) t.equal(parseProxyHeader(Buffer.from(text, "latin1")).kind, "broken");
  for (const text of ["GET / HTTP/1.1\r\n", "PUT", "\r\n\r\nGET", "\x16\x03\x01"]) {
    t.equal(parseProxyHeader(Buffer.from(text, "latin1")).kind, "none", JSON.stringify(text));
  }
  t.end();
});

const content = Buffer.alloc(20 * 2 ** 20, "0123456789");
const routes = [
  routeOf("/who", (request) => {
    const { res } = request as Exchange;
    const who = { peer: peerAddress(res), proxied: proxiedAddress(res) };
    return { kind: "document", document: createDocument(JSON.stringify(who), "application/json") };
  }),
  routeOf("/page", () => ({ kind: "document", document: createDocument("{}", "application/json") })),
  routeOf("/small", () => bodyReplyOf(content.subarray(0, 600_000), '"s"'), "chunk"),
  routeOf("/big", () => bodyReplyOf(content, '"t"'), "chunk"),
];

t.test("the first header of a connection says who the client is, in whatever pieces it comes", async (t) => {
  const { port, server } = await startTestServer(t, routes, { proxyProtocol: true });
  for (const [name, header, proxied] of HEADERS) {
    const who = { peer: "127.0.0.1", ...(proxied === undefined ? {} : { proxied }) };
    for (const pieces of [
      [header + requestText("/who")],
      [header, requestText("/who")],
      [...header, requestText("/who")],
    ]) {
      const connection = await openConnection(port);
      connection.socket.setNoDelay(true);
      for (const piece of pieces) {
        if (piece !== "") connection.send(piece);
        if (pieces.length < 40) await new Promise((resolve) => setTimeout(resolve, 5));
      }
      t.strictSame(jsonOf(await connection.answer()), who, `${name}, ${pieces.length} pieces`);
      // uWebSockets.js takes it for one and drops it; what it says of the client is not believed.
      connection.send(version2(1, 0x11, [6, 6, 6, 6, ...IPV4.slice(4)]) + requestText("/who"));
      t.strictSame(jsonOf(await connection.answer()), who, "a later one is not believed");
      connection.socket.destroy();
    }
  }
  t.ok(await eventually(() => server.stats.connections === 0));
});

t.test("a broken header ends the connection", async (t) => {
  const { port, server } = await startTestServer(t, routes, { proxyProtocol: true });
  for (const text of BROKEN) {
    const connection = await openConnection(port);
    connection.send(text + requestText("/who"));
    await t.rejects(connection.answer(), /connection closed/);
  }
  const half = await openConnection(port);
  half.socket.end("PROXY TC");
  t.ok(await eventually(() => half.closed() && server.stats.connections === 0));
});

t.test("bodies pass whole, connections are bounded, and none is lost when the server closes", async (t) => {
  const { port, server } = await startTestServer(t, routes, { proxyProtocol: true, maxConnections: 3 });
  const [, header = ""] = HEADERS[0] ?? [];
  const three = await Promise.all([1, 2, 3].map(() => openConnection(port)));
  const fourth = await openConnection(port);
  t.ok(await eventually(() => fourth.closed()));
  t.match(server.stats, { connections: 3, connectionsRefused: 1 });
  for (const connection of three) connection.send(header + requestText("/big"));
  for (const connection of three) {
    // Within an answer that takes several turns of the loop.
    t.ok((await connection.answer()).body.equals(content));
  }
  const [one] = three;
  one?.send(requestText("/big"));
  await eventually(() => server.stats.requestsInFlight === 1);
  const closed = server.close(5_000);
  t.ok((await one?.answer())?.body.equals(content));
  for (const { socket } of three) socket.destroy();
  await closed;
});

t.test("a client that sends nothing, reads nothing, or does not close its side is dropped", async (t) => {
  const { port, server } = await startTestServer(t, routes, {
    proxyProtocol: true,
    limits: { stallTimeoutMs: 1_000 },
  });
  const header = HEADERS[0]?.[1] ?? "";
  const begins: readonly (readonly [name: string, begin: string, reads: boolean])[] = [
    ["nothing", "", true],
    ["half a header", header.slice(0, 7), true],
    ["a header", header, true],
    ["a request, and nothing more", header + requestText("/page"), true],
    ["a request that is read no answer of", header + requestText("/page"), false],
    ["a body that the system holds in part", header + requestText("/small"), false],
    ["a body that nobody has room for", header + requestText("/big"), false],
    ["bodies one after the other", header + requestText("/small").repeat(4), false],
  ];
  for (const [, begin, reads] of begins) {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    socket.on("error", () => {});
    t.teardown(() => socket.destroy());
    if (reads) socket.resume();
    else socket.pause();
    socket.write(begin, "latin1");
  }
  t.ok(await eventually(() => server.stats.connections === begins.length));
  // Ten seconds that a request is waited for, and ten that the client's end is.
  let left = begins.length;
  for (let tries = 0; tries < 12 && left > 0; tries += 1) {
    await eventually(() => server.stats.connections === 0);
    left = server.stats.connections;
  }
  t.equal(left, 0);
  t.match(server.stats, { requestsInFlight: 0, bodyBytesInFlight: 0 });
});

t.test("a client that waits for long for an answer is not one that takes none", async (t) => {
  const waiting = routeOf("/late", async () => {
    await new Promise((resolve) => setTimeout(resolve, 8_000));
    return bodyReplyOf(content, '"l"');
  });
  const limits = { stallTimeoutMs: 1 };
  const { port } = await startTestServer(t, [waiting], { proxyProtocol: true, limits });
  const connection = await openConnection(port);
  connection.socket.pause();
  connection.send(requestText("/late"));
  // It takes its time when the answer is there, but not for as long as it may.
  await new Promise((resolve) => setTimeout(resolve, 10_500));
  connection.socket.resume();
  t.ok((await connection.answer()).body.equals(content));
  connection.socket.destroy();
});

/** Rows of the system's table of sockets for IPv4: local and remote address and port in hexadecimal, state, inode. */
function socketTable() {
  const rows = readFileSync("/proc/net/tcp", "latin1").trim().split("\n").slice(1);
  return rows.map((row) => {
    const [, local = "", remote = "", state = "", , , , , , inode = ""] = row.trim().split(/\s+/);
    return { local, remote, state, inode };
  });
}

/** Ports that this process listens on. */
function ownPorts(): number[] {
  const files = readdirSync("/proc/self/fd").map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return "";
    }
  });
  const listening = socketTable().filter(
    ({ state, inode }) => state === "0A" && files.includes(`socket:[${inode}]`),
  );
  return listening.map(({ local }) => Number.parseInt(local.split(":")[1] ?? "", 16));
}

t.test("nobody on this machine can speak past it, or for who came through it", async (t) => {
  const { port } = await startTestServer(t, routes, { proxyProtocol: true });
  const others = ownPorts().filter((own) => own !== port);
  t.ok(others.length >= 1);
  const through = await openConnection(port);
  through.send((HEADERS[0]?.[1] ?? "") + requestText("/who"));
  await through.answer();
  const hexPorts = others.map((other) => other.toString(16).toUpperCase().padStart(4, "0"));
  const used = socketTable()
    .filter(({ remote, state }) => state === "01" && hexPorts.includes(remote.split(":")[1] ?? ""))
    .map(({ local }) => [...Buffer.from(local.slice(0, 8), "hex")].reverse().join("."));
  t.ok(used.some((address) => /^127\.[1-9]/.test(address)));
  for (const localAddress of ["127.0.0.1", "127.1.0.0", "127.1.0.1", ...used]) {
    for (const other of others) {
      const socket = connect({ port: other, host: "127.0.0.1", localAddress });
      let received = "";
      socket.on("data", (piece) => {
        received += piece;
      });
      socket.on("error", () => {});
      socket.write(requestText("/who"));
      t.ok(await eventually(() => socket.closed || received !== ""));
      t.equal(received, "", `from ${localAddress}`);
      socket.destroy();
    }
  }
  through.send(requestText("/who"));
  t.strictSame(jsonOf(await through.answer()), { peer: "127.0.0.1", proxied: "192.0.2.7" });
});

/** Connects and asks when told to, and says how many were answered once all have ended. */
const CLIENTS = `
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

t.test("who has connected when the server closes is answered", async (t) => {
  const { port, server } = await startTestServer(t, routes, { proxyProtocol: true });
  const args = ["--input-type=module", "-e", CLIENTS, String(port), "50"];
  const client = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  t.teardown(() => client.kill("SIGKILL"));
  const said = createInterface({ input: client.stdout })[Symbol.asyncIterator]();
  await said.next();
  await new Promise<void>((resolve) => client.stdin.write("go\n", () => resolve()));
  // This process sees nobody connect in that time: all wait to be accepted.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
  await server.close(5_000);
  t.equal((await said.next()).value, "50");
});

t.test("stands before TLS", async (t) => {
  const tls = await makeTlsDirectory(FIRST);
  const { port } = await startTestServer(t, routes, { proxyProtocol: true, tls });
  const connection = await openConnection(port);
  connection.socket.removeAllListeners("data");
  connection.send(HEADERS[0]?.[1] ?? "");
  const secure = connectTls({ socket: connection.socket, rejectUnauthorized: false });
  secure.write(requestText("/who"));
  const text = await new Promise((resolve) => secure.once("data", (piece) => resolve(String(piece))));
  t.match(text, /"proxied":"192\.0\.2\.7"/);
  secure.destroy();
});

t.test("is refused where a port is shared", async (t) => {
  const { log } = createTestLog();
  t.throws(() => createHttpServer({ log, proxyProtocol: true, sharesPort: true }), {
    code: "invalid-config",
  });
});
