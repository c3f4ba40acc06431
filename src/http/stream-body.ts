import { messageOf } from "../errors.js";
import type { Exchange } from "./exchange.js";
import type { Load } from "./load.js";
import { requestFields } from "./metrics/access-log.js";
import { Pace } from "./pace.js";
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
/** Where others have waited so long for the memory of bodies, clients that take theirs slowly are dropped for them. */
const MAX_WAIT_MS = 10_000;
/** Slowly: fewer bytes per second. The slowest first, and no more than it takes. */
const SLOW_BYTES_PER_SECOND = 64 * 1_024;

/** Part of a body on its way to a client. */
export interface BodyTransfer {
  readonly exchange: Exchange;
  readonly body: Body;
  /** The part of the body to send. */
  readonly start: number;
  readonly byteLength: number;
  /** Makes the same body again, where it is gone before it is sent. */
  readonly reopen: () => Body | Promise<Body>;
}

/** Counts of one server. */
export interface SenderStats {
  /** Dropped so far, as they were too slow. */
  readonly clientsDropped: number;
}

/** Sends bodies as fast as clients take them, without copying them. */
export interface BodySender {
  /**
   * Sends what `first` begins and what the body has behind it. To be called corked, with the head written.
   * @param first What `body.read(start)` gave in this turn of the loop.
   */
  send(transfer: BodyTransfer, first: Uint8Array): void;
  /** The same of a body that is all there, and stays so. */
  sendWhole(exchange: Exchange, bytes: Uint8Array): void;
  /** Stops looking after bodies on their way. */
  close(): void;
  readonly stats: SenderStats;
}

interface Sending {
  readonly transfer: BodyTransfer;
  body: Body;
  /** True while the body is being opened again. */
  reopening: boolean;
  reopens: number;
  readonly pace: Pace;
}

/**
 * @param load Where the memory of bodies is counted, and waited for.
 * @param stallTimeoutMs A client that takes nothing for so long, or less than 1 KiB for each second of it, is dropped.
 */
export function createBodySender(load: Load, stallTimeoutMs: () => number): BodySender {
  const waiting = new Set<Sending>();
  const stats = { clientsDropped: 0 };
  let timer: NodeJS.Timeout | undefined;

  function send(transfer: BodyTransfer, first: Uint8Array): void {
    const { exchange, byteLength } = transfer;
    if (byteLength === 0) {
      exchange.res.end();
      exchange.endWhole();
      return;
    }
    exchange.byteLength = byteLength;
    load.setBodyBytes(exchange, transfer.body.heldByteLength ?? byteLength);
    const begun = begin(transfer, first);
    if (begun !== "all") goOn(transfer, begun);
  }

  /** Not by `end`: what uWebSockets.js copies of an answer that the socket does not take has no bound. */
  function sendWhole(exchange: Exchange, bytes: Uint8Array): void {
    const { byteLength } = bytes;
    const body: Body = { byteLength, headers: [], read: (offset) => bytes.subarray(offset) };
    send({ exchange, body, start: 0, byteLength, reopen: () => body }, bytes);
  }

  /** Sends the rest whenever the socket takes more. */
  function goOn(transfer: BodyTransfer, begun: "some" | "full"): void {
    const { exchange } = transfer;
    const sending: Sending = {
      transfer,
      body: transfer.body,
      reopening: false,
      reopens: 0,
      pace: new Pace(exchange.res.getWriteOffset(), performance.now(), stallTimeoutMs()),
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
      exchange.endWhole();
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
        exchange.endWhole();
        return true;
      }
      const sent = exchange.res.getWriteOffset();
      if (sent > offset) {
        offset = sent;
        sending.reopens = 0;
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
        exchange.own(again);
        if (again.byteLength !== body.byteLength) {
          fail(
            sending,
            new Error(`expected the same ${body.byteLength} bytes again, received ${again.byteLength}`),
          );
          return;
        }
        sending.body = again;
        if (!exchange.over) {
          load.setBodyBytes(exchange, again.heldByteLength ?? byteLength);
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
    const { context } = exchange;
    context.log.error({ ...requestFields(exchange), err: error }, `answer broken off: ${messageOf(error)}`);
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
      if (exchange.over) continue;
      sending.pace.look(exchange.res.getWriteOffset(), nowMs);
      if (!sending.reopening && sending.pace.hasStalled(nowMs)) giveUp(sending, "it takes next to nothing");
    }
    makeRoom();
    if (waiting.size === 0) stop();
  }

  /** A body that is taken slowly holds memory that others wait for: not for ever. */
  function makeRoom(): void {
    let short = load.shortage(MAX_WAIT_MS);
    if (short === 0) return;
    const rateOf = ({ pace }: Sending) => pace.rate ?? Number.POSITIVE_INFINITY;
    const slow = [...waiting]
      .filter((sending) => sending.transfer.exchange.bodyBytes > 0 && rateOf(sending) < SLOW_BYTES_PER_SECOND)
      .sort((one, other) => rateOf(one) - rateOf(other));
    for (const sending of slow) {
      if (short <= 0) return;
      short -= sending.transfer.exchange.bodyBytes;
      giveUp(sending, "it takes its body slowly, and others wait for the memory");
    }
  }

  function giveUp(sending: Sending, why: string): void {
    const { exchange } = sending.transfer;
    waiting.delete(sending);
    exchange.context.log.debug(requestFields(exchange), `client dropped: ${why}`);
    stats.clientsDropped += 1;
    exchange.drop();
  }

  function stop(): void {
    clearInterval(timer);
    timer = undefined;
  }

  return { send, sendWhole, close: stop, stats };
}
