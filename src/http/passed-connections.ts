import { connect, type Socket } from "node:net";
import { shortForm } from "./ip-address.js";
import { announcePassedOn, forgetPassedOn } from "./peer-address.js";

/** How often all connections are looked at. */
const LOOK_MS = 2_000;
/** Beyond the time after which a body's client has stalled: so that whoever sends bodies notices first, and counts it. */
const STALL_MARGIN_MS = 6_000;
/** Until the inner side is connected, and until a client closes its side when all was sent and the inner side is closed. */
const LINGER_MS = 10_000;

/** Connections on their way through this process: each from a client to a listener on 127.0.0.1, and back. */
export interface PassedConnections {
  /**
   * Passes on a connection, whatever comes, until both sides are closed, or its client leaves what is sent to it.
   * @param proxied See {@link PassedOn.proxied}. @param rest What has come and is to be passed on first.
   */
  add(outer: Socket, proxied: string | undefined, rest: Buffer): void;
  /** Stops looking after them; drops none. */
  close(): void;
}

interface Passed {
  readonly outer: Socket;
  readonly inner: Socket;
  /** Bytes that the system has taken for the client, and when it last took some, or nothing was there for it. */
  taken: number;
  progressMs: number;
  /** The inner side has said all, or is gone. */
  hasEnded: boolean;
}

/**
 * @param innerPort Of the listener.
 * @param stallTimeoutMs A client that takes nothing for so long, and a little longer, is dropped. Asked at each look.
 */
export function createPassedConnections(innerPort: number, stallTimeoutMs: () => number): PassedConnections {
  const open = new Set<Passed>();
  /** Of connections that are gone, by the look after: what they sent may not be read yet. */
  let gone: string[] = [];
  let goneBefore: string[] = [];
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  function add(outer: Socket, proxied: string | undefined, rest: Buffer): void {
    const address = announcePassedOn({ peer: shortForm(outer.remoteAddress ?? ""), proxied });
    const inner = connect({
      host: "127.0.0.1",
      port: innerPort,
      localAddress: address,
      allowHalfOpen: true,
      noDelay: true,
    });
    const passed = { outer, inner, taken: 0, progressMs: performance.now(), hasEnded: false };
    open.add(passed);
    timer ??= setInterval(look, LOOK_MS).unref();
    let isConnected = false;
    inner.once("connect", () => {
      isConnected = true;
    });
    inner.on("error", () => inner.destroy());
    inner.once("end", () => end(passed));
    inner.once("close", (hadError) => {
      // Nobody else may come from there instead of one that never will.
      if (isConnected && !isClosed) gone.push(address);
      else forgetPassedOn(address);
      // What came before is sent on; an answer that is cut off is cut off for the client, too.
      if (hadError && !passed.hasEnded) outer.resetAndDestroy();
      else if (!outer.destroyed) outer.destroySoon();
      end(passed);
      if (outer.destroyed) open.delete(passed);
      else outer.once("close", () => open.delete(passed));
    });
    outer.once("close", () => inner.destroy());
    if (rest.length > 0) inner.write(rest);
    outer.pipe(inner);
    inner.pipe(outer);
  }

  function end(passed: Passed): void {
    if (passed.hasEnded) return;
    passed.hasEnded = true;
    passed.progressMs = performance.now();
  }

  function look(): void {
    const nowMs = performance.now();
    for (const passed of open) {
      const { outer } = passed;
      const taken = outer.bytesWritten - outer.writableLength;
      const patience = patienceMs(passed);
      if (taken !== passed.taken || patience === undefined) {
        passed.taken = taken;
        passed.progressMs = nowMs;
      } else if (nowMs - passed.progressMs > patience) {
        // A client that does not read is told nothing by an end: nor is there to be any of what was not sent.
        if (outer.writableLength > 0) outer.resetAndDestroy();
        else outer.destroy();
      }
    }
    for (const address of goneBefore) forgetPassedOn(address);
    goneBefore = gone;
    gone = [];
    if (open.size === 0 && goneBefore.length === 0) stop();
  }

  /** For how long nothing need move; undefined: uWebSockets.js looks after those that wait for a request, or for an answer. */
  function patienceMs({ outer, inner, hasEnded }: Passed): number | undefined {
    if (outer.writableLength > 0) return stallTimeoutMs() + STALL_MARGIN_MS;
    return hasEnded || inner.connecting ? LINGER_MS : undefined;
  }

  function stop(): void {
    clearInterval(timer);
    timer = undefined;
  }

  return {
    add,
    close() {
      isClosed = true;
      stop();
      for (const address of [...gone, ...goneBefore]) forgetPassedOn(address);
    },
  };
}
