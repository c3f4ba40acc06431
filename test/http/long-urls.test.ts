import { connect, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import t, { type Test } from "tap";
import { createDocument } from "../../src/http/create-document.js";
import type { Route } from "../../src/http/router.js";
import { requestText } from "../support/servers/raw-request.js";
import { isNodeHttp, routeOf, serveRoutes } from "../support/servers/serve-routes.js";
import { FIRST, makeTlsDirectory } from "../support/servers/tls-pairs.js";

/** The longest URL that is answered by default. */
const URL_BYTES = 8 * 1024;
/** What an Ethernet packet carries. */
const PACKET_BYTES = 1_400;
/** uWebSockets.js's build for Node.js 20 answers 505 to a request line that arrives in pieces; nothing in its interface changes that. */
const CUTS_LINES = !isNodeHttp && process.versions.node.startsWith("20.");

const routes: readonly Route[] = [
  {
    ...routeOf("/select", async (request) => {
      const { byteLength } = await request.body();
      const text = JSON.stringify({ query: request.query.length, body: byteLength });
      return { kind: "document", document: createDocument(text, "application/json") };
    }),
    methods: ["GET", "POST"],
  },
];

function urlOf(byteLength: number): string {
  const begin = "/select?points=";
  return begin + "1.25,".repeat(byteLength).slice(0, byteLength - begin.length);
}

/** A socket whose writes leave in packets, with time between them. */
function inPackets(socket: Socket): Duplex {
  socket.setNoDelay(true);
  const cut = new Duplex({
    read: () => void socket.resume(),
    write(bytes: Buffer, _encoding, done) {
      (async () => {
        for (let at = 0; at < bytes.length; at += PACKET_BYTES) {
          socket.write(bytes.subarray(at, at + PACKET_BYTES));
          await delay(3);
        }
      })().then(() => done(), done);
    },
    destroy(error, done) {
      socket.destroy();
      done(error);
    },
  });
  socket.on("data", (bytes) => cut.push(bytes));
  socket.on("end", () => cut.push(null));
  socket.on("error", () => cut.push(null));
  return cut;
}

/** Sends a text and returns the status and body of the answer. */
async function exchange(stream: Duplex, text: string): Promise<readonly [status: number, body: string]> {
  stream.write(text);
  let received = "";
  stream.on("error", () => undefined);
  for await (const piece of stream) {
    received += String(piece);
    const end = received.indexOf("\r\n\r\n");
    const [, length = "0"] = /content-length: (\d+)/i.exec(received) ?? [];
    if (end >= 0 && received.length >= end + 4 + Number(length)) break;
  }
  stream.destroy();
  const status = Number(received.split(" ")[1]);
  return [status, received.slice(received.indexOf("\r\n\r\n") + 4)];
}

t.test("a URL of 8 KB is answered, one that is longer is 414", async (t) => {
  const { port } = await serveRoutes(t, routes);
  const ask = (text: string) => exchange(connect(port, "127.0.0.1"), text);
  const query = URL_BYTES - "/select?".length;
  t.strictSame(await ask(requestText(urlOf(URL_BYTES))), [200, JSON.stringify({ query, body: 0 })]);
  t.equal((await ask(requestText(urlOf(URL_BYTES + 2))))[0], 414);
});

t.test("a URL of 8 KB may come in packets", async (t: Test) => {
  const { port } = await serveRoutes(t, routes);
  const ask = (text: string) => exchange(inPackets(connect(port, "127.0.0.1")), text);
  const [status] = await ask(requestText(urlOf(URL_BYTES)));
  t.equal(status, CUTS_LINES ? 505 : 200);
  t.equal((await ask(requestText(urlOf(1_000))))[0], 200, "one that fits a packet");
  const points = "1.25,".repeat(1_600);
  const headers = { "Content-Length": String(points.length), "Content-Type": "text/csv" };
  const posted = await ask(requestText("/select", { method: "POST", headers }) + points);
  t.strictSame(posted, [200, JSON.stringify({ query: 0, body: points.length })], "POST says as much");
});

t.test("with TLS it may come in packets everywhere: a record is read when it is complete", async (t) => {
  const { port } = await serveRoutes(t, routes, { tls: await makeTlsDirectory(FIRST) });
  const socket = inPackets(connect(port, "127.0.0.1"));
  const secure = connectTls({ socket, ca: FIRST.cert, servername: "first.test" });
  const [status] = await exchange(secure, requestText(urlOf(URL_BYTES)));
  t.equal(status, 200);
});
