import type { BenchStore } from "../data/bench-data.js";
import type { Build } from "../harness/harness.js";

/** Something that answers the requests of a row. */
export interface Subject {
  /** As in the table. */
  readonly name: string;
  /** Undefined if it is no zpublish. */
  readonly build?: Build;
  /** Whether it can be started again with nothing in memory or cache; a server that the user runs cannot. */
  readonly isRestartable: boolean;
  /** Whether it says `X-Cache: HIT` once a chunk is cached, so that its cache is to be filled before it is measured. */
  readonly hasChunkCache: boolean;
  /** Starts it in a process of its own. @throws Error where it is not ready. */
  start(site: Site): Promise<RunningSubject>;
}

/** What is asked for, and how. */
export interface Workload {
  readonly store: BenchStore;
  readonly paths: readonly string[];
  /**
   * What the answers have to be: the stored files, chunks that decode to the field's values, documents that say what is
   * stored, or 304 for the ETag.
   */
  readonly answers: "stored" | "transcoded" | "document" | "not-modified";
  /** Cold: a fresh server each round, which is asked for every path once. Warm: one server, for a time. */
  readonly isCold: boolean;
  /** Seconds for which a fresh server is asked for the paths in rotation. Default: for every path once. */
  readonly coldSeconds?: number;
  readonly connections: number;
  /** How zpublish serves the store; see {@link Site.serving}. */
  readonly serving: Readonly<Record<string, unknown>>;
  /** Whether zpublish has no cache. Default false. */
  readonly withoutCache?: boolean;
}

/** What every subject answers at the same paths: a store at `/datasets/{id}/zarr/`, and documents. */
export interface Site {
  readonly store: BenchStore;
  /** Documents that are no file of the store, by path; zpublish makes its own. */
  readonly documents: ReadonlyMap<string, Buffer>;
  /** Paths that will be asked for, so that what answers from memory knows what to load. */
  readonly paths: readonly string[];
  /** An empty folder for this start, removed afterwards by the caller. */
  readonly scratch: string;
  /** What zpublish sends with its answer to the first path, by name, but for what depends on the body or the server. */
  readonly headers: Readonly<Record<string, string>>;
  /** How zpublish serves the store, as in its configuration file: empty for as stored. */
  readonly serving: Readonly<Record<string, unknown>>;
  /** Whether zpublish has no cache. Default false. */
  readonly withoutCache?: boolean | undefined;
}

export interface RunningSubject {
  /** Without a slash at its end. */
  readonly baseUrl: string;
  /** Undefined where it is not ours. */
  readonly pid: number | undefined;
  stop(): Promise<void>;
}

/** Path of a key of the store. */
export function storePath(store: BenchStore, key: string): string {
  return `/datasets/${store.id}/zarr/${key}`;
}

/** The body of a path that is a document or a stored file. */
export function siteFile({ store, documents }: Site, path: string): Buffer | { readonly file: string } {
  const document = documents.get(path);
  if (document !== undefined) return document;
  const prefix = storePath(store, "");
  if (!path.startsWith(prefix))
    throw new Error(`expected a document or a path below ${prefix}, received ${path}`);
  return { file: `${store.directory}/${path.slice(prefix.length)}` };
}

/**
 * A server that the user runs: it has to serve the benchmark's stores under their ids at `/datasets/{id}/zarr/`.
 * @throws Error for what is no http URL.
 */
export function createPeer(url: string): Subject {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed?.protocol !== "http:") throw new Error(`--peer: expected an http:// URL, received ${url}`);
  const baseUrl = `${parsed.origin}${parsed.pathname}`.replace(/\/+$/, "");
  return {
    name: `peer ${baseUrl}`,
    isRestartable: false,
    hasChunkCache: false,
    start: async () => ({ baseUrl, pid: undefined, stop: async () => {} }),
  };
}
