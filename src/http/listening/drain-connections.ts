import { setTimeout as delay } from "node:timers/promises";
import { settlesWithin } from "../../event-loop/settles-within.js";
import type { Exchange } from "../exchange.js";
import type { ExchangeContext } from "../exchange-context.js";
import type { Load } from "../load.js";

/** Idle time after which remaining connections are dropped. Clients that saw `Connection: close` have left by then. */
const QUIET_MS = 500;
const LOOK_MS = 20;
/** How often the requests of a former app are counted. */
const LOOK_AT_REQUESTS_MS = 100;

/**
 * Waits, after a server has stopped accepting connections, until no request is in flight and no connection is left or in use.
 * @param connections Returns the number of open connections.
 * @param graceMs The longest time to wait.
 */
export async function drainConnections(
  load: Load,
  connections: () => number,
  graceMs: number,
): Promise<void> {
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

/** Waits until no request is left that is answered in this context. */
export async function drainRequests(open: Iterable<Exchange>, context: ExchangeContext): Promise<void> {
  while (hasRequestOf(open, context)) await delay(LOOK_AT_REQUESTS_MS);
}

function hasRequestOf(open: Iterable<Exchange>, context: ExchangeContext): boolean {
  // The oldest come first: if one is left, it is among them.
  for (const exchange of open) if (exchange.context === context) return true;
  return false;
}
