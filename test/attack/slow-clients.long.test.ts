import { once } from "node:events";
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

t.test("who asks for much at once and reads it gets what is asked for", async (t) => {
  const asked = 40;
  const path = "/datasets/air/info";
  const connection = await openConnection(port);
  t.teardown(() => connection.socket.destroy());
  connection.send(requestText(path).repeat(asked));
  for (let i = 0; i < asked; i++) {
    const { status, body } = await connection.answer();
    if (status !== 200 || !body.equals(target.truth.get(path)!.body)) t.fail(`answer ${i}: ${status}`);
  }
  t.pass(`${asked} answers`);
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
      // Each of another chunk that has to be made: what is read at once waits for nothing.
      connection.send(requestText(`/datasets/again/zarr/air/${300 + i}.0.0`, { headers }));
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

t.test("a reader that begins late gets every byte", async (t) => {
  const connection = await openConnection(port);
  t.teardown(() => connection.socket.destroy());
  connection.socket.pause();
  connection.send(requestText(bigPath(0)));
  await delay(700);
  connection.socket.resume();
  const { status, body } = await connection.answer();
  t.equal(status, 200);
  t.ok(body.equals(target.truth.get(bigPath(0))!.body));
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

t.test("connections that are reset in the middle of a body leave nothing behind", async (t) => {
  await inLots(
    Array.from({ length: 400 }, (_, i) => i),
    50,
    async (i) => {
      const socket = await openSocket(port);
      socket.write(requestText(i % 3 === 0 ? `/datasets/again/zarr/air/${i % 100}.0.0` : bigPath(i)));
      if (i % 2 === 0) await Promise.race([once(socket, "data"), once(socket, "close"), delay(500)]);
      socket.resetAndDestroy();
    },
  );
  await target.isUnharmed(t);
});

t.test("clients that close their side first are let go", async (t) => {
  const areClosed = await inLots(
    Array.from({ length: 200 }, (_, i) => i),
    50,
    async (i) => {
      const socket = await openSocket(port);
      socket.resume();
      socket.end(requestText(i % 4 === 0 ? bigPath(i) : "/datasets/again/zarr/air/0.0.0"));
      if (!socket.destroyed) await once(socket, "close");
      return socket.destroyed;
    },
  );
  t.same(new Set(areClosed), new Set([true]));
  await target.isUnharmed(t);
});

t.test("clients that go while their chunk is being made cost nothing once they are gone", async (t) => {
  const sockets = await openAll(300);
  for (const [i, socket] of sockets.entries()) socket.write(requestText(`/datasets/again/zarr/air/${i}.0.0`));
  for (const socket of sockets) socket.destroy();
  await target.isUnharmed(t);
});
