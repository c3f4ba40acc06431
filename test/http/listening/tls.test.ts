import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import t from "tap";
import { createDocument } from "../../../src/http/create-document.js";
import { probeAddress } from "../../../src/http/listening/listener.js";
import { createHttpServer } from "../../../src/http/server.js";
import { eventually } from "../../support/servers/open-files.js";
import { requestText } from "../../support/servers/raw-request.js";
import { createTestLog, isNodeHttp, routeOf, startTestServer } from "../../support/servers/serve-routes.js";
import { EXPIRED, FIRST, LOCKED_KEY, makeTlsDirectory, SECOND } from "../../support/servers/tls-pairs.js";

const document = createDocument("{}", "application/json");
const routes = [routeOf("/page", () => ({ kind: "document", document }))];

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
  const { port, url, server } = await startTestServer(t, routes, { tls: files });
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
  const { port, lines } = await startTestServer(t, routes, { tls: await makeTlsDirectory(EXPIRED) });
  t.equal(await nameOf(port), "expired.test");
  t.ok(lines.some(({ level, msg }) => level === 40 && /has expired/.test(msg)));
});

t.test("a port that is taken is refused with TLS, too", async (t) => {
  const tls = await makeTlsDirectory(FIRST);
  const { port } = await startTestServer(t, routes, { tls });
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
    const { port, server, lines } = await startTestServer(t, routes, { tls: files });
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
  const { port, server } = await startTestServer(t, routes, { tls: files });
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
