import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import t from "tap";
import { BIG_CHUNKS, startTarget } from "../support/servers/attack-target.js";
import { openConnection, requestText } from "../support/servers/raw-request.js";
import { inLots, openSocket } from "./raw-exchange.js";

const target = await startTarget(t);
const { port } = target;
/** Together they may hold less than the server gives to bodies on their way. */
const CLIENTS = 150;

function bigPath(i: number): string {
  return `/datasets/big/zarr/field/${i % BIG_CHUNKS}`;
}

async function openAll(count: number): Promise<Socket[]> {
  const sockets = await Promise.all(Array.from({ length: count }, () => openSocket(port)));
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
  });
  return sockets;
}

t.test(
  "a hundred and fifty readers that take nothing, or a little, hold up nobody, and what they held is free when they go",
  async (t) => {
    const sockets = await openAll(CLIENTS);
    for (const [i, socket] of sockets.entries()) {
      socket.pause();
      socket.write(requestText(bigPath(i)));
    }
    await delay(300);
    // Half of them take a little now and then.
    for (let round = 0; round < 5; round++) {
      for (const socket of sockets.slice(0, CLIENTS / 2)) socket.read(1_000);
      await delay(50);
    }
    await target.isServed(t);
    for (const socket of sockets) socket.destroy();
    await target.isUnharmed(t);
  },
);

t.test("who asks on and on and reads nothing gets no memory for it", async (t) => {
  for (const path of ["/docs", "/datasets/air/info", "/healthz"]) {
    const sockets = await openAll(8);
    const requests = requestText(path).repeat(500);
    for (const socket of sockets) socket.pause();
    const asking = setInterval(() => {
      for (const socket of sockets) {
        if (!socket.destroyed && socket.writableLength === 0) socket.write(requests);
      }
    }, 10);
    // Without a bound a gigabyte of answers waits by then.
    await delay(3_000);
    target.isSmall(t);
    clearInterval(asking);
    for (const socket of sockets) socket.destroy();
    await target.isUnharmed(t);
  }
});

t.test("headers that are too long are not kept while a request waits", async (t) => {
  const headers = Object.fromEntries(
    Array.from({ length: 60 }, (_, i) => [`X-Filler-${i}`, "y".repeat(800)]),
  );
  // In one piece, which uWebSockets.js takes whatever its length.
  const answers = await inLots(
    Array.from({ length: 40 }, (_, i) => i),
    40,
    async (i) => {
      const connection = await openConnection(port);
      connection.send(requestText(`/datasets/many/zarr/v${i}/0`, { headers }));
      // A server that closes before it has read everything resets the connection, and its answer may be lost with it.
      const answer = await connection.answer().catch(() => undefined);
      connection.socket.destroy();
      return answer?.status ?? "closed";
    },
  );
  t.same(
    answers.filter((answer) => answer !== 431 && answer !== "closed"),
    [],
  );
  await target.isUnharmed(t);
});

t.test("three hundred writers that dawdle hold up nobody", async (t) => {
  const sockets = await openAll(300);
  const request = requestText("/datasets/air/info", { headers: { "X-Filler": "y".repeat(200) } });
  const endOfLine = request.indexOf("\r\n") + 2;
  for (const socket of sockets) socket.write(request.slice(0, endOfLine));
  for (let at = endOfLine; at < endOfLine + 20; at++) {
    for (const socket of sockets) socket.write(request[at]!);
    await delay(10);
  }
  await target.isServed(t);
  for (const socket of sockets) socket.destroy();
  await target.isUnharmed(t);
});
