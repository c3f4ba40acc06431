import { setTimeout as delay } from "node:timers/promises";
import type { Exchange, ExchangeContext } from "./exchange.js";

const LOOK_MS = 100;

/** Waits until no request is left that is answered in this context. Requests cost nothing for being waited for. */
export async function untilAnswered(open: Iterable<Exchange>, context: ExchangeContext): Promise<void> {
  while (isLeft(open, context)) await delay(LOOK_MS);
}

function isLeft(open: Iterable<Exchange>, context: ExchangeContext): boolean {
  // The oldest come first: where one is left, it is among them.
  for (const exchange of open) if (exchange.context === context) return true;
  return false;
}
