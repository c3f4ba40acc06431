import { readdirSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

/** How many files, sockets among them, this process has open; undefined where the system does not say. */
export function openFiles(): number | undefined {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return undefined;
  }
}

/** Waits until something holds, for five seconds at most. @returns Whether it does. */
export async function eventually(holds: () => boolean): Promise<boolean> {
  const endMs = performance.now() + 5_000;
  while (!holds()) {
    if (performance.now() > endMs) return false;
    await delay(10);
  }
  return true;
}
