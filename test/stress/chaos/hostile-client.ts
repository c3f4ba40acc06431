/**
 * A process of its own: clients that take answers slowly or not at all, go in the middle of them, and ask for nonsense, on
 * the port that is its first argument, seeded by the second one, until it is killed or its parent is gone. What it is
 * answered does not matter; what becomes of others does.
 */
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createRandom } from "../../../bench/random.js";
import { CHAOS_KEYS } from "./arrays.js";

const CLIENTS = 12;
const [port, seed] = process.argv.slice(2).map(Number) as [number, number];
const random = createRandom(seed);
/** Chunks that are passed through: a chunk that a worker dies over is kept away, which the judge would not know. */
const chunks = CHAOS_KEYS.filter(({ kind, array }) => kind === "chunk" && array?.encoding === undefined);

function pick<T>(list: readonly T[]): T {
  return list[Math.floor(random() * list.length)]!;
}

function requestOf(path: string, more = ""): string {
  return `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;
}

const NONSENSE: readonly (() => string)[] = [
  () => "GET\r\n\r\n",
  () => "\u0000\u0001\u0002\u0003\r\n\r\n",
  () => "GET / HTTP/9.9\r\nHost: x\r\n\r\n",
  () => requestOf(`/datasets/${"a/".repeat(3_000)}`),
  () => requestOf("/datasets/plain/zarr/%2e%2e/%2e%2e/etc/passwd"),
  () => requestOf("/datasets/plain/zarr/raw/%zz"),
  () => requestOf("/datasets", `X: ${"y".repeat(20_000)}\r\n`),
  () => requestOf("/datasets", "Content-Length: 5\r\nContent-Length: 6\r\n"),
  () => "POST /datasets HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nabc",
  () => "POST /datasets HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
  () => requestOf(pick(chunks).url, `Range: bytes=${"0-1,".repeat(500)}\r\n`),
  () => requestOf(pick(chunks).url).repeat(20),
];

const HABITS: readonly ((socket: Socket) => Promise<void>)[] = [
  async (socket) => {
    socket.write(pick(NONSENSE)(), "latin1");
    await sleep(random() * 300);
  },
  // Goes in the middle of an answer.
  async (socket) => {
    socket.write(requestOf(pick(chunks).url));
    await sleep(random() * 20);
    socket.resetAndDestroy();
  },
  // Says that it has nothing more to say, and waits.
  async (socket) => {
    socket.end(requestOf(pick(chunks).url));
    await sleep(random() * 500);
  },
  // Takes nothing for a while.
  async (socket) => {
    socket.pause();
    socket.write(requestOf(pick(chunks).url));
    await sleep(random() * 5_000);
  },
  // Asks slowly.
  async (socket) => {
    for (const character of requestOf(pick(chunks).url)) {
      socket.write(character);
      await sleep(random() * 20);
    }
  },
];

async function client(): Promise<void> {
  for (;;) {
    const socket = connect(port, "127.0.0.1");
    let isConnected = true;
    socket.on("error", () => {
      isConnected = false;
    });
    socket.resume();
    await sleep(5);
    if (isConnected) await pick(HABITS)(socket);
    else await sleep(100);
    socket.destroy();
    await sleep(random() * 100);
  }
}

process.once("disconnect", () => process.exit(0));
for (let i = 0; i < CLIENTS; i++) void client();
