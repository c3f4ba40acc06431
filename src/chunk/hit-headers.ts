import type { Body } from "../http/reply.js";
import { serverTiming } from "./server-timing.js";

/** Microseconds up to which headers are kept: nearly every look-up. */
const KEPT_MICROSECONDS = 1_000;

const kept: Body["headers"][] = [];

/**
 * The headers of a chunk that was found in the cache: frozen, and the same ones for the same microsecond, so that they
 * are put together once.
 * @param lookupMs What the look-up took, in milliseconds.
 */
export function hitHeaders(lookupMs: number): Body["headers"] {
  const microseconds = Math.round(lookupMs * 1_000);
  let headers = kept[microseconds];
  if (headers === undefined) {
    headers = Object.freeze([
      Object.freeze(["X-Cache", "HIT"] as const),
      Object.freeze(["Server-Timing", serverTiming({ cache: Math.max(microseconds, 1) / 1_000 })] as const),
    ]);
    if (microseconds < KEPT_MICROSECONDS) kept[microseconds] = headers;
  }
  return headers;
}
