import { isDeepStrictEqual } from "node:util";
import type { Config } from "../config/config.js";
import type { OptionKey } from "../config/options.js";

/** The option of a value, or the option of each property of a value that is null or complete. */
type OptionNames = OptionKey | Readonly<Record<string, OptionKey>>;

/** Options that sockets, threads and files were opened with, and the path of each in a configuration. */
const RESTART_ONLY: readonly (readonly [OptionNames, readonly string[]])[] = [
  ["host", ["host"]],
  ["port", ["port"]],
  ["workers", ["workers"]],
  ["processes", ["processes"]],
  [{ directory: "cacheDir", maxBytes: "cacheSize" }, ["cache"]],
  ["maxConnections", ["limits", "maxConnections"]],
  ["maxHeaderSize", ["limits", "maxHeaderBytes"]],
  ["maxQueuedChunks", ["limits", "maxQueuedChunks"]],
  ["chunkTimeout", ["limits", "chunkTimeoutMs"]],
  ["sourceTimeout", ["limits", "sourceTimeoutMs"]],
  ["workerMemory", ["limits", "workerHeapBytes"]],
  ["maxChunkSize", ["limits", "maxChunkBytes"]],
  [{ certFile: "tlsCert", keyFile: "tlsKey" }, ["access", "tls"]],
  ["metrics", ["observe", "metrics"]],
  [{ port: "adminPort", host: "adminHost" }, ["observe", "admin"]],
];

type Options = Pick<Config, "limits" | "access" | "observe">;

/**
 * Keeps the current values of options that only a restart can change.
 * @returns The next configuration with those values, and the names of options that it would have changed.
 */
export function keepRestartOnlyOptions<T extends Options>(
  current: T,
  next: T,
): { readonly config: T; readonly ignored: readonly OptionKey[] } {
  const ignored: OptionKey[] = [];
  let config = next;
  for (const [names, path] of RESTART_ONLY) {
    const value = valueAt(current, path);
    const changed = changedOptions(names, value, valueAt(next, path));
    if (changed.length === 0) continue;
    ignored.push(...changed);
    config = withValueAt(config, path, value) as T;
  }
  return { config, ignored };
}

function changedOptions(names: OptionNames, value: unknown, next: unknown): readonly OptionKey[] {
  if (isDeepStrictEqual(value, next)) return [];
  if (typeof names === "string") return [names];
  // Null has no properties to compare.
  if (value === null || next === null) return Object.values(names);
  return Object.entries(names)
    .filter(([part]) => !isDeepStrictEqual(valueAt(value, [part]), valueAt(next, [part])))
    .map(([, key]) => key);
}

function valueAt(object: unknown, path: readonly string[]): unknown {
  return path.reduce((value, key) => (value as Readonly<Record<string, unknown>>)[key], object);
}

function withValueAt(object: unknown, [key, ...rest]: readonly string[], value: unknown): unknown {
  if (key === undefined) return value;
  const parent = object as Readonly<Record<string, unknown>>;
  return Object.freeze({ ...parent, [key]: withValueAt(parent[key], rest, value) });
}
