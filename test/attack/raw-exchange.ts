import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/** What came back over one connection. */
export interface Reply {
  /** As latin-1. */
  readonly text: string;
  /** Status of every answer in it, in order. */
  readonly statuses: readonly number[];
  /** Whether the server closed the connection. */
  readonly isClosed: boolean;
}

/** A connection that is open; errors on it are only noted. */
export async function openSocket(port: number): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  socket.on("error", () => {});
  await Promise.race([once(socket, "connect"), once(socket, "close")]);
  return socket;
}

/** A turn of waiting. */
const TURN_MS = 10;

/**
 * Sends pieces one after the other, and takes whatever comes back until the server closes the connection or has said
 * nothing for a while: `quietMs`, and `patienceMs` before the first byte. Both are counted in turns rather than by the
 * clock, so that a stall of this process is not taken for silence.
 */
export async function exchangeRaw(
  port: number,
  pieces: readonly (string | Uint8Array)[],
  { gapMs = 5, quietMs = 250, patienceMs = 2_000, isHalfClosed = false } = {},
): Promise<Reply> {
  const socket = await openSocket(port);
  const parts: Buffer[] = [];
  let isClosed = false;
  let quietTurns = 0;
  socket.on("data", (part) => {
    parts.push(part);
    quietTurns = 0;
  });
  socket.on("close", () => {
    isClosed = true;
  });
  for (const [i, piece] of pieces.entries()) {
    if (i > 0) await delay(gapMs);
    if (isClosed) break;
    socket.write(typeof piece === "string" ? Buffer.from(piece, "latin1") : piece);
  }
  if (isHalfClosed) socket.end();
  const limit = () => (parts.length > 0 ? quietMs : Math.max(patienceMs, quietMs)) / TURN_MS;
  for (quietTurns = 0; !isClosed && quietTurns < limit(); quietTurns++) await delay(TURN_MS);
  socket.destroy();
  const text = Buffer.concat(parts).toString("latin1");
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
  return { text, statuses, isClosed };
}

/** Runs all of them, so many at a time. */
export async function inLots<T, R>(
  items: readonly T[],
  atOnce: number,
  run: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  for (let from = 0; from < items.length; from += atOnce)
    results.push(...(await Promise.all(items.slice(from, from + atOnce).map(run))));
  return results;
}
