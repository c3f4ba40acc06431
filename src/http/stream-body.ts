import { messageOf } from "../errors.js";
import type { Log } from "../observe/log.js";
import type { HttpResponse } from "./listening/listener.js";
import type { BodyTaker, Load } from "./load-limits.js";
import type { Body } from "./reply.js";
import { type NamedRequest, requestFields } from "./request-log.js";

/** Slowest rate at which a client may read: a tenth of a modem's. */
const MIN_BYTES_PER_SECOND = 1_024;

/** Rate at which a client reads its answer, measured from time to time. */
class Pace {
  /** Recent rate in bytes per second; undefined before the first measurement. */
  rate: number | undefined;
  readonly #stallTimeoutMs: number;
  #sent: number;
  #lookedMs: number;
  #progressMs: number;
  /** Begin of the current stall period, and the bytes sent by then. */
  #beganMs: number;
  #sentBefore: number;

  /** @param sent Bytes the client has read so far. @param stallTimeoutMs See {@link Pace.hasStalled}. */
  constructor(sent: number, nowMs: number, stallTimeoutMs: number) {
    this.#stallTimeoutMs = stallTimeoutMs;
    this.#sent = sent;
    this.#sentBefore = sent;
    this.#lookedMs = nowMs;
    this.#progressMs = nowMs;
    this.#beganMs = nowMs;
  }

  /** Measures the rate. @param sent Bytes the client has read by now. */
  look(sent: number, nowMs: number): void {
    const rate = ((sent - this.#sent) * 1_000) / Math.max(1, nowMs - this.#lookedMs);
    // Averaged with the rate before: clients read in bursts.
    this.rate = this.rate === undefined ? rate : (this.rate + rate) / 2;
    if (sent > this.#sent) this.#progressMs = nowMs;
    this.#sent = sent;
    this.#lookedMs = nowMs;
  }

  /** Whether the client read nothing for the stall time-out, or less than the slowest rate. To be called after each measurement. */
  hasStalled(nowMs: number): boolean {
    if (nowMs - this.#progressMs > this.#stallTimeoutMs) return true;
    const elapsedMs = nowMs - this.#beganMs;
    if (elapsedMs < this.#stallTimeoutMs) return false;
    const taken = this.#sent - this.#sentBefore;
    this.#beganMs = nowMs;
    this.#sentBefore = this.#sent;
    return taken * 1_000 < MIN_BYTES_PER_SECOND * elapsedMs;
  }
}

/** Most bytes offered to the socket in one call; uWebSockets.js counts them in 32 bits. */
const MAX_WRITE_BYTES = 2 ** 28;
/** Times that an evicted body is opened again without a byte sent in between. */
const MAX_REOPENS = 3;
/**
 * Time between attempts to write. uWebSockets.js drops a connection after 10 s without a write, and reports that the socket
 * can take more only when a third of the kernel's buffer is free: a megabyte, for which a slow line takes longer. Each
 * attempt restarts its clock, so this file decides when a client has stalled.
 */
const RETRY_MS = 4_000;
/** If a request has waited this long for memory, slow clients are dropped to free some. */
const MAX_WAIT_MS = 10_000;
/** Rate below which a client is slow. The slowest are dropped first, and no more than needed. */
const SLOW_BYTES_PER_SECOND = 64 * 1_024;

/** Part of a body on its way to a client. */
interface BodyTransfer {
  readonly exchange: BodyReceiver;
  readonly body: Body;
  /** The part of the body to send. */
  readonly start: number;
  readonly byteLength: number;
  /** Opens the same body again at an offset, if it is evicted before all of it is sent, or is made in pieces. */
  readonly reopen: (offset: number) => Body | Promise<Body>;
}

/** Counts of one server. */
export interface SenderStats {
  /** Clients dropped because they were too slow. */
  readonly clientsDropped: number;
}

/** Sends bodies as fast as clients take them, without copying them. */
export type BodySender = ReturnType<typeof createBodySender>;

/**
 * Creates a sender.
 * @param load Counts the memory of bodies; other requests wait for it.
 * @param stallTimeoutMs Time after which a client is dropped that took nothing, or less than 1 KiB per second of it.
 */
export function createBodySender(load: Load, stallTimeoutMs: () => number) {
  const waiting = new Set<Sending>();
  const stats = { clientsDropped: 0 };
  let timer: NodeJS.Timeout | undefined;

  /**
   * Sends a body. To be called corked, with the head written.
   * @param first Bytes that `body.read(start)` returned in this iteration of the event loop.
   */
  function send(transfer: BodyTransfer, first: Uint8Array): void {
    const { exchange, byteLength } = transfer;
    if (byteLength === 0) {
      exchange.res.end();
      exchange.endWhole();
      return;
    }
    const isKnown = byteLength !== Number.POSITIVE_INFINITY;
    if (isKnown) exchange.byteLength = byteLength;
    load.setBodyBytes(exchange, transfer.body.heldByteLength ?? (isKnown ? byteLength : first.byteLength));
    const begun = isKnown ? begin(transfer, first) : "some";
    if (begun !== "all") sendRest(transfer, begun);
  }

  /** Sends a body that is in memory and does not change. Does not use `end`: uWebSockets.js copies what the socket does not take, without a bound. */
  function sendWhole(exchange: BodyReceiver, bytes: Uint8Array): void {
    const { byteLength } = bytes;
    const body: Body = { byteLength, headers: [], read: (offset) => bytes.subarray(offset) };
    send({ exchange, body, start: 0, byteLength, reopen: () => body }, bytes);
  }

  /** Sends the rest whenever the socket takes more. */
  function sendRest(transfer: BodyTransfer, begun: "some" | "full"): void {
    const { exchange } = transfer;
    const sending = new Sending(transfer, load, waiting, stallTimeoutMs());
    if (begun === "some" && (sending.pump() || exchange.over)) return;
    waiting.add(sending);
    timer ??= setInterval(retry, RETRY_MS).unref();
    exchange.res.onWritable(() => {
      sending.resume(true);
      return true;
    });
  }

  function retry(): void {
    const nowMs = performance.now();
    for (const sending of waiting) {
      const { exchange } = sending.transfer;
      if (exchange.over) waiting.delete(sending);
      sending.resume();
      if (exchange.over) continue;
      sending.pace.look(exchange.res.getWriteOffset(), nowMs);
      if (!sending.isReopening && sending.pace.hasStalled(nowMs)) dropClient(sending, "it has stalled");
    }
    freeMemory();
    if (waiting.size === 0) stop();
  }

  /** Drops slow clients whose bodies hold memory that others wait for. */
  function freeMemory(): void {
    let short = load.shortage(MAX_WAIT_MS);
    if (short === 0) return;
    const rateOf = ({ pace }: Sending) => pace.rate ?? Number.POSITIVE_INFINITY;
    const slow = [...waiting]
      .filter((sending) => sending.transfer.exchange.bodyBytes > 0 && rateOf(sending) < SLOW_BYTES_PER_SECOND)
      .sort((one, other) => rateOf(one) - rateOf(other));
    for (const sending of slow) {
      if (short <= 0) return;
      short -= sending.transfer.exchange.bodyBytes;
      dropClient(sending, "it is slow, and others wait for the memory of its body");
    }
  }

  function dropClient(sending: Sending, why: string): void {
    const { exchange } = sending.transfer;
    waiting.delete(sending);
    exchange.context.log.debug(requestFields(exchange), `client dropped: ${why}`);
    stats.clientsDropped += 1;
    exchange.drop();
  }

  /** Stops the timer that retries and drops slow clients. */
  function stop(): void {
    clearInterval(timer);
    timer = undefined;
  }

  return { send, sendWhole, close: stop, stats: stats as SenderStats };
}

/** Writes what the socket takes at once, nearly always all. `some`: it took `first`; `full`: less of it. */
function begin({ exchange, byteLength }: BodyTransfer, first: Uint8Array): "all" | "some" | "full" {
  const length = Math.min(first.byteLength, byteLength, MAX_WRITE_BYTES);
  const view = length === first.byteLength ? first : first.subarray(0, length);
  // Keeps nothing of the rest, unlike end() and write().
  const [ok, done] = exchange.res.tryEnd(view, byteLength);
  if (done) {
    exchange.endWhole();
    return "all";
  }
  return ok ? "some" : "full";
}

/** A body of which the socket did not take all at once. */
class Sending {
  readonly transfer: BodyTransfer;
  readonly pace: Pace;
  /** True while the body is being opened again. */
  isReopening = false;
  readonly #load: Load;
  /** Those that wait for their sockets; this one leaves them when it ends. */
  readonly #waiting: Set<Sending>;
  #body: Body;
  #reopens = 0;
  /** Whether the socket has not taken all that it was given, and has not said since that it takes more. */
  #isFull = false;

  constructor(transfer: BodyTransfer, load: Load, waiting: Set<Sending>, stallTimeoutMs: number) {
    this.transfer = transfer;
    this.#load = load;
    this.#waiting = waiting;
    this.#body = transfer.body;
    this.pace = new Pace(transfer.exchange.res.getWriteOffset(), performance.now(), stallTimeoutMs);
  }

  /** Offers the rest of the body to the socket; true when all of it is sent. To be called corked. */
  pump(): boolean {
    const { exchange, start, byteLength } = this.transfer;
    let offset = exchange.res.getWriteOffset();
    let view = this.#body.read(start + offset);
    for (;;) {
      const isEnd = view?.byteLength === 0 && byteLength === Number.POSITIVE_INFINITY;
      if (view === undefined || (view.byteLength === 0 && !isEnd)) {
        this.#reopen();
        return false;
      }
      // Once an answer has ended, uWebSockets.js drops a client that takes longer than 10 s for what it holds.
      if (isEnd && this.#isFull) return false;
      const [ok, done] = isEnd ? this.#end(offset) : this.#offer(view, offset);
      if (done) {
        this.#waiting.delete(this);
        exchange.endWhole();
        return true;
      }
      const sent = exchange.res.getWriteOffset();
      if (sent > offset) {
        offset = sent;
        this.#reopens = 0;
      }
      this.#isFull = !ok;
      if (!ok) return false;
      view = this.#body.read(start + offset);
    }
  }

  /** @returns Whether the socket takes more, and whether the body is complete. */
  #offer(view: Uint8Array, offset: number): readonly [isTaken: boolean, isDone: boolean] {
    const { exchange, byteLength } = this.transfer;
    if (byteLength === Number.POSITIVE_INFINITY) return [exchange.res.write(view), false];
    const length = Math.min(view.byteLength, byteLength - offset, MAX_WRITE_BYTES);
    return exchange.res.tryEnd(length === view.byteLength ? view : view.subarray(0, length), byteLength);
  }

  /** Ends a body whose length was not known. */
  #end(offset: number): readonly [isTaken: boolean, isDone: boolean] {
    const { exchange } = this.transfer;
    exchange.byteLength = offset;
    exchange.res.end();
    return [true, true];
  }

  /**
   * Sends more, unless the request is over or its body is being opened again.
   * @param isWritable Whether the socket has said that it takes more. Default false.
   */
  resume(isWritable = false): void {
    if (isWritable) this.#isFull = false;
    const { exchange } = this.transfer;
    if (exchange.over || this.isReopening) return;
    try {
      exchange.cork(() => this.pump());
    } catch (error) {
      this.#fail(error);
    }
  }

  #reopen(): void {
    const { exchange, start, reopen } = this.transfer;
    this.#reopens += 1;
    if (this.#reopens > MAX_REOPENS) {
      this.#fail(new Error(`the body was gone ${MAX_REOPENS} times in a row`));
      return;
    }
    this.isReopening = true;
    // An async function, so that an error thrown at once is a rejection, too.
    (async () => reopen(start + exchange.res.getWriteOffset()))().then(
      (again) => this.#goOn(again),
      (error: unknown) => this.#fail(error),
    );
  }

  #goOn(again: Body): void {
    const { exchange, body, byteLength } = this.transfer;
    this.isReopening = false;
    exchange.own(again);
    if (again.byteLength !== body.byteLength) {
      const received = `received ${again.byteLength}`;
      this.#fail(new Error(`expected the same ${body.byteLength} bytes again, ${received}`));
      return;
    }
    this.#body = again;
    const held = again.heldByteLength ?? byteLength;
    if (!exchange.over && held !== Number.POSITIVE_INFINITY) this.#load.setBodyBytes(exchange, held);
    this.resume();
  }

  #fail(error: unknown): void {
    const { exchange } = this.transfer;
    this.#waiting.delete(this);
    if (exchange.over) return;
    const { context } = exchange;
    context.log.error({ ...requestFields(exchange), err: error }, `answer broken off: ${messageOf(error)}`);
    exchange.drop();
  }
}

/** A request that receives a body: the `Exchange`. */
export interface BodyReceiver extends BodyTaker, NamedRequest {
  readonly res: HttpResponse;
  readonly context: { readonly log: Log };
  readonly over: boolean;
  byteLength: number;
  cork(write: () => void): void;
  own(body: Body): void;
  endWhole(): void;
  drop(): void;
}
