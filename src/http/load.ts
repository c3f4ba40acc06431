import { ZpublishError } from "../errors.js";
import type { Route } from "./route.js";

/** Hard limits of one server. */
export interface LoadLimits {
  /** Requests being answered at once; more are turned away with 503. Default 16,384. */
  readonly maxRequestsInFlight: number;
  /** Beyond so many, of whatever kind, pages and metadata are turned away, which are shed first. Default 8,192. */
  readonly maxPagesInFlight: number;
  /**
   * Bytes of bodies that are being made, or that clients have not taken yet; beyond it, chunks wait until there is room.
   * Default 1 GiB.
   */
  readonly maxBodyBytesInFlight: number;
  /** Whether no more chunks may wait to be made: pages, some of which show chunks, are turned away then. Default: never. */
  readonly isSaturated?: () => boolean;
}

export const DEFAULT_LOAD_LIMITS: LoadLimits = {
  maxRequestsInFlight: 16_384,
  maxPagesInFlight: 8_192,
  maxBodyBytesInFlight: 2 ** 30,
};

/** Counts of one server. */
export interface LoadStats {
  /** Requests since the server listens. */
  readonly requests: number;
  readonly requestsInFlight: number;
  readonly bodyBytesInFlight: number;
  /** Chunk requests that wait for room. */
  readonly waiting: number;
}

/** A request, as far as bodies are concerned. */
export interface BodyTaker {
  /** Of {@link LoadLimits.maxBodyBytesInFlight}, what is its own. Written by the load only. */
  bodyBytes: number;
}

/** What a server is busy with, kept within its limits. */
export interface Load {
  readonly stats: LoadStats;
  /** @throws ZpublishError `overloaded` */
  admit(weight: Route["weight"]): void;
  begin(): void;
  /** The request is answered, or nobody waits for it any more: what is its own is free, and it waits no longer. */
  end(taker: BodyTaker): void;
  /** How many bytes of bodies are the request's own, instead of what was so far. */
  setBodyBytes(taker: BodyTaker, byteLength: number): void;
  /**
   * Resolves when another body may be opened, first come first served; undefined: at once. From then on `byteLength`
   * is the request's own: those that are let in together must not find room for one only when all their bodies are there.
   */
  room(taker: BodyTaker, byteLength: number): Promise<void> | undefined;
  /** Bytes that have to be given back for all to be let in who have waited for `waitedMs`; 0: nobody has. */
  shortage(waitedMs: number): number;
  /** Resolves when nothing is in flight. */
  idle(): Promise<void>;
}

/** One who waits for room. */
interface Waiting {
  readonly byteLength: number;
  readonly resolve: () => void;
  readonly sinceMs: number;
}

/** @param limits Read whenever they are needed: they may change. */
export function createLoad(limits: LoadLimits): Load {
  const stats = {
    requests: 0,
    requestsInFlight: 0,
    bodyBytesInFlight: 0,
    waiting: 0,
  };
  // In order of arrival. A map, so that whoever goes away leaves nothing behind, wherever it stands.
  const queue = new Map<BodyTaker, Waiting>();
  const idlers: (() => void)[] = [];

  function hasRoom(): boolean {
    return stats.bodyBytesInFlight < limits.maxBodyBytesInFlight;
  }

  function account(taker: BodyTaker, byteLength: number): void {
    stats.bodyBytesInFlight += byteLength - taker.bodyBytes;
    taker.bodyBytes = byteLength;
  }

  function letIn(): void {
    for (const [taker, { byteLength, resolve }] of queue) {
      if (!hasRoom()) return;
      leaveQueue(taker);
      account(taker, byteLength);
      resolve();
    }
  }

  function leaveQueue(taker: BodyTaker): void {
    queue.delete(taker);
    stats.waiting = queue.size;
  }

  return {
    stats,
    admit(weight) {
      const { maxRequestsInFlight, maxPagesInFlight } = limits;
      const max = weight === "page" ? Math.min(maxPagesInFlight, maxRequestsInFlight) : maxRequestsInFlight;
      if (stats.requestsInFlight > max) {
        throw new ZpublishError(
          "overloaded",
          `${stats.requestsInFlight} requests in flight: expected at most ${max} where a ${weight} is asked for`,
        );
      }
      // Those that would only wait longer are chunks, which do.
      if (weight === "page" && limits.isSaturated?.())
        throw new ZpublishError("overloaded", "as many chunks wait to be made as may wait");
    },
    begin() {
      stats.requests += 1;
      stats.requestsInFlight += 1;
    },
    end(taker) {
      stats.requestsInFlight -= 1;
      account(taker, 0);
      if (queue.size > 0) {
        const waiting = queue.get(taker);
        leaveQueue(taker);
        waiting?.resolve();
        letIn();
      }
      if (stats.requestsInFlight === 0 && idlers.length > 0)
        for (const resolve of idlers.splice(0)) resolve();
    },
    setBodyBytes(taker, byteLength) {
      account(taker, byteLength);
      if (queue.size > 0) letIn();
    },
    room(taker, byteLength) {
      // A request that is begun again has its room still: waiting for it would be waiting for itself.
      if (taker.bodyBytes > 0) return undefined;
      if (queue.size === 0 && hasRoom()) {
        account(taker, byteLength);
        return undefined;
      }
      return new Promise<void>((resolve) => {
        queue.set(taker, { byteLength, resolve, sinceMs: performance.now() });
        stats.waiting = queue.size;
      });
    },
    shortage(waitedMs) {
      const latestMs = performance.now() - waitedMs;
      let wanted = 0;
      for (const { byteLength, sinceMs } of queue.values()) {
        if (sinceMs > latestMs) break;
        // Who needs nothing is let in all the same only when there is room.
        wanted += Math.max(1, byteLength);
      }
      return wanted === 0 ? 0 : Math.max(1, stats.bodyBytesInFlight + wanted - limits.maxBodyBytesInFlight);
    },
    idle() {
      return stats.requestsInFlight === 0
        ? Promise.resolve()
        : new Promise((resolve) => idlers.push(resolve));
    },
  };
}
