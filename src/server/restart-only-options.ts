import { isDeepStrictEqual } from "node:util";
import type { Config } from "../config/config.js";
import type { OptionKey } from "../config/options.js";

/** One option, or those of the parts of what stands there as a whole, or not at all. */
type Said = OptionKey | Readonly<Record<string, OptionKey>>;

/** What sockets, threads and files were opened with: where it is said, and where it stands in a configuration. */
const FIXED: readonly (readonly [Said, readonly string[]])[] = [
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
 * What of another configuration can take effect without a restart.
 * @returns That, with the rest as it is now; and the options that were to be changed and cannot be.
 */
export function keepRestartOnlyOptions<T extends Options>(
  current: T,
  next: T,
): { readonly config: T; readonly ignored: readonly OptionKey[] } {
  const ignored: OptionKey[] = [];
  let config = next;
  for (const [said, path] of FIXED) {
    const value = valueAt(current, path);
    const changed = changedOptions(said, value, valueAt(next, path));
    if (changed.length === 0) continue;
    ignored.push(...changed);
    config = withValueAt(config, path, value) as T;
  }
  return { config, ignored };
}

function changedOptions(said: Said, value: unknown, next: unknown): readonly OptionKey[] {
  if (isDeepStrictEqual(value, next)) return [];
  if (typeof said === "string") return [said];
  // What is there on one side only has no parts to compare.
  if (value === null || next === null) return Object.values(said);
  return Object.entries(said)
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
