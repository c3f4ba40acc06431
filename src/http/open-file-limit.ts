import { readFileSync } from "node:fs";
import type { Log } from "../observe/log.js";

/** File descriptors that are left for all else than connections: workers, datasets, cache. At most half of all. */
const RESERVED_FILES = 256;

/**
 * How many connections this process can hold: no more than it may have files open. Where they run out, uWebSockets.js
 * tries to accept again and again, with all of a core, until some are free.
 * @param asked What the operator wants; less is had with a warning.
 * @param filesEach File descriptors that one takes.
 */
export function fitOpenFiles(asked: number, filesEach: number, log: Log): number {
  const maxFiles = maxOpenFiles();
  if (maxFiles === undefined) return asked;
  const max = Math.floor((maxFiles - Math.min(RESERVED_FILES, Math.floor(maxFiles / 2))) / filesEach);
  if (asked <= max) return asked;
  log.warn(
    { asked, max, maxFiles },
    `this process may have ${maxFiles} files open: at most ${max} connections, not ${asked} (raise ulimit -n)`,
  );
  return max;
}

/** The soft limit, which Node.js has raised to the hard one; undefined where there is none, or the system does not say. */
function maxOpenFiles(): number | undefined {
  try {
    const found = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1];
    return found === undefined ? undefined : Number(found);
  } catch {
    return undefined;
  }
}
