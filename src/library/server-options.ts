import { z } from "zod";
import type { CollectionConfig, DatasetConfig, OverviewsConfig, PluginConfig } from "../config/config.js";
import { datasetKeysConfig, readCollection } from "../config/config-file.js";
import {
  checkStore,
  datasetShape,
  problemOfCollectionName,
  problemOfDatasetId,
} from "../config/dataset-schema.js";
import { OPTION_KEYS, type OPTIONS, type OptionInputs, optionSpec } from "../config/options.js";
import { incompleteOptions } from "../config/resolve-config.js";
import {
  byteSizeSchema,
  configError,
  formatPath,
  namedSchema,
  problemsOf,
  resolveLocation,
  strictObject,
  textSchema,
} from "../config/value-schemas.js";
import { type ServableTree, sourceOf } from "../dataset/in-memory-tree.js";
import { LOG_LEVELS, type Log, type LogLevel } from "../observe/log.js";
import type { Plugin, PluginDatasets, ProvidedDataset } from "../plugins/plugin.js";
import type { StoreSettings } from "../stores/byte-store.js";

/** Options of the command line that a program gives in another form, or cannot give. */
const NOT_IN_LIBRARY = ["processes", "cache", "cacheDir", "cacheSize", "logLevel", "overviews"] as const;

/** Options that are single values, as {@link OPTIONS} describes them. Sizes are bytes, or texts such as `512MiB`. */
type SingleOptions = Omit<OptionInputs, (typeof NOT_IN_LIBRARY)[number]>;

type SingleShape = {
  readonly [K in keyof SingleOptions]-?: z.ZodOptional<(typeof OPTIONS)[K]["schema"]>;
};

/** Schemas of {@link SingleOptions}, those of flags, variables and files. */
const singleShape = Object.fromEntries(
  OPTION_KEYS.filter((key) => !(NOT_IN_LIBRARY as readonly string[]).includes(key)).map((key) => [
    key,
    optionSpec(key).schema.optional(),
  ]),
) as SingleShape;

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
}

/** A folder or prefix below which datasets come and go, and what holds for all of them. */
export interface CollectionOptions
  extends Omit<DatasetOptions, "source" | "variables" | "concat" | "stack">,
    Pick<CollectionConfig, "include" | "exclude" | "groups"> {
  /** A folder, or `s3://bucket/prefix/`. */
  readonly root: string;
}

/**
 * Options of `createServer`. Those of the command line have its names, rules and defaults, in the file's spelling: `port`,
 * `drainTimeout`. Paths are relative to the working directory.
 */
export interface ServerOptions extends SingleOptions {
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
  /** Directory and bytes (default 10 GiB) of the chunk cache. Default: no cache. */
  readonly cache?: { readonly directory: string; readonly maxBytes?: number };
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

const sourcedDatasetSchema = strictObject("a location, a tree, or an object with one as its source", {
  source: sourceSchema,
  ...datasetShape,
});

const providerSchema = z.custom<PluginDatasets>((value) => typeof value === "object" && value !== null, {
  error: "expected an object with list and open",
});

const serverSchema = strictObject("an object of options", {
  datasets: namedSchema("datasets by id"),
  collections: namedSchema("collections by name").optional(),
  providers: namedSchema("providers by name", providerSchema).optional(),
  stores: namedSchema("stores by name").optional(),
  plugins: z
    .array(
      z.custom<string | PluginConfig | Plugin>(
        (value) => (typeof value === "string" ? value !== "" : typeof value === "object" && value !== null),
        { error: "expected a plugin, or the name of one" },
      ),
      { error: "expected an array of plugins" },
    )
    .optional(),
  cache: strictObject("an object with a directory", {
    directory: textSchema("a directory"),
    maxBytes: byteSizeSchema.optional(),
  }).optional(),
  ...singleShape,
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
  for (const { given, missing } of incompleteOptions(result.data ?? {}))
    problems.push(`${PLACE}: ${given}: expected ${missing} with it, received none`);
  const context = { place: PLACE, directory: process.cwd(), problems };
  const datasets = entries.flatMap(([id, dataset]) => checkDataset(id, dataset, context));
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
  context: { readonly place: string; readonly directory: string; readonly problems: string[] },
): CheckedServerOptions["datasets"][number][] {
  const path = ["datasets", id];
  const { problems, directory } = context;
  const problem = problemOfDatasetId(id);
  if (problem !== undefined) problems.push(`${PLACE}: dataset '${id}': ${problem}`);
  const isShort = typeof said === "string" || (typeof said === "object" && said !== null && "root" in said);
  const long = isShort ? { source: said } : said;
  const result = sourcedDatasetSchema.safeParse(long);
  if (!result.success) {
    problems.push(...problemsOf(result.error, long, PLACE, path));
    return [];
  }
  const { source, ...keys } = result.data;
  const location = typeof source === "string" ? resolveLocation(source, directory) : undefined;
  const config = datasetKeysConfig(id, keys, location, context);
  if (config.join !== undefined && location === undefined)
    problems.push(
      `${PLACE}: ${formatPath([...path, "source"])}: expected a pattern or a folder to join, received a tree`,
    );
  return [{ id, source, ...config }];
}
