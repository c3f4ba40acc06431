import { availableParallelism, homedir, tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import type { z } from "zod";
import type { Config } from "./config.js";
import {
  booleanSchema,
  byteSizeFrom,
  byteSizeSchema,
  cacheControlSchema,
  corsOriginSchema,
  headerNameSchema,
  hostSchema,
  integerSchema,
  logLevelSchema,
  NAMED_NETWORKS,
  refreshSchema,
  rootPathSchema,
  secondsSchema,
  shareSchema,
  textSchema,
  trustedProxiesSchema,
} from "./value-schemas.js";

/** Environment variables, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * One option that is a single value. Its key in `OPTIONS` is its key in the file. Flag (`cacheDir` → `--cache-dir`) and
 * variable (`ZPUBLISH_CACHE_DIR`) derive from it.
 */
export interface OptionSpec<T> {
  /** Placeholder of the value in the help; null for a switch, which has no value on the command line. */
  readonly placeholder: string | null;
  readonly summary: string;
  readonly schema: z.ZodType<T>;
  /** Converts the text of a flag or variable to the JSON value that `schema` checks. */
  readonly fromText: (text: string) => unknown;
  readonly defaultValue: (env: Environment) => T;
  /** Default in help and documents, if it depends on the machine. */
  readonly defaultText?: string;
  /** Whether the value is a path, relative to the configuration file, or to the working directory. */
  readonly isPath?: true;
}

/** Returns a row of the table, with its type from its schema. */
function option<T>(spec: OptionSpec<T>): OptionSpec<T> {
  return spec;
}

/** Leaves a text as it is. */
const asText = (text: string): unknown => text;

/** Converts a plain number. Another text stays as it is, for the schema's message. */
const asNumber = (text: string): unknown => (/^[+-]?\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : text);

const BOOLEAN_WORDS: Readonly<Record<string, boolean>> = {
  true: true,
  1: true,
  yes: true,
  on: true,
  false: false,
  0: false,
  no: false,
  off: false,
};

/** Converts `true`, `1`, `yes`, `on` and their opposites. Another text stays as it is, for the schema's message. */
const asBoolean = (text: string): unknown => BOOLEAN_WORDS[text.trim().toLowerCase()] ?? text;

/** Options that say which clients may read, and which proxies are trusted. */
export const ACCESS_OPTIONS = {
  trustedProxies: option({
    placeholder: "addresses",
    summary:
      "Proxies whose X-Forwarded-… headers are trusted: addresses, networks such as 10.0.0.0/8, loopback, private",
    schema: trustedProxiesSchema,
    fromText: asText,
    defaultValue: () => "",
  }),
  tlsCert: option({
    placeholder: "file",
    summary: "Certificate chain (PEM) for HTTPS; read again at HUP",
    schema: textSchema("a file"),
    fromText: asText,
    defaultValue: (): string | null => null,
    defaultText: "",
    isPath: true,
  }),
  tlsKey: option({
    placeholder: "file",
    summary: "Private key (PEM) of the certificate",
    schema: textSchema("a file"),
    fromText: asText,
    defaultValue: (): string | null => null,
    defaultText: "",
    isPath: true,
  }),
  tokenFile: option({
    placeholder: "file",
    summary: "File of bearer tokens, one per line; requests without one get 401, except /healthz and /readyz",
    schema: textSchema("a file"),
    fromText: asText,
    defaultValue: (): string | null => null,
    defaultText: "",
    isPath: true,
  }),
};

const count = (summary: string, max: number, defaultCount: number) =>
  option({
    placeholder: "count",
    summary,
    schema: integerSchema(1, max),
    fromText: asNumber,
    defaultValue: () => defaultCount,
  });

const seconds = (summary: string, min: number, max: number, defaultSeconds: number) =>
  option({
    placeholder: "seconds",
    summary,
    schema: secondsSchema(min, max),
    fromText: asNumber,
    defaultValue: () => defaultSeconds,
  });

const size = (
  summary: string,
  minBytes: number,
  maxBytes: number,
  defaultBytes: number,
  defaultText: string,
) =>
  option({
    placeholder: "size",
    summary,
    schema: byteSizeFrom(minBytes, maxBytes),
    fromText: asText,
    defaultValue: () => defaultBytes,
    defaultText,
  });

const KIB = 2 ** 10;
const MIB = 2 ** 20;
const GIB = 2 ** 30;

/** Options about bounds and draining. `scripts/deploy/README.md` says what happens at each bound. */
export const LIMIT_OPTIONS = {
  maxConnections: count("Connections at a time; further ones are closed", 1_000_000, 10_000),
  maxRequests: count("Requests in flight at a time", 1_000_000, 16_384),
  maxPages: count("Requests in flight from which on pages and metadata get 503", 1_000_000, 8_192),
  maxResponseBytes: size(
    "Bodies that are being made or sent; at the bound, chunks wait",
    MIB,
    2 ** 50,
    GIB,
    "1GiB",
  ),
  maxQueuedChunks: count("Chunks that wait for a worker, or for the disk", 10_000_000, 16_384),
  maxHeaderSize: size(
    "Request line and headers that come in pieces, and headers of requests that wait; longer ones get 431",
    4 * KIB,
    MIB,
    16 * KIB,
    "16KiB",
  ),
  maxUrlLength: size("Path and query of a request; longer ones get 414", 256, MIB, 8 * KIB, "8KiB"),
  requestTimeout: seconds("Time until an answer begins; after it 503", 1, 86_400, 150),
  stallTimeout: seconds(
    "Time after which a client that reads nothing of its answer is dropped",
    1,
    86_400,
    60,
  ),
  chunkTimeout: seconds("Time of one chunk in a worker; after it 500, and another worker", 1, 86_400, 120),
  sourceTimeout: seconds("Time of one call to a source; after it 500", 1, 86_400, 30),
  workerMemory: size("JavaScript heap of one worker", 64 * MIB, 2 ** 40, 512 * MIB, "512MiB"),
  maxOpenDatasets: count(
    "Datasets of collections and plugins that each process has open at a time",
    1_000_000,
    1_000,
  ),
  maxChunkSize: size("Decoded size of a chunk that is not passed through", MIB, 2 * GIB, GIB, "1GiB"),
  drainDelay: seconds("Time to answer as before, but not ready, after TERM or INT", 0, 3_600, 0),
  drainTimeout: seconds("Time to finish requests in flight after that", 0, 3_600, 30),
};

/** Options about metrics, the admin port and logging of requests. */
export const OBSERVE_OPTIONS = {
  metrics: option({
    placeholder: null,
    summary: "Answer /metrics for Prometheus",
    schema: booleanSchema,
    fromText: asBoolean,
    defaultValue: () => true,
  }),
  adminPort: option({
    placeholder: "port",
    summary:
      "Another port for /healthz, /readyz and /metrics, plain HTTP; 0 picks a free one. Default: the same port",
    schema: integerSchema(0, 65_535),
    fromText: asNumber,
    defaultValue: (): number | null => null,
    defaultText: "",
  }),
  adminHost: option({
    placeholder: "host",
    summary: "Address of --admin-port",
    schema: hostSchema,
    fromText: asText,
    defaultValue: () => "127.0.0.1",
  }),
  accessLog: option({
    placeholder: "share",
    summary: "Share of requests that are logged, 0 to 1; above 0, every 5xx is",
    schema: shareSchema,
    fromText: asNumber,
    defaultValue: () => 0,
  }),
  requestIdHeader: option({
    placeholder: "name",
    summary: "Header with the id that a balancer gave a request",
    schema: headerNameSchema,
    fromText: asText,
    defaultValue: () => "x-request-id",
  }),
};

/**
 * Every option that is a single value. Flags, variables, keys of the file, help and the table in this folder's `README.md`
 * derive from it.
 */
export const OPTIONS = {
  host: option({
    placeholder: "host",
    summary: "Address to listen on; 0.0.0.0 or :: for all",
    schema: hostSchema,
    fromText: asText,
    defaultValue: () => "127.0.0.1",
  }),
  port: option({
    placeholder: "port",
    summary: "Port to listen on; 0 picks a free one",
    schema: integerSchema(0, 65_535),
    fromText: asNumber,
    defaultValue: () => 9000,
  }),
  workers: option({
    placeholder: "count",
    summary: "Threads that decode and encode chunks",
    schema: integerSchema(1, 1_024),
    fromText: asNumber,
    defaultValue: () => Math.max(1, availableParallelism() - 1),
    defaultText: "processors − 1, at least 1",
  }),
  processes: option({
    placeholder: "count",
    summary: "Processes that answer requests, all on one port (Linux)",
    schema: integerSchema(1, 256),
    fromText: asNumber,
    defaultValue: () => 1,
  }),
  cache: option({
    placeholder: null,
    summary: "Keep encoded chunks on disk",
    schema: booleanSchema,
    fromText: asBoolean,
    defaultValue: () => true,
  }),
  cacheDir: option({
    placeholder: "directory",
    summary: "Directory of the chunk cache; several servers may share it",
    schema: textSchema("a directory"),
    fromText: asText,
    defaultValue: defaultCacheDirectory,
    defaultText: "$XDG_CACHE_HOME/zpublish or ~/.cache/zpublish",
    isPath: true,
  }),
  cacheSize: option({
    placeholder: "size",
    summary: "Bound of the chunk cache: 10GiB, 512MB, or a number of bytes",
    schema: byteSizeSchema,
    fromText: asText,
    defaultValue: () => 10 * 2 ** 30,
    defaultText: "10GiB",
  }),
  rootPath: option({
    placeholder: "path",
    summary: "Path before every route, if a proxy adds one",
    schema: rootPathSchema,
    fromText: asText,
    defaultValue: () => "",
  }),
  refresh: option({
    placeholder: "seconds",
    summary: "Time between refreshes of datasets; 0 for none",
    schema: refreshSchema,
    fromText: asNumber,
    defaultValue: () => 5,
  }),
  corsOrigin: option({
    placeholder: "origins",
    summary: "Origins whose pages may read: * for all, or a list with commas",
    schema: corsOriginSchema,
    fromText: asText,
    defaultValue: () => "*",
  }),
  cacheControl: option({
    placeholder: "value",
    summary: "Cache-Control of answers; a dataset in the file may have its own",
    schema: cacheControlSchema,
    fromText: asText,
    defaultValue: () => "public, max-age=0, must-revalidate",
  }),
  logLevel: option({
    placeholder: "level",
    summary: "silent, fatal, error, warn, info, debug or trace",
    schema: logLevelSchema,
    fromText: asText,
    defaultValue: () => "info" as const,
  }),
  single: option({
    placeholder: null,
    summary: "Serve the one dataset's endpoints at the root",
    schema: booleanSchema,
    fromText: asBoolean,
    defaultValue: () => false,
  }),
  skipInvalid: option({
    placeholder: null,
    summary: "Serve without the datasets that cannot be opened",
    schema: booleanSchema,
    fromText: asBoolean,
    defaultValue: () => false,
  }),
  overviews: option({
    placeholder: null,
    summary: "Publish coarser levels of datasets for which the file says nothing else",
    schema: booleanSchema,
    fromText: asBoolean,
    defaultValue: () => false,
  }),
  title: option({
    placeholder: "text",
    summary: "Title of the pages",
    schema: textSchema("a title of 1 to 200 characters", 200),
    fromText: asText,
    defaultValue: () => "zpublish",
  }),
  ...LIMIT_OPTIONS,
  ...ACCESS_OPTIONS,
  ...OBSERVE_OPTIONS,
};

/** Key of an option, as in the file. */
export type OptionKey = keyof typeof OPTIONS;
/** Checked values of all options. */
export type OptionValues = { -readonly [K in OptionKey]: z.output<(typeof OPTIONS)[K]["schema"]> };

/** All keys, in the order of the help. */
export const OPTION_KEYS = Object.keys(OPTIONS) as readonly OptionKey[];

/** Computes the defaults of all options. */
export function defaultValues(env: Environment): OptionValues {
  return Object.fromEntries(
    OPTION_KEYS.map((key) => [key, optionSpec(key).defaultValue(env)]),
  ) as OptionValues;
}

/** Looks up an option, without the type of its value. */
export function optionSpec(key: OptionKey): OptionSpec<unknown> {
  return OPTIONS[key] as OptionSpec<unknown>;
}

/** Derives an option's flag: `cacheDir` → `--cache-dir`. */
export function flagOf(key: string): string {
  return `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** Derives an option's variable: `cacheDir` → `ZPUBLISH_CACHE_DIR`. */
export function variableOf(key: string): string {
  return `ZPUBLISH_${key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

/** Writes an option's default as the help and the table of options show it. */
export function defaultTextOf(key: OptionKey): string {
  const spec = optionSpec(key);
  return spec.defaultText ?? String(spec.defaultValue({}));
}

/** Chooses the default cache directory. The XDG base directory specification ignores relative values. */
function defaultCacheDirectory(env: Environment): string {
  const xdg = env.XDG_CACHE_HOME;
  if (xdg !== undefined && isAbsolute(xdg)) return join(xdg, "zpublish");
  const home = env.HOME !== undefined && isAbsolute(env.HOME) ? env.HOME : homedir();
  return isAbsolute(home) ? join(home, ".cache", "zpublish") : join(tmpdir(), "zpublish");
}

/** Converts the values of all options to a configuration. */
export function optionConfig(values: OptionValues): Omit<Config, "datasets" | "collections" | "plugins"> {
  return {
    host: values.host,
    port: values.port,
    workers: values.workers,
    processes: values.processes,
    cache: values.cache ? { directory: values.cacheDir, maxBytes: values.cacheSize } : null,
    rootPath: values.rootPath,
    refreshSeconds: values.refresh,
    corsOrigin: values.corsOrigin,
    cacheControl: values.cacheControl,
    logLevel: values.logLevel,
    skipInvalid: values.skipInvalid,
    single: values.single,
    title: values.title,
    limits: {
      maxConnections: values.maxConnections,
      maxRequests: values.maxRequests,
      maxPages: values.maxPages,
      maxResponseBytes: values.maxResponseBytes,
      maxQueuedChunks: values.maxQueuedChunks,
      maxHeaderBytes: values.maxHeaderSize,
      maxUrlBytes: values.maxUrlLength,
      requestTimeoutMs: values.requestTimeout * 1000,
      stallTimeoutMs: values.stallTimeout * 1000,
      chunkTimeoutMs: values.chunkTimeout * 1000,
      sourceTimeoutMs: values.sourceTimeout * 1000,
      workerHeapBytes: values.workerMemory,
      maxOpenDatasets: values.maxOpenDatasets,
      maxChunkBytes: values.maxChunkSize,
    },
    drain: { delayMs: values.drainDelay * 1000, timeoutMs: values.drainTimeout * 1000 },
    access: {
      trustedProxies: networksOf(values.trustedProxies),
      tls:
        values.tlsCert === null || values.tlsKey === null
          ? null
          : { certFile: values.tlsCert, keyFile: values.tlsKey },
      tokenFile: values.tokenFile,
    },
    observe: {
      metrics: values.metrics,
      admin: values.adminPort === null ? null : { host: values.adminHost, port: values.adminPort },
      accessLogShare: values.accessLog,
      requestIdHeader: values.requestIdHeader,
    },
  };
}

function networksOf(text: string): readonly string[] {
  if (text === "") return [];
  return text.split(", ").flatMap((part) => NAMED_NETWORKS[part] ?? [part]);
}
