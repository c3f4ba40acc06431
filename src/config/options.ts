import { availableParallelism, homedir, tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { z } from "zod";
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
  millisecondsSchema,
  parseByteSize,
  refreshSchema,
  rootPathSchema,
  shareSchema,
  textSchema,
  trustedProxiesSchema,
  urlSchema,
} from "./value-schemas.js";

/** Environment variables, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * One option that is a single value. Its key in `OPTIONS` is its key in the file and in the library. Flag (`cacheDir` →
 * `--cache-dir`) and variable (`ZPUBLISH_CACHE_DIR`) derive from it.
 */
interface OptionSpec<T, Input = unknown, Path extends string | null = string | null> {
  /** Place of the value in the configuration, such as `limits.maxRequests`; null if it has none of its own. */
  readonly path: Path;
  /** Placeholder of the value in the help; null for a switch, which has no value on the command line. */
  readonly placeholder: string | null;
  readonly summary: string;
  /** Checks a JSON value, and converts it to the value in the configuration. */
  readonly schema: z.ZodType<T, Input>;
  /** Converts the text of a flag or variable to the JSON value that `schema` checks. Default: the text is that value. */
  readonly fromText?: (text: string) => unknown;
  readonly defaultValue: (env: Environment) => T;
  /** Default in help and documents, if it depends on the machine or is written in another unit. */
  readonly defaultText?: string;
  /** Whether the value is a path, relative to the configuration file, or to the working directory. */
  readonly isPath?: true;
  /** Whether a running server keeps the value: sockets, threads and files were opened with it. */
  readonly restart?: true;
}

/** Returns a row of the table, with its types from its schema and path. */
function option<T, Input, const Path extends string | null>(
  spec: OptionSpec<T, Input, Path>,
): OptionSpec<T, Input, Path> {
  return spec;
}

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

/** What few options have. */
type Rest = Partial<Pick<OptionSpec<unknown>, "fromText" | "defaultText" | "isPath" | "restart">>;

/** Marks an option that only a restart can change. */
const RESTART = { restart: true } as const;

/** Makes a row whose default is the same everywhere. */
const value = <T, Input, const Path extends string>(
  path: Path,
  placeholder: string,
  summary: string,
  schema: z.ZodType<T, Input>,
  fallback: T,
  rest: Rest = {},
) => option({ path, placeholder, summary, schema, defaultValue: () => fallback, ...rest });

const flag = <const Path extends string | null>(
  path: Path,
  summary: string,
  fallback: boolean,
  rest: Rest = {},
) =>
  option({
    path,
    placeholder: null,
    summary,
    schema: booleanSchema,
    fromText: asBoolean,
    defaultValue: () => fallback,
    ...rest,
  });

const number = <const Path extends string>(
  path: Path,
  placeholder: string,
  summary: string,
  schema: z.ZodType<number, number>,
  fallback: number,
  rest: Rest = {},
) => value(path, placeholder, summary, schema, fallback, { fromText: asNumber, ...rest });

const count = <const Path extends string>(
  path: Path,
  summary: string,
  max: number,
  fallback: number,
  rest: Rest = {},
) => number(path, "count", summary, integerSchema(1, max), fallback, rest);

const seconds = <const Path extends string>(
  path: Path,
  summary: string,
  [min, max]: readonly [min: number, max: number],
  fallback: number,
  rest: Rest = {},
) =>
  number(path, "seconds", summary, millisecondsSchema(min, max), fallback * 1_000, {
    defaultText: String(fallback),
    ...rest,
  });

const size = <const Path extends string>(
  path: Path,
  summary: string,
  [min, max]: readonly [min: number, max: number],
  defaultText: string,
  rest: Rest = {},
) =>
  value(path, "size", summary, byteSizeFrom(min, max), parseByteSize(defaultText)!, { defaultText, ...rest });

const text = <const Path extends string>(
  path: Path,
  placeholder: string,
  summary: string,
  schema = textSchema(`a ${placeholder}`),
  rest: Rest = {},
) =>
  value<string | null, string, Path>(path, placeholder, summary, schema, null, { defaultText: "", ...rest });

const file = <const Path extends string>(path: Path, summary: string, rest: Rest = {}) =>
  text(path, "file", summary, textSchema("a file"), { isPath: true, ...rest });

const KIB = 2 ** 10;
const MIB = 2 ** 20;
const GIB = 2 ** 30;
const DAY_SECONDS = 86_400;

/**
 * Every option that is a single value. Flags, variables, keys of the file, options of the library, help, the part of the
 * configuration that they make, what needs a restart and the table in this folder's `README.md` derive from it.
 * `scripts/deploy/README.md` says what happens at each bound.
 */
export const OPTIONS = {
  host: value(
    "host",
    "host",
    "Address to listen on; 0.0.0.0 or :: for all",
    hostSchema,
    "127.0.0.1",
    RESTART,
  ),
  port: number(
    "port",
    "port",
    "Port to listen on; 0 picks a free one",
    integerSchema(0, 65_535),
    9000,
    RESTART,
  ),
  workers: option({
    path: "workers",
    placeholder: "count",
    summary: "Threads that decode and encode chunks",
    schema: integerSchema(1, 1_024),
    fromText: asNumber,
    defaultValue: () => Math.max(1, availableParallelism() - 1),
    defaultText: "processors − 1, at least 1",
    ...RESTART,
  }),
  processes: count("processes", "Processes that answer requests, all on one port (Linux)", 256, 1, RESTART),
  cache: flag(null, "Keep encoded chunks on disk", true),
  cacheDir: option({
    path: "cache.directory",
    placeholder: "directory",
    summary: "Directory of the chunk cache; several servers may share it",
    schema: textSchema("a directory"),
    defaultValue: defaultCacheDirectory,
    defaultText: "$XDG_CACHE_HOME/zpublish or ~/.cache/zpublish",
    isPath: true,
    ...RESTART,
  }),
  cacheSize: value(
    "cache.maxBytes",
    "size",
    "Bound of the chunk cache: 10GiB, 512MB, or a number of bytes",
    byteSizeSchema,
    10 * GIB,
    { defaultText: "10GiB", ...RESTART },
  ),
  rootPath: value("rootPath", "path", "Path before every route, if a proxy adds one", rootPathSchema, ""),
  refresh: number(
    "refreshSeconds",
    "seconds",
    "Time between refreshes of datasets; 0 for none",
    refreshSchema,
    5,
  ),
  corsOrigin: value(
    "corsOrigin",
    "origins",
    "Origins whose pages may read: * for all, or a list with commas",
    corsOriginSchema,
    "*",
  ),
  cacheControl: value(
    "cacheControl",
    "value",
    "Cache-Control of answers; a dataset in the file may have its own",
    cacheControlSchema,
    "public, max-age=0, must-revalidate",
  ),
  logLevel: value(
    "logLevel",
    "level",
    "silent, fatal, error, warn, info, debug or trace",
    logLevelSchema,
    "info",
  ),
  single: flag("single", "Serve the one dataset's endpoints at the root", false),
  skipInvalid: flag("skipInvalid", "Serve without the datasets that cannot be opened", false),
  overviews: flag(null, "Publish coarser levels of datasets for which the file says nothing else", false),
  title: value(
    "title",
    "text",
    "Title of the pages",
    textSchema("a title of 1 to 200 characters", 200),
    "zpublish",
  ),
  maxConnections: count(
    "limits.maxConnections",
    "Connections at a time; further ones are closed",
    1_000_000,
    10_000,
    RESTART,
  ),
  maxRequests: count("limits.maxRequests", "Requests in flight at a time", 1_000_000, 16_384),
  maxPages: count(
    "limits.maxPages",
    "Requests in flight from which on pages and metadata get 503",
    1_000_000,
    8_192,
  ),
  maxResponseBytes: size(
    "limits.maxResponseBytes",
    "Bodies that are being made or sent; at the bound, chunks wait",
    [MIB, 2 ** 50],
    "1GiB",
  ),
  maxQueuedChunks: count(
    "limits.maxQueuedChunks",
    "Chunks that wait for a worker, or for the disk",
    10_000_000,
    16_384,
    RESTART,
  ),
  maxHeaderSize: size(
    "limits.maxHeaderBytes",
    "Request line and headers that come in pieces, and headers of requests that wait; longer ones get 431",
    [4 * KIB, MIB],
    "16KiB",
    RESTART,
  ),
  maxUrlLength: size(
    "limits.maxUrlBytes",
    "Path and query of a request; longer ones get 414",
    [256, MIB],
    "8KiB",
  ),
  requestTimeout: seconds(
    "limits.requestTimeoutMs",
    "Time until an answer begins; after it 503",
    [1, DAY_SECONDS],
    150,
  ),
  stallTimeout: seconds(
    "limits.stallTimeoutMs",
    "Time after which a client that reads nothing of its answer is dropped",
    [1, DAY_SECONDS],
    60,
  ),
  chunkTimeout: seconds(
    "limits.chunkTimeoutMs",
    "Time of one chunk in a worker; after it 500, and another worker",
    [1, DAY_SECONDS],
    120,
    RESTART,
  ),
  sourceTimeout: seconds(
    "limits.sourceTimeoutMs",
    "Time of one call to a source; after it 500",
    [1, DAY_SECONDS],
    30,
    RESTART,
  ),
  workerMemory: size(
    "limits.workerHeapBytes",
    "JavaScript heap of one worker",
    [64 * MIB, 2 ** 40],
    "512MiB",
    RESTART,
  ),
  maxOpenDatasets: count(
    "limits.maxOpenDatasets",
    "Datasets of collections and plugins that each process has open at a time",
    1_000_000,
    1_000,
  ),
  maxChunkSize: size(
    "limits.maxChunkBytes",
    "Decoded size of a chunk that is not passed through",
    [MIB, 2 * GIB],
    "1GiB",
    RESTART,
  ),
  maxSelection: size(
    "limits.maxSelectionBytes",
    "Values of one selection; larger ones get 413 before anything is read",
    [KIB, 2 ** 50],
    "1GiB",
  ),
  drainDelay: seconds(
    "drain.delayMs",
    "Time to answer as before, but not ready, after TERM or INT",
    [0, 3_600],
    0,
  ),
  drainTimeout: seconds("drain.timeoutMs", "Time to finish requests in flight after that", [0, 3_600], 30),
  trustedProxies: value(
    "access.trustedProxies",
    "addresses",
    "Proxies whose X-Forwarded-… headers are trusted: addresses, networks such as 10.0.0.0/8, loopback, private",
    trustedProxiesSchema,
    [],
  ),
  tlsCert: file("access.tls.certFile", "Certificate chain (PEM) for HTTPS; read again at HUP", RESTART),
  tlsKey: file("access.tls.keyFile", "Private key (PEM) of the certificate", RESTART),
  tokenFile: file(
    "access.tokenFile",
    "File of bearer tokens, one per line, with what each may read; requests without one get 401, except /healthz and /readyz",
  ),
  jwksUrl: text("access.jwt.jwksUrl", "url", "Keys (JWK Set) of an issuer of JWTs", urlSchema),
  jwtIssuer: text("access.jwt.issuer", "text", "Issuer of the JWTs (iss)"),
  jwtAudience: text("access.jwt.audience", "text", "Audience of the JWTs (aud)"),
  jwtClaim: value(
    "access.jwt.claim",
    "name",
    "Claim of the JWTs with the patterns of the datasets that they are for",
    textSchema("the name of a claim"),
    "datasets",
  ),
  signingKeyFile: file(
    "access.signingKeyFile",
    "File with the key, 32 characters or more, that signs cookies and links; for several servers. Default: a new one at each start",
  ),
  metrics: flag("observe.metrics", "Answer /metrics for Prometheus", true, RESTART),
  adminPort: option({
    path: "observe.admin.port",
    placeholder: "port",
    summary:
      "Another port for /metrics, plain HTTP, with /healthz and /readyz as well; 0 picks a free one. Default: the same port",
    schema: integerSchema(0, 65_535),
    fromText: asNumber,
    defaultValue: (): number | null => null,
    defaultText: "",
    ...RESTART,
  }),
  adminHost: value("observe.admin.host", "host", "Address of --admin-port", hostSchema, "127.0.0.1", RESTART),
  accessLog: number(
    "observe.accessLogShare",
    "share",
    "Share of requests that are logged, 0 to 1; above 0, every 5xx is",
    shareSchema,
    0,
  ),
  requestIdHeader: value(
    "observe.requestIdHeader",
    "name",
    "Header with the id that a balancer gave a request",
    headerNameSchema,
    "x-request-id",
  ),
};

/** Options that make lists, or say where others are. Each has its own way into the configuration. */
export const OTHER_OPTIONS = {
  datasets: {
    flag: "[ID=]LOCATION…",
    inFile: "`datasets`",
    summary: "Datasets, or folders of them; those of all places add up. Variable: with commas",
  },
  concat: {
    flag: "--concat <dimension>",
    inFile: "in `datasets`",
    summary: "Make one dataset of the files of each pattern or folder, along a dimension",
  },
  stack: {
    flag: "--stack <dimension>",
    inFile: "in `datasets`",
    summary: "The same along a new dimension, with one step per file",
  },
  plugin: {
    flag: "--plugin <plugin>",
    inFile: "`plugins`",
    summary: "Load a plugin besides the built-in ones: NAME, MODULE or NAME=MODULE",
  },
  noPlugin: { flag: "--no-plugin <name>", inFile: "`plugins`", summary: "Do without a plugin" },
  config: {
    flag: "--config <file>",
    inFile: "",
    summary: "JSON file with any of these options, with datasets and collections",
  },
} as const;

/** All options by their headings in the help, in order. Those under the first heading are the ten that are used most. */
export const OPTION_GROUPS: Readonly<Record<string, readonly (OptionKey | keyof typeof OTHER_OPTIONS)[]>> = {
  "Used most:": [
    ...(["config", "host", "port", "workers", "cacheDir"] as const),
    ...(["cacheSize", "refresh", "rootPath", "corsOrigin", "tokenFile"] as const),
  ],
  "Datasets and pages:": [
    ...(["concat", "stack", "single", "skipInvalid", "overviews", "maxOpenDatasets"] as const),
    ...(["cacheControl", "title", "plugin", "noPlugin"] as const),
  ],
  "Chunks:": ["cache", "processes", "chunkTimeout", "sourceTimeout", "workerMemory", "maxChunkSize"],
  "Limits of requests:": [
    ...(["maxConnections", "maxRequests", "maxPages", "maxResponseBytes", "maxQueuedChunks"] as const),
    ...(["maxHeaderSize", "maxUrlLength", "maxSelection", "requestTimeout", "stallTimeout"] as const),
  ],
  "Proxies, TLS and the end:": ["trustedProxies", "tlsCert", "tlsKey", "drainDelay", "drainTimeout"],
  "Access besides tokens:": ["jwksUrl", "jwtIssuer", "jwtAudience", "jwtClaim", "signingKeyFile"],
  "Log, health and metrics:": [
    ...(["logLevel", "accessLog", "requestIdHeader", "metrics", "adminPort", "adminHost"] as const),
  ],
};

/** Environment variables of {@link OTHER_OPTIONS}; lists are separated by commas. */
export const LIST_VARIABLES = Object.fromEntries(
  Object.keys(OTHER_OPTIONS).map((key) => [key, environmentVariableOf(key)]),
) as { readonly [K in keyof typeof OTHER_OPTIONS]: string };

/** Key of an option, as in the file. */
export type OptionKey = keyof typeof OPTIONS;
/** Checked values of all options. */
export type OptionValues = { -readonly [K in OptionKey]: z.output<(typeof OPTIONS)[K]["schema"]> };
/** Values of options before they are checked, as in the file. */
export type OptionInputs = { readonly [K in OptionKey]?: z.input<(typeof OPTIONS)[K]["schema"]> };

type NameBelow<Path, Prefix extends string> = Path extends `${Prefix}${infer Name}`
  ? Name extends `${string}.${string}`
    ? never
    : Name
  : never;

/** Values of the options whose path is this prefix and a name, by that name. */
type ValuesBelow<Prefix extends string> = {
  readonly [K in OptionKey as NameBelow<(typeof OPTIONS)[K]["path"], Prefix>]: OptionValues[K];
};

/** A part of the configuration that is null unless it is complete. */
type Optional<Part> = { readonly [K in keyof Part]: NonNullable<Part[K]> } | null;

/** The part of the configuration that options make, by their paths. */
export interface OptionConfig extends ValuesBelow<""> {
  readonly cache: Optional<ValuesBelow<"cache.">>;
  readonly limits: ValuesBelow<"limits.">;
  readonly drain: ValuesBelow<"drain.">;
  readonly access: ValuesBelow<"access."> & {
    readonly tls: Optional<ValuesBelow<"access.tls.">>;
    readonly jwt: Optional<ValuesBelow<"access.jwt.">>;
  };
  readonly observe: ValuesBelow<"observe."> & { readonly admin: Optional<ValuesBelow<"observe.admin.">> };
}

/** Parts of the configuration that are null unless an option is given or switched on. */
const OPTIONAL_PARTS: Readonly<Record<string, OptionKey>> = {
  cache: "cache",
  "access.tls": "tlsCert",
  "access.jwt": "jwksUrl",
  "observe.admin": "adminPort",
};

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

/** Derives an option's environment variable: `cacheDir` → `ZPUBLISH_CACHE_DIR`. */
export function environmentVariableOf(key: string): string {
  return `ZPUBLISH_${key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

/** Writes an option's default as the help and the table of options show it. */
export function defaultTextOf(key: OptionKey): string {
  const spec = optionSpec(key);
  return spec.defaultText ?? String(spec.defaultValue({}));
}

/** Chooses the default cache directory. The XDG base directory specification ignores relative values. */
export function defaultCacheDirectory(env: Environment): string {
  const xdg = env.XDG_CACHE_HOME;
  if (xdg !== undefined && isAbsolute(xdg)) return join(xdg, "zpublish");
  const home = env.HOME !== undefined && isAbsolute(env.HOME) ? env.HOME : homedir();
  return isAbsolute(home) ? join(home, ".cache", "zpublish") : join(tmpdir(), "zpublish");
}

/** Converts the values of all options to their part of a configuration. */
export function optionConfig(values: OptionValues): OptionConfig {
  let config: unknown = {};
  for (const key of OPTION_KEYS) {
    const { path } = optionSpec(key);
    if (path !== null) config = withValueAt(config, path, values[key]);
  }
  for (const [part, key] of Object.entries(OPTIONAL_PARTS)) {
    if (values[key] === null || values[key] === false) config = withValueAt(config, part, null);
  }
  return config as OptionConfig;
}

/**
 * Keeps the current values of options that only a restart can change.
 * @returns The next configuration with those values, and the options that it would have changed.
 */
export function keepRestartOnlyOptions<T extends Pick<OptionConfig, "limits" | "access" | "observe">>(
  current: T,
  next: T,
): { readonly config: T; readonly ignored: readonly OptionKey[] } {
  const ignored: OptionKey[] = [];
  let config = next;
  for (const key of OPTION_KEYS) {
    const { path, restart } = optionSpec(key);
    if (path === null || restart === undefined) continue;
    if (isDeepStrictEqual(valueAt(current, path), valueAt(next, path))) continue;
    ignored.push(key);
    const kept = Object.keys(OPTIONAL_PARTS).find((part) => path.startsWith(`${part}.`)) ?? path;
    config = withValueAt(config, kept, valueAt(current, kept)) as T;
  }
  return { config, ignored };
}

/** Returns the value at a path; undefined if a part on the way to it is null. */
function valueAt(object: unknown, path: string): unknown {
  return path.split(".").reduce((value, key) => (value as Record<string, unknown> | null)?.[key], object);
}

/** Copies an object with another value at a path. */
function withValueAt(object: unknown, path: string, value: unknown): unknown {
  const [key, rest] = path.split(/\.(.*)/s);
  const parent = object as Readonly<Record<string, unknown>>;
  const child = rest === undefined ? value : withValueAt(parent?.[key!] ?? {}, rest, value);
  return Object.freeze({ ...parent, [key!]: child });
}
