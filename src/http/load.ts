import { ZpublishError } from "../errors.js";
import type { Route } from "./router.js";

/** Hard limits of one server. */
export interface LoadLimits {
  /** Requests in flight; more are answered 503. Default 16,384. */
  readonly maxRequestsInFlight: number;
  /** Requests in flight beyond which pages and metadata are shed. Default 8,192. */
  readonly maxPagesInFlight: number;
  /**
   * Bytes of bodies that are being made or sent; beyond it, chunks wait for room. Default 1 GiB.
   */
  readonly maxBodyBytesInFlight: number;
  /** Whether the queue of chunks is full: then pages are shed, since some show chunks. Default: never. */
  readonly isSaturated?: () => boolean;
}

/** Defaults of {@link LoadLimits}. */
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

/** A request that takes memory for its body. */
export interface BodyTaker {
  /** Its share of {@link LoadLimits.maxBodyBytesInFlight}. Written by the load only. */
  bodyBytes: number;
}

/** Requests and bodies in flight, kept within their limits. */
export interface Load {
  readonly stats: LoadStats;
  /** @throws ZpublishError `overloaded` */
  admit(priority: Route["priority"]): void;
  begin(): void;
  /** Ends a request: its bytes are free, and it waits no longer. */
  end(taker: BodyTaker): void;
  /** Sets the bytes that a request's body takes. */
  setBodyBytes(taker: BodyTaker, byteLength: number): void;
  /**
   * Reserves bytes for a body, first come first served; undefined if there is room at once. Reserved bytes count from then
   * on, so that requests admitted together do not exceed the limit once their bodies are made.
   */
  reserve(taker: BodyTaker, byteLength: number): Promise<void> | undefined;
  /** Bytes to free so that every request waiting longer than `waitedMs` fits; 0 if none has. */
  shortage(waitedMs: number): number;
  /** Resolves when nothing is in flight. */
  idle(): Promise<void>;
}

/** A request that waits for room. */
interface Waiting {
  readonly byteLength: number;
  readonly resolve: () => void;
  readonly sinceMs: number;
}

/** Creates a load without requests. @param limits Read whenever they are needed: they may change. */
export function createLoad(limits: LoadLimits): Load {
  const stats = {
    requests: 0,
    requestsInFlight: 0,
    bodyBytesInFlight: 0,
    waiting: 0,
  };
  // In order of arrival. A map: a request that ends leaves from any place.
  const queue = new Map<BodyTaker, Waiting>();
  const idlers: (() => void)[] = [];

  function hasRoom(): boolean {
    return stats.bodyBytesInFlight < limits.maxBodyBytesInFlight;
  }

  function account(taker: BodyTaker, byteLength: number): void {
    stats.bodyBytesInFlight += byteLength - taker.bodyBytes;
    taker.bodyBytes = byteLength;
  }

  function admitWaiting(): void {
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
    admit(priority) {
      const { maxRequestsInFlight, maxPagesInFlight } = limits;
      const max = priority === "page" ? Math.min(maxPagesInFlight, maxRequestsInFlight) : maxRequestsInFlight;
      if (stats.requestsInFlight > max) {
        throw new ZpublishError(
          "overloaded",
          `${stats.requestsInFlight} requests in flight: expected at most ${max} for a ${priority}`,
        );
      }
      // Chunks wait instead.
      if (priority === "page" && limits.isSaturated?.())
        throw new ZpublishError("overloaded", "the queue of chunks is full");
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
        admitWaiting();
      }
      if (stats.requestsInFlight === 0 && idlers.length > 0)
        for (const resolve of idlers.splice(0)) resolve();
    },
    setBodyBytes(taker, byteLength) {
      account(taker, byteLength);
      if (queue.size > 0) admitWaiting();
    },
    reserve(taker, byteLength) {
      // A request that is begun again still has its room: it would wait for itself.
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
        // A request that needs nothing is admitted only when there is room, too.
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
