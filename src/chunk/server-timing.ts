import type { Body } from "../http/reply.js";

/**
 * `Server-Timing` of the stages that ran (W3C Server Timing), durations in milliseconds.
 * @param timings Milliseconds by stage; stages of exactly 0 did not run.
 */
export function serverTiming(timings: Readonly<Record<string, number>>): string {
  let header = "";
  for (const stage in timings) {
    const duration = timings[stage] as number;
    if (duration === 0) continue;
    header += `${header === "" ? "" : ", "}${stage};dur=${duration.toFixed(3)}`;
  }
  return header;
}

/** Look-ups up to this many microseconds, nearly all, share their header lines. */
const SHARED_MICROSECONDS = 1_000;

const shared: Body["headers"][] = [];

/** Headers of a chunk found in the cache: frozen, one list per microsecond. @param lookupMs Duration of the look-up. */
export function hitHeaders(lookupMs: number): Body["headers"] {
  const microseconds = Math.round(lookupMs * 1_000);
  let headers = shared[microseconds];
  if (headers === undefined) {
    headers = Object.freeze([
      Object.freeze(["X-Cache", "HIT"] as const),
      Object.freeze(["Server-Timing", serverTiming({ cache: Math.max(microseconds, 1) / 1_000 })] as const),
    ]);
    if (microseconds < SHARED_MICROSECONDS) shared[microseconds] = headers;
  }
  return headers;
}
