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

/** Waits until something holds, for a minute at most, since the machine may be busy. @returns Whether it does. */
export async function eventually(holds: () => boolean): Promise<boolean> {
  const endMs = performance.now() + 60_000;
  while (!holds()) {
    if (performance.now() > endMs) return false;
    await delay(10);
  }
  return true;
}
