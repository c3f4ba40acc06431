import { setTimeout as delay } from "node:timers/promises";
import { settlesWithin } from "../settles-within.js";
import type { Load } from "./load.js";

/**
 * Nobody has asked for anything for so long: whoever has a connection still, and was told with its last answer that it ends,
 * has closed it; and who was not told does not seem to need it.
 */
const QUIET_MS = 500;
const LOOK_MS = 20;

/**
 * Waits, when nobody new is accepted, until nothing is in flight and no connection is left, or none is in use.
 * @param connections How many are open.
 * @param graceMs For how long at most.
 */
export async function untilQuiet(load: Load, connections: () => number, graceMs: number): Promise<void> {
  const endMs = performance.now() + graceMs;
  let { requests } = load.stats;
  let sinceMs = performance.now();
  for (;;) {
    const inTime = await settlesWithin(load.idle(), Math.max(0, endMs - performance.now()));
    if (!inTime || connections() === 0) return;
    const nowMs = performance.now();
    if (load.stats.requests !== requests) {
      requests = load.stats.requests;
      sinceMs = nowMs;
    }
    if (nowMs >= endMs || nowMs - sinceMs >= QUIET_MS) return;
    await delay(Math.min(LOOK_MS, endMs - nowMs));
  }
}
