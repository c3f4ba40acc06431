import { readFileSync } from "node:fs";
import type { Log } from "../../observe/log.js";

/** File descriptors kept free for workers, datasets and cache; at most half of all. */
const RESERVED_FILES = 256;

/**
 * Returns how many connections this process can hold. Each is an open file; if files run out, uWebSockets.js uses a whole core to try
 * accepting again and again.
 * @param asked The configured maximum; a lower result is logged as a warning.
 */
export function fitOpenFiles(asked: number, log: Log): number {
  const maxFiles = maxOpenFiles();
  if (maxFiles === undefined) return asked;
  const max = maxFiles - Math.min(RESERVED_FILES, Math.floor(maxFiles / 2));
  if (asked <= max) return asked;
  log.warn(
    { asked, max, maxFiles },
    `this process may have ${maxFiles} files open: at most ${max} connections, not ${asked} (raise ulimit -n)`,
  );
  return max;
}

/** Returns the soft limit, which Node.js has raised to the hard one; undefined if the system does not say. */
function maxOpenFiles(): number | undefined {
  try {
    const found = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1];
    return found === undefined ? undefined : Number(found);
  } catch {
    return undefined;
  }
}
