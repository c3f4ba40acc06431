import { createHistogram, type Histogram } from "../observe/metrics.js";

/** Methods as metrics name them. */
export const METHOD_LABELS = ["GET", "HEAD", "OPTIONS", "other"] as const;
/** One of {@link METHOD_LABELS}. */
export type MethodLabel = (typeof METHOD_LABELS)[number];

/** Bucket bounds in seconds; fewer than those of single stages, since every route has a histogram. */
const BOUNDS = [0.0001, 0.00025, 0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 1, 2.5, 10, 30, 120];

/** Outcomes of the requests of one route. */
export interface RouteCounts {
  /** The route's template, the path of an admin endpoint, or `unmatched`: never the path of a request. */
  readonly route: string;
  /** Counts by method and status line without the version; {@link CLIENT_GONE} if the answer never began. */
  readonly requests: Readonly<Record<MethodLabel, Map<string, number>>>;
  /** GET requests answered 200, which are the most by far and not in `requests`. */
  ok: number;
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
export interface RequestCounts {
  /** Counts of requests without a route, and of those rejected before their route was known. */
  readonly unmatched: RouteCounts;
  /** Returns the counts of a route, which begin with the first call. @param route Its template, never text from a request. */
  of(route: string): RouteCounts;
  /** Returns the counts of all routes that had requests. */
  all(): Iterable<RouteCounts>;
  /** Seconds from the beginning to the end of an answer that the socket did not take at once. */
  readonly send: Histogram;
}

/** Stands for the status if the client left before there was one, as in nginx. */
const CLIENT_GONE = "499 Client Closed Request";

/** Creates counts that are all 0. */
export function createRequestCounts(): RequestCounts {
  const routes = new Map<string, RouteCounts>();
  const send = createHistogram();
  const of = (route: string) => {
    let counts = routes.get(route);
    if (counts === undefined) {
      counts = createRouteCounts(route, send);
      routes.set(route, counts);
    }
    return counts;
  };
  return { unmatched: of("unmatched"), of, all: () => routes.values(), send };
}

function createRouteCounts(route: string, send: Histogram): RouteCounts {
  return {
    route,
    send,
    requests: { GET: new Map(), HEAD: new Map(), OPTIONS: new Map(), other: new Map() },
    ok: 0,
    bytes: 0,
    brokenOff: 0,
    firstByte: createHistogram(BOUNDS),
    whole: createHistogram(BOUNDS),
  };
}

/** A request that is over, as it is counted. */
export interface CountedRequest {
  readonly counts: RouteCounts;
  readonly methodLabel: MethodLabel;
  /** Status line; empty if the answer never began. */
  readonly status: string;
  /** Milliseconds since process start. */
  readonly beganMs: number;
  /** When the answer began, in milliseconds since process start; 0 if not later than uWebSockets.js's callback. */
  readonly firstByteMs: number;
  readonly isWhole: boolean;
  readonly byteLength: number;
}

/** Counts a request that is over. @param nowMs Milliseconds since process start. */
export function countRequest(exchange: CountedRequest, nowMs: number): void {
  const { counts, status, beganMs, firstByteMs, isWhole } = exchange;
  const seconds = (nowMs - beganMs) / 1_000;
  if (status === "200 OK" && exchange.methodLabel === "GET") counts.ok += 1;
  else {
    const ofMethod = counts.requests[exchange.methodLabel];
    const line = status === "" ? CLIENT_GONE : status;
    ofMethod.set(line, (ofMethod.get(line) ?? 0) + 1);
  }
  counts.whole.observe(seconds);
  if (!isWhole && status !== "") counts.brokenOff += 1;
  else counts.bytes += exchange.byteLength;
  if (firstByteMs === 0) {
    // Answered within the callback: the first byte leaves with the last.
    if (status !== "") counts.firstByte.observe(seconds);
    return;
  }
  counts.firstByte.observe((firstByteMs - beganMs) / 1_000);
  counts.send.observe((nowMs - firstByteMs) / 1_000);
}
