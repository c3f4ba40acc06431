import { messageOf } from "../errors.js";
import type { Exchange } from "./exchange.js";
import type { Body } from "./reply.js";

/** Most bytes offered to the socket in one call; uWebSockets.js counts them in 32 bits. */
const MAX_WRITE_BYTES = 2 ** 28;
/** How often a body that is gone is opened again without a byte having been sent in between. */
const MAX_REOPENS = 3;
/**
 * uWebSockets.js drops a connection that took nothing for 10 s, and hears that it can take more only when a third of
 * the kernel's buffer is free: a megabyte, which is longer than that on a slow line. Each try to write starts its
 * clock anew, so it is tried this often, and this file decides when a client has stalled.
 */
const RETRY_MS = 4_000;

/** Part of a body on its way to a client. */
export interface BodyTransfer {
  readonly exchange: Exchange;
  readonly body: Body;
  /** The part of the body to send. */
  readonly start: number;
  readonly byteLength: number;
  /** Makes the same body again, where it is gone before it is sent. */
  readonly reopen: () => Promise<Body>;
}

/** Sends bodies as fast as clients take them, without copying them. */
export interface BodySender {
  /**
   * Sends what `first` begins and what the body has behind it. To be called corked, with the head written.
   * @param first What `body.read(start)` gave in this turn of the loop.
   */
  send(transfer: BodyTransfer, first: Uint8Array): void;
  /** Stops looking after bodies on their way. */
  close(): void;
}

interface Sending {
  readonly transfer: BodyTransfer;
  body: Body;
  /** True while the body is being opened again. */
  reopening: boolean;
  reopens: number;
  lastProgressMs: number;
}

/** @param stallTimeoutMs A client that takes nothing for so long is dropped. */
export function createBodySender(stallTimeoutMs: number): BodySender {
  const waiting = new Set<Sending>();
  let timer: NodeJS.Timeout | undefined;

  function send(transfer: BodyTransfer, first: Uint8Array): void {
    const { exchange, byteLength } = transfer;
    if (byteLength === 0) {
      exchange.endWith("");
      return;
    }
    exchange.context.load.setBodyBytes(exchange, transfer.body.heldByteLength ?? byteLength);
    const begun = begin(transfer, first);
    if (begun === "all") return;
    const sending: Sending = {
      transfer,
      body: transfer.body,
      reopening: false,
      reopens: 0,
      lastProgressMs: performance.now(),
    };
    if (begun === "some" && (pump(sending) || exchange.over)) return;
    waiting.add(sending);
    timer ??= setInterval(retry, RETRY_MS).unref();
    exchange.res.onWritable(() => {
      resume(sending);
      return true;
    });
  }

  /** The first try, and nearly always the only one: whether the socket took all, all that it was given, or is full. */
  function begin({ exchange, byteLength }: BodyTransfer, first: Uint8Array): "all" | "some" | "full" {
    const length = Math.min(first.byteLength, byteLength, MAX_WRITE_BYTES);
    const view = length === first.byteLength ? first : first.subarray(0, length);
    // Writes what the socket takes at once and keeps none of the rest, unlike end() and write().
    const [ok, done] = exchange.res.tryEnd(view, byteLength);
    if (done) {
      exchange.end();
      return "all";
    }
    return ok ? "some" : "full";
  }

  /** Offers the rest of the body to the socket; true when all of it is sent. */
  function pump(sending: Sending): boolean {
    const { exchange, start, byteLength } = sending.transfer;
    let offset = exchange.res.getWriteOffset();
    let view = sending.body.read(start + offset);
    for (;;) {
      if (view === undefined || view.byteLength === 0) {
        reopen(sending);
        return false;
      }
      const length = Math.min(view.byteLength, byteLength - offset, MAX_WRITE_BYTES);
      const [ok, done] = exchange.res.tryEnd(
        length === view.byteLength ? view : view.subarray(0, length),
        byteLength,
      );
      if (done) {
        waiting.delete(sending);
        exchange.end();
        return true;
      }
      const sent = exchange.res.getWriteOffset();
      if (sent > offset) {
        offset = sent;
        sending.reopens = 0;
        sending.lastProgressMs = performance.now();
      }
      if (!ok) return false;
      view = sending.body.read(start + offset);
    }
  }

  function resume(sending: Sending): void {
    const { exchange } = sending.transfer;
    if (exchange.over || sending.reopening) return;
    try {
      exchange.cork(() => pump(sending));
    } catch (error) {
      fail(sending, error);
    }
  }

  function reopen(sending: Sending): void {
    const { body, reopen: open } = sending.transfer;
    sending.reopens += 1;
    if (sending.reopens > MAX_REOPENS) {
      fail(sending, new Error(`the body was gone ${MAX_REOPENS} times in a row`));
      return;
    }
    sending.reopening = true;
    // Whatever it does: what it throws at once is a rejection too.
    (async () => open())().then(
      (again) => {
        sending.reopening = false;
        const { exchange, byteLength } = sending.transfer;
        exchange.hold(again);
        if (again.byteLength !== body.byteLength) {
          fail(
            sending,
            new Error(`expected the same ${body.byteLength} bytes again, received ${again.byteLength}`),
          );
          return;
        }
        sending.body = again;
        if (!exchange.over) {
          exchange.context.load.setBodyBytes(exchange, again.heldByteLength ?? byteLength);
        }
        resume(sending);
      },
      (error: unknown) => fail(sending, error),
    );
  }

  function fail(sending: Sending, error: unknown): void {
    const { exchange } = sending.transfer;
    waiting.delete(sending);
    if (exchange.over) return;
    const { fullPath, context } = exchange;
    context.log.error({ err: error, path: fullPath }, `answer broken off: ${messageOf(error)}`);
    exchange.drop();
  }

  function retry(): void {
    const nowMs = performance.now();
    for (const sending of waiting) {
      const { exchange } = sending.transfer;
      if (exchange.over) {
        waiting.delete(sending);
        continue;
      }
      resume(sending);
      if (!exchange.over && !sending.reopening && nowMs - sending.lastProgressMs > stallTimeoutMs) {
        waiting.delete(sending);
        exchange.context.log.debug({ path: exchange.fullPath }, "client takes nothing: connection dropped");
        exchange.drop();
      }
    }
    if (waiting.size === 0) stop();
  }

  function stop(): void {
    clearInterval(timer);
    timer = undefined;
  }

  return { send, close: stop };
}
