import { z } from "zod";
import type { CollectionConfig, DatasetConfig, OverviewsConfig, PluginConfig } from "../config/config.js";
import { problemOfPattern, readCollection } from "../config/config-file.js";
import {
  checkStore,
  createEncodingConfig,
  createServedConfig,
  datasetShape,
  joinConfigOf,
  problemOfCollectionName,
  problemOfDatasetId,
} from "../config/dataset-schema.js";
import { ACCESS_OPTIONS, LIMIT_OPTIONS, OBSERVE_OPTIONS, OPTIONS } from "../config/options.js";
import {
  byteSizeSchema,
  configError,
  formatPath,
  type Problem,
  problemsOf,
  resolveLocation,
  strictObject,
  textSchema,
} from "../config/value-schemas.js";
import { type ServableTree, sourceOf } from "../dataset/in-memory-tree.js";
import { LOG_LEVELS, type Log, type LogLevel } from "../observe/log.js";
import type { Plugin, PluginDatasets, ProvidedDataset } from "../plugins/plugin.js";
import type { StoreSettings } from "../stores/byte-store.js";

/**
 * Limits, draining, access and observation of a server, with names, rules and defaults of the command line. Sizes are
 * bytes, or texts such as `512MiB`. Paths are relative to the working directory.
 */
interface RuntimeOptions {
  /** Connections at a time; further ones are closed. Default 10,000. */
  readonly maxConnections?: number;
  /** Requests in flight at a time. Default 16,384. */
  readonly maxRequests?: number;
  /** Requests in flight from which on pages and metadata get 503. Default 8,192. */
  readonly maxPages?: number;
  /** Bodies that are being made or sent; at the bound, chunks wait. Default 1 GiB. */
  readonly maxResponseBytes?: number | string;
  /** Chunks that wait for a worker, or for the disk. Default 16,384. */
  readonly maxQueuedChunks?: number;
  /** Request line and headers that come in pieces; longer ones get 431. Default 16 KiB. */
  readonly maxHeaderSize?: number | string;
  /** Path and query of a request. Default 8 KiB. */
  readonly maxUrlLength?: number | string;
  /** Seconds until an answer begins; after it 503. Default 150. */
  readonly requestTimeout?: number;
  /** Seconds after which a client that reads nothing of its answer is dropped. Default 60. */
  readonly stallTimeout?: number;
  /** Seconds of one chunk in a worker; after it 500, and another worker. Default 120. */
  readonly chunkTimeout?: number;
  /** Seconds of one call to a source; after it 500. Default 30. */
  readonly sourceTimeout?: number;
  /** JavaScript heap of one worker. Default 512 MiB. */
  readonly workerMemory?: number | string;
  /** Datasets of collections and plugins that are open at a time. Default 1,000. */
  readonly maxOpenDatasets?: number;
  /** Decoded size of a chunk that is not passed through. Default 1 GiB. */
  readonly maxChunkSize?: number | string;
  /** Seconds in which the server, once `close()` is called, answers as before but is not ready. Default 0. */
  readonly drainDelay?: number;
  /** Seconds for requests in flight after that. Default 30. */
  readonly drainTimeout?: number;
  /** Proxies whose X-Forwarded-… headers are trusted: addresses, networks, `loopback`, `private`, with commas. Default: none. */
  readonly trustedProxies?: string;
  /** Certificate chain (PEM) for HTTPS, with `tlsKey`. Default: plain HTTP. */
  readonly tlsCert?: string;
  /** Private key (PEM) of the certificate. */
  readonly tlsKey?: string;
  /** File of bearer tokens, one per line; requests without one get 401. Default: no token is needed. */
  readonly tokenFile?: string;
  /** True if the server answers `/metrics` for Prometheus. Default true. */
  readonly metrics?: boolean;
  /** Another port for `/healthz`, `/readyz` and `/metrics`; 0 picks a free one. Default: the same port. */
  readonly adminPort?: number;
  /** Address of that port. Default `127.0.0.1`. */
  readonly adminHost?: string;
  /** Share of requests that are logged, 0 to 1; above 0, every 5xx is. Default 0. */
  readonly accessLog?: number;
  /** Header with the id that a balancer gave a request. Default `x-request-id`. */
  readonly requestIdHeader?: string;
}

const SPECS = { ...LIMIT_OPTIONS, ...ACCESS_OPTIONS, ...OBSERVE_OPTIONS };

type RuntimeShape = {
  readonly [K in keyof typeof SPECS & keyof RuntimeOptions]: z.ZodOptional<(typeof SPECS)[K]["schema"]>;
};

/** The schemas of {@link RuntimeOptions}: those of flags, variables and files. */
export const runtimeShape = Object.fromEntries(
  Object.entries(SPECS).map(([key, { schema }]) => [key, (schema as z.ZodType).optional()]),
) as RuntimeShape;

/** A dataset and its encoding; omitted parts of an encoding stay as stored. */
export interface DatasetOptions
  extends Omit<ProvidedDataset, "location" | "tree" | "references" | "overviews"> {
  /** A location, or a tree that was opened or built. */
  readonly source: string | ServableTree;
  /** URLs and paths below which references may lead. Default: the folder of the reference file. */
  readonly references?: { readonly allow: readonly string[] };
  /** Coarser levels below `overviews/`; true for all defaults: levels until a plane is one chunk, made by means. Default false. */
  readonly overviews?: boolean | Partial<OverviewsConfig>;
  /** Dimension along which the files of `source`, a pattern or a folder, are one dataset. */
  readonly concat?: string;
  /**
   * New dimension with one step for each file of `source`. `coordinate` is a regular expression with one group, whose text in the path
   * of each file is the step's coordinate.
   */
  readonly stack?: string | { readonly dimension: string; readonly coordinate?: string };
  /** `last`: of steps that come twice, those of the last file are served. Default: they are refused. */
  readonly overlap?: "last";
}

/** A folder or prefix below which datasets come and go, and what holds for all of them. */
export interface CollectionOptions
  extends Omit<DatasetOptions, "source" | "variables" | "concat" | "stack" | "overlap"> {
  /** A folder, or `s3://bucket/prefix/`. */
  readonly root: string;
  /** Patterns of paths below the root. Default: files and stores of all known formats. */
  readonly include?: readonly string[];
  /** Patterns of paths that are left out. */
  readonly exclude?: readonly string[];
  /** True if the root is a Zarr hierarchy whose groups with arrays are datasets of their own. */
  readonly groups?: boolean;
}

/** Options of `createServer`. */
export interface ServerOptions extends RuntimeOptions {
  /** Locations, trees, or either with options, by dataset id. */
  readonly datasets: Readonly<Record<string, string | ServableTree | DatasetOptions>>;
  /** Folders or prefixes of datasets, or either with options, by the name with which ids of their datasets begin. */
  readonly collections?: Readonly<Record<string, string | CollectionOptions>>;
  /** Datasets that come and go, by the name with which their ids begin, as plugins publish them. */
  readonly providers?: Readonly<Record<string, PluginDatasets>>;
  /** How remote places are reached, by any name, as in the configuration file. */
  readonly stores?: Readonly<Record<string, Omit<StoreSettings, "name">>>;
  /** Names of built-in plugins, modules to load, or plugins. Default: the four built-in ones. */
  readonly plugins?: readonly (string | PluginConfig | Plugin)[];
  /** Default `127.0.0.1`. */
  readonly host?: string;
  /** Default 9000; 0 picks a free one. */
  readonly port?: number;
  /** Worker threads. Default: one less than the machine has processors, at least one. */
  readonly workers?: number;
  /** Directory and bytes (default 10 GiB) of the chunk cache. Default: no cache. */
  readonly cache?: { readonly directory: string; readonly maxBytes?: number };
  /** Path before every route, `/prefix`. Default: none. */
  readonly rootPath?: string;
  /** Seconds between refreshes of datasets; 0 for none. Default 5. */
  readonly refresh?: number;
  /** Origins whose pages may read: `*`, or a list with commas. Default `*`. */
  readonly corsOrigin?: string;
  /** `Cache-Control` of datasets without their own. Default `public, max-age=0, must-revalidate`. */
  readonly cacheControl?: string;
  readonly title?: string;
  /** True if a dataset that cannot be opened is a warning in the log instead of an error. Default false. */
  readonly skipInvalid?: boolean;
  /** True if the endpoints of the one dataset are at the root instead of below `/datasets/{id}`. Default false. */
  readonly single?: boolean;
  /** A level of the log on standard error, or a pino logger. Default `warn`. */
  readonly log?: LogLevel | Log;
}

/** Checked options, with the configuration of every dataset and collection, in order. */
export type CheckedServerOptions = Omit<
  z.output<typeof serverSchema>,
  "datasets" | "collections" | "stores"
> & {
  readonly datasets: readonly (Omit<DatasetConfig, "location"> & {
    readonly source: string | ServableTree;
  })[];
  readonly collections: readonly CollectionConfig[];
  readonly stores: readonly StoreSettings[];
};

const expectedSource = "expected a location, or a tree of openDataTree() or createDataTree()";

const sourceSchema = z.custom<string | ServableTree>(
  (value) => (typeof value === "string" ? value !== "" : sourceOf(value as ServableTree) !== undefined),
  { error: expectedSource },
);

const datasetSchema = strictObject("a location, a tree, or an object with one as its source", {
  source: sourceSchema,
  ...datasetShape,
});

const serverSchema = strictObject("an object of options", {
  datasets: z.record(z.string(), z.unknown(), { error: "expected an object of datasets by id" }),
  collections: z
    .record(z.string(), z.unknown(), { error: "expected an object of collections by name" })
    .optional(),
  providers: z
    .record(
      z.string(),
      z.custom<PluginDatasets>((value) => typeof value === "object" && value !== null, {
        error: "expected an object with list and open",
      }),
      { error: "expected an object of providers by name" },
    )
    .optional(),
  stores: z.record(z.string(), z.unknown(), { error: "expected an object of stores by name" }).optional(),
  plugins: z
    .array(
      z.custom<string | PluginConfig | Plugin>(
        (value) => (typeof value === "string" ? value !== "" : typeof value === "object" && value !== null),
        { error: "expected a plugin, or the name of one" },
      ),
      { error: "expected an array of plugins" },
    )
    .optional(),
  host: OPTIONS.host.schema.optional(),
  port: OPTIONS.port.schema.optional(),
  workers: OPTIONS.workers.schema.optional(),
  cache: strictObject("an object with a directory", {
    directory: textSchema("a directory"),
    maxBytes: byteSizeSchema.optional(),
  }).optional(),
  rootPath: OPTIONS.rootPath.schema.optional(),
  refresh: OPTIONS.refresh.schema.optional(),
  corsOrigin: OPTIONS.corsOrigin.schema.optional(),
  cacheControl: OPTIONS.cacheControl.schema.optional(),
  title: OPTIONS.title.schema.optional(),
  skipInvalid: OPTIONS.skipInvalid.schema.optional(),
  single: OPTIONS.single.schema.optional(),
  ...runtimeShape,
  log: z
    .custom<LogLevel | Log>(
      (value) =>
        (LOG_LEVELS as readonly unknown[]).includes(value) ||
        (typeof value === "object" && typeof (value as Log | null)?.info === "function"),
      { error: `expected one of ${LOG_LEVELS.join(", ")}, or a pino logger` },
    )
    .optional(),
});

/**
 * Checks the options of `createServer` by the rules of flags, variables and files.
 * @throws ZpublishError `invalid-config`; each line of the message is a problem.
 */
export function checkServerOptions(options: unknown): CheckedServerOptions {
  const result = serverSchema.safeParse(options);
  const problems = result.success ? [] : problemsOf(result.error, options, PLACE);
  const said = (options as Partial<ServerOptions> | null | undefined)?.datasets;
  const entries = typeof said === "object" && said !== null ? Object.entries(said) : [];
  const { tlsCert, tlsKey } = result.data ?? {};
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    const [given, missing] = tlsKey === undefined ? ["tlsCert", "tlsKey"] : ["tlsKey", "tlsCert"];
    problems.push(`${PLACE}: ${given}: expected ${missing} with it, received none`);
  }
  const datasets = entries.flatMap(([id, dataset]) => checkDataset(id, dataset, problems));
  const context = { place: PLACE, directory: process.cwd(), problems };
  const collections = Object.entries(result.data?.collections ?? {}).flatMap(([name, collection]) =>
    readCollection(name, collection, context),
  );
  for (const name of Object.keys(result.data?.providers ?? {})) {
    const problem = name === "" ? "expected a non-empty name" : problemOfCollectionName(name);
    if (problem !== undefined) problems.push(`${PLACE}: ${formatPath(["providers", name])}: ${problem}`);
  }
  const stores = Object.entries(result.data?.stores ?? {}).flatMap(([name, store]) =>
    checkStore(name, store, PLACE, problems),
  );
  if (!result.success || problems.length > 0) throw configError(problems);
  return { ...result.data, datasets, collections, stores };
}

const PLACE = "createServer";

function checkDataset(
  id: string,
  said: unknown,
  problems: Problem[],
): CheckedServerOptions["datasets"][number][] {
  const path = ["datasets", id];
  const problem = problemOfDatasetId(id);
  if (problem !== undefined) problems.push(`${PLACE}: dataset '${id}': ${problem}`);
  const isShort = typeof said === "string" || (typeof said === "object" && said !== null && "root" in said);
  const long = isShort ? { source: said } : said;
  const result = datasetSchema.safeParse(long);
  if (!result.success) {
    problems.push(...problemsOf(result.error, long, PLACE, path));
    return [];
  }
  const { source, variables = {}, ...keys } = result.data;
  const join = joinConfigOf(keys, (problem) => problems.push(`${PLACE}: ${formatPath(path)}: ${problem}`));
  if (join !== undefined && typeof source !== "string")
    problems.push(
      `${PLACE}: ${formatPath([...path, "source"])}: expected a pattern or a folder to join, received a tree`,
    );
  const location = typeof source === "string" && resolveLocation(source, process.cwd());
  const lone = join === undefined && location ? problemOfPattern(location) : undefined;
  if (lone !== undefined) problems.push(`${PLACE}: ${formatPath(path)}: ${lone}`);
  return [
    {
      id,
      source,
      ...createServedConfig(keys, process.cwd()),
      variables: Object.fromEntries(
        Object.entries(variables).map(([variable, asked]) => [variable, createEncodingConfig(asked)]),
      ),
      ...(join === undefined ? {} : { join }),
    },
  ];
}
