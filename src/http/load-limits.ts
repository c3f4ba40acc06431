import type { LinkedList } from "../collections/linked-list.js";
import { ZpublishError } from "../errors.js";
import { createHistogram, type Histogram } from "../observe/metrics.js";
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
export type Load = ReturnType<typeof createLoad>;

/** A request that waits for room. */
interface Waiting {
  readonly byteLength: number;
  readonly resolve: () => void;
  readonly sinceMs: number;
}

/** Creates a load without requests. @param limits Read whenever they are needed: they may change. */
export function createLoad(limits: LoadLimits) {
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
    stats: stats as LoadStats,
    /** @throws ZpublishError `overloaded` */
    admit(priority: Route["priority"]): void {
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
    begin(): void {
      stats.requests += 1;
      stats.requestsInFlight += 1;
    },
    /** Ends a request: its bytes are free, and it waits no longer. */
    end(taker: BodyTaker): void {
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
    /** Whether bodies may take more memory. */
    hasRoom,
    /** Sets the bytes that a request's body takes. */
    setBodyBytes(taker: BodyTaker, byteLength: number): void {
      account(taker, byteLength);
      if (queue.size > 0) admitWaiting();
    },
    /**
     * Reserves bytes for a body, first come first served; undefined if there is room at once. Reserved bytes count from then
     * on, so that requests admitted together do not exceed the limit once their bodies are made.
     */
    reserve(taker: BodyTaker, byteLength: number): Promise<void> | undefined {
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
    /** Bytes to free so that every request waiting longer than `waitedMs` fits; 0 if none has. */
    shortage(waitedMs: number): number {
      const latestMs = performance.now() - waitedMs;
      let wanted = 0;
      for (const { byteLength, sinceMs } of queue.values()) {
        if (sinceMs > latestMs) break;
        // A request that needs nothing is admitted only when there is room, too.
        wanted += Math.max(1, byteLength);
      }
      return wanted === 0 ? 0 : Math.max(1, stats.bodyBytesInFlight + wanted - limits.maxBodyBytesInFlight);
    },
    /** Resolves when nothing is in flight. */
    idle(): Promise<void> {
      return stats.requestsInFlight === 0
        ? Promise.resolve()
        : new Promise((resolve) => idlers.push(resolve));
    },
  };
}

/** Longest time between two checks. */
const LOOK_MS = 1_000;

/** A request whose answer is not sent yet. */
export interface UnansweredRequest {
  /** Milliseconds since process start. */
  readonly beganMs: number;
  /** Whether part of the answer is written. */
  readonly started: boolean;
}

/** Ends requests whose answer does not begin in time, with 503. */
export type OverdueRequests = ReturnType<typeof createOverdueRequests>;

/**
 * Creates the checks. All requests share one timer, which stops when none waits: a request that is answered at once costs nothing.
 * @param open Requests whose answer is not sent yet, oldest first.
 * @param end Answers a request with an error, which cancels the work for it.
 */
export function createOverdueRequests<T extends UnansweredRequest>(
  open: LinkedList<T>,
  currentTimeoutMs: () => number,
  end: (request: T, error: ZpublishError) => void,
) {
  let timer: NodeJS.Timeout | undefined;
  let count = 0;

  function look(): void {
    const timeoutMs = currentTimeoutMs();
    const latestMs = performance.now() - timeoutMs;
    for (const exchange of open) {
      if (exchange.beganMs > latestMs) break;
      if (exchange.started) continue;
      count += 1;
      end(exchange, new ZpublishError("timed-out", `The answer did not begin within ${timeoutMs / 1_000} s`));
    }
    if (open.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  return {
    /** Starts the checks, if they are not running: a request waits for its answer. */
    begin() {
      timer ??= setInterval(look, Math.min(LOOK_MS, currentTimeoutMs())).unref();
    },
    /** Number of requests ended so far. */
    get count() {
      return count;
    },
  };
}

/** Methods as metrics name them. */
export const METHOD_LABELS = ["GET", "HEAD", "POST", "OPTIONS", "other"] as const;
/** One of {@link METHOD_LABELS}. */
export type MethodLabel = (typeof METHOD_LABELS)[number];

/** Bucket bounds in seconds; fewer than those of single stages, since every route has a histogram. */
const BOUNDS = [0.0001, 0.00025, 0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 1, 2.5, 10, 30, 120];

/** Outcomes of the requests of one route. */
export interface RouteCounts {
  /** The route's template, the path of an admin endpoint, or `unmatched`: never the path of a request. */
  readonly route: string;
  /** Counts by method and status line without the version; that of nginx (499) if the client left before the answer began. */
  readonly requests: Readonly<Record<MethodLabel, Map<string, number>>>;
  /** Bytes of bodies that were sent whole. */
  bytes: number;
  /** Answers that began and were not sent whole: the client left or was dropped. */
  brokenOff: number;
  /** Seconds until the answer began. */
  readonly firstByte: Histogram;
  /** Seconds from the beginning to the end of an answer that the socket did not take at once; one histogram for all routes. */
  readonly send: Histogram;
  /** Seconds until the whole answer was handed to the system, or the request ended. */
  readonly whole: Histogram;
}

/** Outcomes of all requests of one server. */
export type RequestCounts = ReturnType<typeof createRequestCounts>;

/** Creates counts that are all 0. */
export function createRequestCounts() {
  const routes = new Map<string, RouteCounts>();
  const send = createHistogram();
  const of = (route: string): RouteCounts => {
    let counts = routes.get(route);
    if (counts === undefined) {
      counts = createRouteCounts(route, send);
      routes.set(route, counts);
    }
    return counts;
  };
  return {
    /** Counts of requests without a route, and of those rejected before their route was known. */
    unmatched: of("unmatched"),
    /** Returns the counts of a route, which begin with the first call. @param route Its template, never text from a request. */
    of,
    /** Returns the counts of all routes that had requests. */
    all: () => routes.values(),
    /** Seconds from the beginning to the end of an answer that the socket did not take at once. */
    send,
  };
}

function createRouteCounts(route: string, send: Histogram): RouteCounts {
  return {
    route,
    send,
    requests: { GET: new Map(), HEAD: new Map(), POST: new Map(), OPTIONS: new Map(), other: new Map() },
    bytes: 0,
    brokenOff: 0,
    firstByte: createHistogram(BOUNDS),
    whole: createHistogram(BOUNDS),
  };
}
