import { createHistogram, type Histogram } from "../observe/histogram.js";
import type { Exchange } from "./exchange.js";

export const METHOD_LABELS = ["GET", "HEAD", "OPTIONS", "other"] as const;
export type MethodLabel = (typeof METHOD_LABELS)[number];

/** Seconds, from a tenth of a millisecond; coarser than of single stages, as there is one for each route. */
const BOUNDS = [0.0001, 0.00025, 0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 1, 2.5, 10, 30, 120];

/** What became of the requests of one route. */
export interface RouteCounts {
  /** The route's template, an operation's path, or `unmatched`: never a path as it came. */
  readonly route: string;
  /** By method, by status line without the version; of answers that never began: {@link CLIENT_GONE}. */
  readonly requests: Readonly<Record<MethodLabel, Map<string, number>>>;
  /** Those of GET that were answered 200, the most by far, which are not in `requests`. */
  ok: number;
  /** Bytes of bodies that were sent whole. */
  bytes: number;
  /** Answers that had begun and were not sent whole: the client went away, or was dropped. */
  brokenOff: number;
  /** Seconds until the answer began. */
  readonly firstByte: Histogram;
  /** Seconds until the whole answer was handed to the system, or given up. */
  readonly whole: Histogram;
}

/** What became of all requests of one server. */
export interface RequestCounts {
  /** Of paths that lead nowhere, and of requests turned away before they were looked at. */
  readonly unmatched: RouteCounts;
  /** Begun with the first call. @param route A template: never anything that came from outside. */
  of(route: string): RouteCounts;
  /** Of all routes that were asked for. */
  all(): Iterable<RouteCounts>;
  /** Seconds from the beginning to the end of an answer that the socket did not take at once. */
  readonly send: Histogram;
}

/** Stands for a status where the client went away before there was one, as nginx has it. */
const CLIENT_GONE = "499 Client Closed Request";

export function createRequestCounts(): RequestCounts {
  const routes = new Map<string, RouteCounts>();
  const of = (route: string) => {
    let counts = routes.get(route);
    if (counts === undefined) {
      counts = createRouteCounts(route);
      routes.set(route, counts);
    }
    return counts;
  };
  return { unmatched: of("unmatched"), of, all: () => routes.values(), send: createHistogram() };
}

function createRouteCounts(route: string): RouteCounts {
  return {
    route,
    requests: { GET: new Map(), HEAD: new Map(), OPTIONS: new Map(), other: new Map() },
    ok: 0,
    bytes: 0,
    brokenOff: 0,
    firstByte: createHistogram(BOUNDS),
    whole: createHistogram(BOUNDS),
  };
}

/** Counts a request that is over. @param nowMs On the clock of `performance.now()`. */
export function countRequest(exchange: Exchange, nowMs: number): void {
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
  exchange.context.watch.counts.send.observe((nowMs - firstByteMs) / 1_000);
}
